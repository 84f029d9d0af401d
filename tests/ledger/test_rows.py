"""Rows: what each capture keeps, what is summed, and that no record is lost over an odd value."""

from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.ledger.records import turn

from turnout.conversation import Usage
from turnout.ledger.rows import COLUMNS, Capture, record_of, row_of
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.core import Why


def _row(record: TurnRecord, capture: Capture = "signals") -> dict[str, Any]:
    return dict(zip(COLUMNS, row_of(record, capture)[0], strict=True))


def test_the_record_comes_back() -> None:
    record = turn()
    assert record_of(_row(record, "full")["record"]) == record


def test_capture_none_keeps_no_word() -> None:
    record = turn(request=b'{"messages":[]}', response=b"secret words")
    row = _row(record, "none")
    kept = record_of(row["record"])
    assert kept.signals is None
    assert kept.calls[0].reply == ""
    assert row["request_skeleton"] is row["request_parts"] is row["response"] is None
    assert b"secret" not in repr(row).encode()


@pytest.mark.parametrize(
    "values",
    [
        {"streak": 1, "verdict": "escalate", "verdict_reason": "the secret is out"},
        {"occasion": "done", "plan": "open the secret file"},
        {"crux": "a secret", "primary_rule": "SUP-1", "p_solve": 0.5},
        {"verdict": {"topic": "secret", "sure": True, "p": 0.5, "more": {"a": "secret"}}},
    ],
)
def test_capture_none_keeps_no_word_of_a_judge(values: dict[str, Any]) -> None:
    row = _row(turn(why=Why("judge", "a verdict", values=values)), "none")
    assert "secret" not in repr(row)
    assert "secret" in repr(_row(turn(why=Why("judge", "a verdict", values=values)), "signals"))


def test_capture_none_keeps_what_a_judge_decided() -> None:
    why = Why("judge", "a verdict", values={"streak": 1, "verdict": "escalate", "verdict_reason": "it loops"})
    kept = record_of(_row(turn(why=why), "none")["record"]).why
    assert kept is not None
    assert kept.values == {"streak": 1, "verdict": "escalate"}


def test_capture_signals_keeps_signals_but_no_body() -> None:
    record = turn(request=b'{"messages":[]}', response=b"secret words")
    row = _row(record)
    kept = record_of(row["record"])
    assert kept.signals == record.signals
    assert kept.calls[0].reply == ""
    assert kept.request is kept.response is None
    assert row["response"] is None


def test_sums_cover_judge_and_draft() -> None:
    usage = Usage(10, 5, 3, 2)
    calls = (
        Call("small", "s", "draft", usage=usage, cost_usd=0.1),
        Call("judge", "j", "judge", usage=usage, cost_usd=0.02),
        Call("large", "l", served=True, usage=usage, cost_usd=0.5),
        Call("large", "l", error="timeout"),
    )
    row = _row(turn(calls=calls, cost_usd=None, cost_note="unknown: a call reported no usage"))
    assert row["known_usd"] == pytest.approx(0.62)
    assert row["aside_usd"] == pytest.approx(0.12)
    assert (row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"]) == (
        30,
        15,
        9,
        6,
    )
    assert row["cost_usd"] is None
    assert row["cost_gap"] == "unknown"


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        ({"cost_usd": 0.0}, ""),
        ({"cost_usd": None, "cost_note": "unpriced: no price is known for this model"}, "unpriced"),
        ({"cost_usd": None}, "unknown"),
        ({"cost_usd": None, "calls": ()}, ""),
    ],
)
def test_why_a_cost_is_missing(changes: dict[str, Any], gap: str) -> None:
    assert _row(turn(**changes))["cost_gap"] == gap


class Odd:
    """Nothing an encoder knows."""


class Event(Struct, frozen=True):
    """An event of a router."""

    names: frozenset[str]


def test_odd_values_do_not_lose_the_turn() -> None:
    record = turn(memory={"a": Odd(), "b": frozenset("x")}, remembered=(Event(frozenset(("p", "q"))),))
    kept = record_of(_row(record)["record"])
    assert kept.memory == {"a": "<Odd>", "b": ["x"]}
    assert [sorted(event["names"]) for event in kept.remembered] == [["p", "q"]]


def test_lone_surrogates_do_not_lose_the_turn() -> None:
    record = turn(error_message="half \ud800 a pair", memory={"x": "\udfff"})
    kept = record_of(_row(record)["record"])
    assert kept.id == record.id
    assert kept.error_message == "half ? a pair"
    assert kept.calls[0].target == "small"


def test_absurd_counts_fit_the_columns() -> None:
    call = replace(turn().calls[0], usage=Usage(10**30, -5, 1, 1))
    row = _row(turn(calls=(call,)))
    assert 0 <= row["output_tokens"] < 2**63
    assert 0 <= row["input_tokens"] < 2**63
