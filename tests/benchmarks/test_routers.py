"""benchmarks/routers.py: what it asks a peer, and what it makes of the answers."""

import os
import sys
from pathlib import Path

import pytest
from tests.outcomes import written
from tests.recorded import ROOT
from tests.trajectories import messages, row

sys.path.insert(0, str(ROOT / "benchmarks"))

import routers

from turnout.evaluate import trajectories
from turnout.evaluate.switching import decided, summed


def test_a_peer_moves_at_its_first_score_beyond_the_threshold(tmp_path: Path) -> None:
    runs = trajectories.read(written(tmp_path / "runs.jsonl", [row("a", "small", True, 1.0, messages=messages(4))]))
    (run,) = runs.read.outcomes
    told = routers.Asked030({1: [False, False, True, True]}, {1: [-0.5, 0.46, 0.5, 2.0]})
    assert [told.move(run, threshold) for threshold in (0.0, 0.46, 0.5, 1.0)] == [1, 2, 3, 3]
    found = summed([run], lambda one: told.ups[one.line], 100)
    assert (found.capable_turns.value, found.first, found.switches.value) == (0.5, 2, 1.0)


def test_defaults_are_among_what_is_swept() -> None:
    made = routers.routers()
    assert {key for key in made if key[1] == routers.DEFAULTS[key[0]]} == {
        (routers.STAGE, 0.5),
        (routers.SIGNALS, 2),
    }


@pytest.mark.skipif("TURNOUT_SWITCHYARD" not in os.environ, reason="TURNOUT_SWITCHYARD names no environment with it")
def test_switchyard_is_asked_before_every_reply(tmp_path: Path) -> None:
    calm, failing = messages(12), messages(12, fails_from=6)
    rows = [row(name, "small", True, 1.0, messages=said) for name, said in (("a", calm), ("b", failing))]
    path = written(tmp_path / "runs.jsonl", rows)
    runs = trajectories.read(path)
    told = routers.switchyard(path, runs, Path(os.environ["TURNOUT_SWITCHYARD"]))
    for run in runs.read.outcomes:
        assert len(told.ups[run.line]) == len(told.scores[run.line]) == 12
        first = told.ups[run.line].index(True) if any(told.ups[run.line]) else None
        assert first == told.move(run, routers.DEFAULTS[routers.PEER])
    assert any(told.ups[2])
    assert decided(routers.routers()[routers.STAGE, 0.5], runs, None, 100).runs == 2
