"""The history of what is served: roll-backs undo promotions, whoever makes them and in whatever order."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.strategies import booleans, integers, sampled_from

from turnout.errors import ConfigError
from turnout.policies.folder import Folder
from turnout.policies.policy import Evidence, Policy

AT = datetime(2026, 12, 1, tzinfo=UTC)
SRC = Path(__file__).parents[2] / "src"


def policy(number: int, route: str = "coder", note: str = "") -> Policy:
    """One of many versions."""
    table = {"type": "passthrough", "target": f"t{number}"}
    return Policy(route, table, digest=f"{number:012x}", made_at=AT, note=note, evidence=Evidence("rows"))


class Histories(RuleBasedStateMachine):
    """The folder against plain stacks."""

    def __init__(self) -> None:
        super().__init__()
        self.at = TemporaryDirectory()
        self.folder = Folder(Path(self.at.name) / "policies")
        self.stacks: dict[str, list[str]] = {"coder": [], "a/b *": []}
        self.lines: list[str] = []

    @rule(number=integers(1, 3), route=sampled_from(["coder", "a/b *"]))
    def promote(self, number: int, route: str) -> None:
        one = policy(number, route)
        change = self.folder.promote(one, self.folder.add(one), reason="why", by="me")
        stack = self.stacks[route]
        if stack and stack[-1] == one.digest:
            assert change is None
            return
        assert change is not None
        assert change.before == (stack[-1] if stack else "")
        stack.append(one.digest)

    @rule(route=sampled_from(["coder", "a/b *"]), to_own=booleans())
    def roll_back(self, route: str, to_own: bool) -> None:
        stack = self.stacks[route]
        if not stack:
            with pytest.raises(ConfigError, match="nothing to roll back"):
                self.folder.rollback(route, to_own=to_own)
            return
        change = self.folder.rollback(route, to_own=to_own)
        assert change.before == stack.pop()
        if to_own:
            stack.clear()
        assert change.digest == (stack[-1] if stack else "")

    @precondition(lambda self: any(self.stacks.values()))
    @rule(number=integers(4, 6))
    def promote_and_roll_back_is_as_before(self, number: int) -> None:
        route = next(name for name, stack in self.stacks.items() if stack)
        before = self.folder.promoted()[route]
        one = policy(number, route)
        self.folder.promote(one, self.folder.add(one))
        after = self.folder.rollback(route)
        assert (after.digest, after.file, after.sha256) == (before.digest, before.file, before.sha256)

    @invariant()
    def what_is_served_is_the_top(self) -> None:
        served = {route: change.digest for route, change in self.folder.promoted().items()}
        assert served == {route: stack[-1] for route, stack in self.stacks.items() if stack}
        for change in self.folder.promoted().values():
            found, _ = self.folder.served(change)
            assert (found.route, found.digest) == (change.route, change.digest)

    @invariant()
    def history_only_grows(self) -> None:
        file = self.folder.history_file
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        assert lines[: len(self.lines)] == self.lines
        self.lines = lines

    def teardown(self) -> None:
        self.at.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)


def test_the_same_version_is_kept_once_and_new_evidence_beside_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    first = folder.add(policy(1))
    later = msgspec.structs.replace(policy(1), made_at=datetime(2026, 12, 2, tzinfo=UTC))
    assert folder.add(later) == first
    other = folder.add(msgspec.structs.replace(later, evidence=Evidence("more rows")))
    assert other != first
    assert folder.add(policy(1)) == first
    found = folder.find("coder", "0000")
    assert found is not None
    assert found.path == other, "the newest evidence speaks for a version"
    folder.add(policy(2))
    with pytest.raises(ConfigError, match="give more of it"):
        folder.find("coder", "0000")
    assert folder.find("coder", "f") is None
    assert folder.find("helper", "0") is None


def test_a_promoted_file_that_was_edited_or_is_gone_is_not_served(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    path = folder.add(policy(1))
    change = folder.promote(policy(1), path)
    assert change is not None
    path.write_text(path.read_text("utf-8").replace("t1", "t9"), "utf-8")
    with pytest.raises(ConfigError, match=r"changed after it was promoted for route coder.*--to-configuration"):
        folder.served(change)
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        folder.served(change)


def test_strange_files_hide_no_version(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.add(policy(1))
    (tmp_path / "notes.toml").write_text("no policy = [")
    (tmp_path / "latin.toml").write_bytes(b"note = '\xff'")
    assert [one.policy is None for one in folder.policies()].count(True) == 2
    assert [one.policy for one in folder.policies("coder")] == [policy(1)]
    (tmp_path / "history.jsonl").write_text('{"at": 1}\n')
    with pytest.raises(ConfigError, match=r"history.jsonl:1: not a line of a history"):
        folder.promoted()


_PROMOTER = """
import sys
from pathlib import Path
from tests.policies.test_folder import policy
from turnout.policies.folder import Folder
folder, number = Folder(Path(sys.argv[1])), int(sys.argv[2])
for step in range(15):
    one = policy(number * 100 + step)
    folder.promote(one, folder.add(one), by=str(number))
"""


def test_promotions_at_once_lose_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(SRC), str(root)))}
    command = [sys.executable, "-c", _PROMOTER, str(tmp_path / "p")]
    racing = [subprocess.Popen([*command, str(number)], env=environment) for number in (1, 2, 3)]
    assert [process.wait(60) for process in racing] == [0, 0, 0]
    changes = Folder(tmp_path / "p").history()
    assert len(changes) == 45
    assert [change.before for change in changes] == ["", *(change.digest for change in changes[:-1])]
    for number in ("1", "2", "3"):
        own = [int(change.digest, 16) for change in changes if change.by == number]
        assert own == sorted(own)
