"""What is kept of a run's conditions, and that no secret is."""

from pathlib import Path

import msgspec
import pytest

from turnout.evaluate.trials.folders import copied, digest
from turnout.evaluate.trials.manifest import Conditions, Manifest, differences, environment, files, line, unequal, words

CONDITIONS = Conditions(("run",), "", "exit", 60.0, 0, "", "own", 1, {"run": "1"}, {"PATH": "2"}, {"system": "x"})


def test_no_secret_is_kept_and_no_digest_of_one():
    held = {
        "VENDOR_API_KEY": "sk-ant-abcdefghijklmnop",
        "DATABASE_URL": "postgresql://me:hunter22@host/db",
        "NOTE": "the token is ghp_abcdefghijklmnopqrstuvwxyz",
        "PATH": "/usr/bin",
        "TERM": "xterm",
    }
    kept = environment(held)
    assert kept == {"DATABASE_URL": "set", "NOTE": "set", "VENDOR_API_KEY": "set", "PATH": kept["PATH"]}
    assert kept == environment({**held, "VENDOR_API_KEY": "another", "TERM": "vt100"})
    assert kept != environment({**held, "PATH": "/bin"})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("agent", "--token", "hunter2x"), ("agent", "--token", "[redacted]")),
        (("agent", "--api-key=hunter2x", "-v"), ("agent", "--api-key=[redacted]", "-v")),
        (("env", "VENDOR_TOKEN=hunter2x", "agent"), ("env", "VENDOR_TOKEN=[redacted]", "agent")),
        (("sh", "-c", "agent --password 'hunter 2x' go"), ("sh", "-c", "agent --password [redacted] go")),
        (("/home/ann/agent", "{prompt}"), ("/home/user/agent", "{prompt}")),
        # Nothing of these is a secret, and a change of them must show.
        (("agent", "--max-tokens", "100", "--monkey", "ape"), ("agent", "--max-tokens", "100", "--monkey", "ape")),
        (("agent", "--token", "{field}", "--auth", "--quiet"), ("agent", "--token", "{field}", "--auth", "--quiet")),
        (("sh", "-c", 'agent --token "$TOKEN" --keep 3'), ("sh", "-c", 'agent --token "$TOKEN" --keep 3')),
    ],
)
def test_no_secret_of_a_command_is_kept(given: tuple[str, ...], kept: tuple[str, ...]):
    assert words(given) == kept
    assert (
        line("TOKEN=hunter2x check && curl http://me:hunter2x@host")
        == "TOKEN=[redacted] check && curl http://[redacted]@host"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"timeout_s": 30.0}, "timeout_s: 60.0 became 30.0"),
        ({"command": ("run", "a b")}, "command: run became run 'a b'"),
        ({"environment": {"PATH": "3"}}, "environment PATH: 2 became 3"),
        ({"environment": {}}, "environment PATH: is gone"),
        ({"files": {"run": "1", "agent.py": "2"}}, "files agent.py: is new"),
        ({"check": "true"}, "check: nothing became true"),
    ],
)
def test_every_difference_is_named(change: dict[str, object], said: str):
    assert differences(CONDITIONS, msgspec.structs.replace(CONDITIONS, **change)) == [said]


def test_runs_that_are_compared_may_differ_in_the_arm_alone():
    other = msgspec.structs.replace(CONDITIONS, jobs=4)
    known = {one.digest: one for one in (CONDITIONS, other)}
    first = Manifest("large", "t", 1, 7, "s1", "p1", "", "f", "w", CONDITIONS.digest)
    second = msgspec.structs.replace(first, arm="small", session="s2", policy="p2")
    assert unequal([first, second], known) == []
    assert unequal([first, msgspec.structs.replace(second, seed=8)], known) == ["seed of large and small"]
    assert unequal([first, msgspec.structs.replace(second, folder="v")], known) == ["work folder of large and small"]
    assert unequal([first, msgspec.structs.replace(second, conditions=other.digest)], known) == ["jobs: 1 became 4"]


def test_a_changed_program_or_argument_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("1")
    before = files(["sh", "agent.py", "{id}"], "sh check.sh")
    assert set(before) == {"sh", "agent.py"}
    (tmp_path / "agent.py").write_text("2")
    assert files(["sh", "agent.py", "{id}"], "sh check.sh")["agent.py"] != before["agent.py"]


def test_a_copy_has_the_digest_of_its_template_and_every_change_shows(tmp_path: Path):
    template = tmp_path / "template"
    (template / "sub").mkdir(parents=True)
    (template / "sub" / "a").write_text("a")
    (template / "link").symlink_to("sub")
    assert copied(template, tmp_path / "copy") == digest(template)
    assert (tmp_path / "copy" / "link").is_symlink()
    seen = {digest(template)}
    (template / "sub" / "a").chmod(0o755)
    seen.add(digest(template))
    (template / "sub" / "a").write_text("b")
    seen.add(digest(template))
    (template / "empty").mkdir()
    seen.add(digest(template))
    (template / "link").unlink()
    seen.add(digest(template))
    assert len(seen) == 5
