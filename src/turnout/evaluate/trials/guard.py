"""Runs one command so that nothing of it outlives its end, its time or whoever asked for it. A script of its own, standard
library only: it is started once per run, without the packages that a start would have to look for.

    python guard.py REPORT TIMEOUT_S GRACE_S COMMAND...

stdin is a lifeline: when it ends, whoever held the other end is gone. At the time-out, at the end of the lifeline and at
SIGTERM the command's process group gets SIGTERM, and after GRACE_S seconds SIGKILL. In all cases what the command has left
running is killed: the processes of its group and, on Linux, those that went into a session of their own. TIMEOUT_S 0: none.

The file descriptor REPORT gets one line of JSON at the end: `code` (negative: the signal that ended the command), `timed_out`,
`stopped` (lifeline or SIGTERM), `seconds`, `left` (processes that were still running), and `error` where the command could not
be started.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run the command and report; always 0."""
    report, timeout_s, grace_s, command = int(arguments[0]), float(arguments[1]), float(arguments[2]), arguments[3:]
    adopts = _adopt()
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    os.set_inheritable(report, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    began = time.monotonic()
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        _report(report, code=127, error=f"{command[0]}: {error.strerror}")
        return 0
    timed_out, stopped = _wait(process, woken, began + timeout_s if timeout_s else None)
    if timed_out or stopped:
        _signal_group(process.pid, signal.SIGTERM)
        _wait(process, woken, time.monotonic() + grace_s, heed=False)
    seconds = time.monotonic() - began
    left = _sweep(process, adopts)
    _report(report, code=process.wait(), timed_out=timed_out, stopped=stopped, seconds=seconds, left=left)
    return 0


def _adopt() -> bool:
    """Have processes whose parents end become children of this one, so that none is lost sight of; whether that is possible."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _wait(
    process: "subprocess.Popen[bytes]", woken: int, until: "float | None", heed: bool = True
) -> "tuple[bool, bool]":
    """Wait for the command's end: (timed out, stopped). `heed`: SIGTERM and the end of the lifeline stop it."""
    watched = [woken, 0] if heed else [woken]
    while True:
        if _ended(process.pid):
            return False, False
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return True, False
        ready, _, _ = select.select(watched, [], [], left)
        if 0 in ready and not os.read(0, 4096):
            return False, True
        if woken in ready:
            numbers = set(os.read(woken, 4096))
            if heed and numbers - {signal.SIGCHLD}:
                return False, True


def _ended(pid: int) -> bool:
    # It stays unreaped: until then its number, and that of its group, belongs to nobody else.
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (
        ProcessLookupError,
        PermissionError,
    ):  # macOS answers EPERM for a group of which only the unreaped leader is left
        return False
    return True


def _sweep(process: "subprocess.Popen[bytes]", adopts: bool) -> int:
    """Kill what the command left running; how many processes that were, where they can be counted."""
    left = len(_others(process.pid)) if adopts else 0
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    while adopts:
        children = _others(0)
        if not children:
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            return left
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        # What a killed process leaves behind becomes a child of this one, and its turn comes next.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
    return left


def _others(but: int) -> "list[int]":
    """The children of this process that still run, without `but`, and their descendants."""
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                stat = os.open(f"{entry.path}/stat", os.O_RDONLY)
                try:
                    state, parent = os.read(stat, 4096).rpartition(b")")[2].split()[:2]
                finally:
                    os.close(stat)
                if state != b"Z":
                    parents[int(entry.name)] = int(parent)
    found: list[int] = []
    reached = {os.getpid()}
    while True:
        further = {pid for pid, parent in parents.items() if parent in reached} - reached
        if not further:
            return found
        found += [pid for pid in further if pid != but]
        reached |= further


def _report(to: int, **told: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(to, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
