"""How many turns a session still has: the estimator's laws, and the packaged table against the recordings it comes from."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded import needs_recordings, rows

from turnout.pricing.remaining import BANDS, CODING, SERVICE, SINGLE, Band, Remaining, fit, usual

sessions = st.lists(st.tuples(st.integers(1, 150), st.booleans()), min_size=1, max_size=60)


def test_the_estimate_of_a_table_worked_out_by_hand() -> None:
    # Six sessions: ends at turns 1, 2, 2 and 4; one seen to turn 3 and one to turn 4 without ending.
    found = fit([(1, True), (2, True), (2, True), (3, False), (4, True), (4, False)], bands=(1, 2, 3, 4))
    assert found.bands == (Band(1, 6, 1), Band(2, 5, 2), Band(3, 3, 0), Band(4, 2, 1))
    assert found.sessions == 4
    # Kaplan-Meier: 1, then 5/6, then 5/6 * 3/5, then the same (nobody ended at turn 3), then half of it.
    assert found.stays(1, 5) == pytest.approx((1.0, 5 / 6, 0.5, 0.5, 0.25))
    assert found.stays(2, 3) == pytest.approx((1.0, 3 / 5, 3 / 5))
    assert found.expected(2, 3) == pytest.approx(1 + 3 / 5 + 3 / 5)


@given(sessions)
def test_without_censoring_single_turns_give_the_mean(found: list[tuple[int, bool]]) -> None:
    ended = [(turns, True) for turns, _ in found]
    exact = fit(ended, bands=tuple(range(1, 152)))
    assert exact.expected(1, 400) == pytest.approx(sum(turns for turns, _ in ended) / len(ended), rel=1e-3)


@given(sessions, st.integers(1, 200))
def test_chances_fall_from_one_and_add_up(found: list[tuple[int, bool]], turn: int) -> None:
    table = fit(found)
    stays = table.stays(turn)
    assert stays[0] == 1.0
    assert all(0.0 <= later <= earlier for earlier, later in pairwise(stays))
    assert table.expected(turn) == pytest.approx(sum(stays))
    assert table.expected(turn) >= 1.0


@given(sessions, st.integers(1, 150))
def test_a_session_seen_longer_never_shortens_the_estimate(found: list[tuple[int, bool]], turns: int) -> None:
    assert fit([*found, (turns, False)]).expected(1) >= fit([*found, (turns, True)]).expected(1) - 1e-9


@given(sessions)
def test_every_turn_of_every_session_counts_once(found: list[tuple[int, bool]]) -> None:
    table = fit(found)
    assert sum(band.reached for band in table.bands) == sum(turns for turns, _ in found)
    assert table.sessions == sum(over for _, over in found)
    assert tuple(band.first for band in table.bands) == BANDS


def test_nothing_known_means_nothing_ends() -> None:
    assert Remaining().expected(1, 10) == 10
    assert Remaining((Band(1, 4, 1), Band(2, 0, 0))).ends_at(7) == 0.25


def test_a_call_that_nothing_follows_has_one_turn() -> None:
    assert usual("background") is SINGLE
    assert SINGLE.expected(1) == 1.0
    assert usual("main") is usual("subagent") is CODING


def _turns(row: Any) -> int:
    return sum(message["role"] == "assistant" for message in row["messages"])


def _ended(row: Any) -> bool:
    return str(row["harness"]).startswith("aider") or row["outcome"] is not None


@needs_recordings
def test_the_packaged_tables_are_those_of_the_recordings() -> None:
    coding = [(_turns(row), True) for row in rows("traces/traj_miniswe_gemini3pro_swebench_verified.jsonl.gz")]
    recorded = rows("traces/sessions_coding_agents.jsonl.gz")
    coding += [(_turns(row), _ended(row)) for row in recorded if row["licence"] != "none stated"]
    assert fit(coding) == CODING
    service = [(_turns(row), True) for row in rows("traces/traj_taubench_gpt4o_airline.jsonl.gz")]
    assert fit(service) == SERVICE
