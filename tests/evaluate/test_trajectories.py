"""Recorded runs: what was seen before each reply."""

import json
from pathlib import Path

import pytest
from tests.outcomes import written
from tests.recorded import needs_recordings, shared
from tests.trajectories import messages, row

from turnout.evaluate.recordings import read_conversation
from turnout.evaluate.trajectories import before_replies, read
from turnout.signals import observe


def test_each_reply_has_the_signals_of_what_came_before_it() -> None:
    said = messages(7, fails_from=3)
    seen = list(before_replies(json.dumps({"messages": said}).encode()))
    prefixes = [said[:at] for at, message in enumerate(said) if message["role"] == "assistant"]
    assert seen == [observe(read_conversation(json.dumps({"messages": one}).encode()).conversation) for one in prefixes]
    assert len(seen) == 7


def test_a_run_is_as_long_as_it_has_replies_whatever_its_row_says(tmp_path: Path) -> None:
    file = written(tmp_path / "runs.jsonl", [row("a", "small", True, 1.0, steps=99, messages=messages(4))])
    found = read(file)
    (run,) = found.read.outcomes
    assert (run.steps, len(found.of(run))) == (4, 4)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "messages"),
        ({"messages": []}, "no reply"),
        ({"messages": [{"role": "user", "content": "Hello"}]}, "no reply"),
        ({"messages": [{"role": "nobody", "content": "Hello"}]}, "role"),
        ({"messages": "none"}, "messages"),
    ],
)
def test_lines_without_a_run_are_counted_and_named(tmp_path: Path, more: dict[str, object], reason: str) -> None:
    whole = row("a", "small", True, 1.0, messages=messages(2))
    found = read(written(tmp_path / "runs.jsonl", [row("b", "small", True, 1.0, **more), whole, "{"]))
    assert (len(found.steps), found.read.rows, found.read.damaged, len(found.read.outcomes)) == (1, 3, 2, 1)
    assert reason in found.read.damaged_lines[0].reason


@needs_recordings
def test_every_recorded_run_of_the_weak_model_is_read() -> None:
    folder = shared()
    assert folder is not None
    found = read(folder / "data/traces/traj_miniswe_sonnet4_terminal_bench.jsonl.gz")
    assert (len(found.steps), found.read.damaged) == (82, 0)
