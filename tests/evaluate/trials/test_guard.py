"""A guarded command: nothing of it outlives its end, its time, or whoever started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from turnout.evaluate.trials import guard
from turnout.evaluate.trials.process import Ended, Guarded

# A child in the command's own process group and one in a session of its own, as agents start servers.
FAMILY = """
import os, subprocess, sys, time
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
near = subprocess.Popen(sleep)
far = subprocess.Popen(sleep, start_new_session=True)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getpid()} {near.pid} {far.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(float(sys.argv[2]))
"""
PYTHON = [sys.executable, "-I", "-S", "-c"]


def guarded(folder: Path, command: list[str], timeout_s: float = 0.0, grace_s: float = 5.0) -> Guarded:
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return Guarded(command, folder, dict(os.environ), out, err, timeout_s, grace_s)


def family(file: Path) -> list[int]:
    until = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return [int(pid) for pid in file.read_text().split()]


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def await_gone(pids: list[int]) -> None:
    until = time.monotonic() + 20
    while not all(gone(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.01)


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc to see what still runs")


def test_what_a_command_says_and_ends_with_is_passed_on(tmp_path: Path):
    ended = guarded(tmp_path, [*PYTHON, "import sys; print('hi'); print('ho', file=sys.stderr); sys.exit(3)"]).wait()
    assert (ended.code, ended.timed_out, ended.stopped, ended.left) == (3, False, False, 0)
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("hi\n", "ho\n")
    assert guarded(tmp_path, [*PYTHON, "import os; os.abort()"]).wait().code == -signal.SIGABRT


def test_a_command_that_cannot_be_started_says_why(tmp_path: Path):
    assert guarded(tmp_path, ["./nothing-here"]).wait() == Ended(127, error="./nothing-here: No such file or directory")


def test_at_the_time_out_children_end_too_those_in_other_sessions_as_well(tmp_path: Path):
    process = guarded(tmp_path, [*PYTHON, FAMILY, str(tmp_path / "pids"), "60"], timeout_s=1.0)
    pids = family(tmp_path / "pids")
    ended = process.wait()
    assert ended.timed_out
    assert ended.code == -signal.SIGTERM
    assert all(gone(pid) for pid in pids)


def test_what_a_command_left_running_is_ended_and_counted(tmp_path: Path):
    process = guarded(tmp_path, [*PYTHON, FAMILY, str(tmp_path / "pids"), "0"])
    ended = process.wait()
    assert (ended.code, ended.left) == (0, 2)
    assert all(gone(pid) for pid in family(tmp_path / "pids"))


def test_a_command_that_does_not_heed_is_killed(tmp_path: Path):
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    process = guarded(tmp_path, [*PYTHON, deaf], grace_s=0.1)
    while not (tmp_path / "out").read_text():
        time.sleep(0.01)
    process.stop()
    ended = process.wait()
    assert (ended.code, ended.stopped) == (-signal.SIGKILL, True)


def test_when_whoever_started_it_is_killed_everything_ends(tmp_path: Path):
    command = [str(guard.__file__), "2", "0", "0.2", *PYTHON, FAMILY, str(tmp_path / "pids"), "60"]
    started = f"subprocess.Popen([sys.executable, *{command!r}], stdin=subprocess.PIPE)"
    asker = f"import subprocess, sys, time; held = {started}; time.sleep(60)"
    asking = subprocess.Popen([*PYTHON, asker])
    pids = family(tmp_path / "pids")
    assert not any(gone(pid) for pid in pids)
    asking.kill()
    asking.wait()
    await_gone(pids)
