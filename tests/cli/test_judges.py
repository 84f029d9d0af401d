"""`turnout judges`, `turnout economics`, and what `why` and `turns` say of judgements: from a gateway that judged."""

import json
from pathlib import Path

import pytest
from tests.gateway.test_judges import RAMBLING, USAGE, VERDICT, Judge, ask, gateway
from tests.played import completion, whole

from turnout.cli import exits
from turnout.cli.app import run
from turnout.ledger.outcome import Outcome

ESCALATE = json.dumps({"reason": "it goes in circles", "escalate": True})


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a gateway that served a session to its latch, one that the weak model failed in, and a judge that rambled."""
    monkeypatch.chdir(tmp_path)
    judge = Judge()
    with gateway(judge, tmp_path) as served:
        for before, verdict in enumerate((VERDICT, ESCALATE, ESCALATE, VERDICT)):
            judge.steps = whole(200, completion(verdict, USAGE))
            assert ask(served, before=before)[0] == 200
        ask(served, session="s2")
        judge.steps = RAMBLING
        ask(served, session="s3")
        served.settled()
        served.gateway.ledger.add_outcome(Outcome(session="s1", success=True))
        served.gateway.ledger.add_outcome(Outcome(session="s2", success=False, category="bugfix"))
    return tmp_path


def test_judges_are_shown_with_votes_outcomes_failures_and_cost(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judges"]) == 0
    out = capsys.readouterr().out
    for part in (
        "route r, judge both: to be asked in 5 turns",
        "asked 5 times, not asked 0, no verdict 1 (parse_error 1)",
        "votes to move up: 2 of 4, 0.50 [0.15 0.85]",
        "consecutive votes: 2 in a row 1 x",
        "moved up 1 turn; a latch kept 1 later turn of the route up",
        "precision of votes: none; recall: 0 of 1, 0.00 [0.00 0.79]",
        "over 1 lane with a known outcome that the cheap model served to the end; 1 more taken over",
        "cost $0.0055, 41.7% of the route's $0.0132",
        "a verdict takes",
    ):
        assert part in out
    assert run(["judges", "--json", "--route", "r"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcomes"] == 2
    (one,) = told["judges"]
    assert (one["votes"]["hits"], one["votes"]["of"]) == (2, 4)
    assert one["streaks"] == {"2": 1}
    assert one["share_of_cost"] == pytest.approx(5 / 12)
    assert run(["judges", "--route", "direct"]) == 0
    assert capsys.readouterr().err == "no turns of route `direct` are recorded\n"


def test_the_turn_that_escalates_shows_three_calls_one_latch_and_a_negative_saving(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["turns", "--json", "--session", "s1"]) == 0
    turns = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    held, latched = turns[0], turns[1]
    assert held["why"]["source"] == "latch"
    assert [call.get("purpose", "answer") for call in latched["calls"]] == ["draft", "judge", "answer"]
    for call in latched["calls"]:
        assert call["usage"]["input_tokens"] == 1000
        assert call["cost_usd"] == pytest.approx(0.0011)
        assert call["ended_s"] > call["started_s"] >= 0.0
    latches = [event for turn in turns for event in turn.get("remembered", []) if event.get("escalate")]
    assert len(latches) == 2
    assert run(["why", latched["id"], "--config", "turnout.toml"]) == 0
    out = capsys.readouterr().out
    for part in (
        "* strong (strong): $0.0011",
        "calls: 3, $0.0033",
        "draft weak (weak), $0.0011, 1000 in (0 cached), 100 out",
        "judge both (both), $0.0011",
        "answer strong (strong), $0.0011",
        "over after",
        "saving: -$0.0022; strong alone would have been cheaper",
        "cached as reported",
    ):
        assert part in out
    assert run(["turns", "--session", "s1"]) == 0
    assert "draft + judge + answer" in capsys.readouterr().out


def test_why_tells_a_judgement_that_was_useless_from_one_that_was_not_made(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["why", "last"]) == 0
    assert "no verdict (parse_error)" in capsys.readouterr().out


def test_economics_of_a_recorded_route_say_that_it_did_not_pay(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # All models cost the same here, so no share of turns could pay for the judge.
    assert run(["economics", "r"]) == 0
    out = capsys.readouterr().out
    for part in (
        "route r, strong target strong",
        "6 turns, 5 judged",
        "This judge cannot pay: the strong model is not dearer than the weak one",
        "judges cost $0.0055, 41.7% of the route's $0.0132",
        "1 weak reply thrown away, $0.0011",
        "cost $0.0066 more than the strong model alone: $0.0132 instead of $0.0066 over 6 turns",
        "assumed: ",
    ):
        assert part in out
    assert run(["economics", "r", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["saved_usd"] == pytest.approx(-0.0066)
    assert (told["economics"]["pays"], told["economics"]["break_even"]) == (False, None)
    assert (told["kept"]["hits"], told["kept"]["of"]) == (4, 5)


def test_a_target_that_only_judges_is_no_option_of_a_turn(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "last", "--json", "--config", "turnout.toml"]) == 0
    assert [option["target"] for option in json.loads(capsys.readouterr().out)["prices"]] == ["weak", "strong"]


def test_economics_of_a_route_without_a_judge_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with gateway(Judge(), tmp_path) as served:
        assert ask(served, "direct")[0] == 200
        served.settled()
    assert run(["economics", "direct"]) == 0
    assert "1 turn, none of them judged" in capsys.readouterr().out


def test_economics_of_given_prices(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--weak-cost", "0.01", "--strong-cost", "0.05", "--judge-cost", "0.004"]
    assert run(["economics", "any", *given]) == 0
    out = capsys.readouterr().out
    assert "break-even: 10.0% of judged turns" in out
    assert "discarded weak replies charged: 28.0%" in out
    assert run(["economics", "any", *given, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["economics"]["needed"] == pytest.approx(0.28)
    assert run(["economics", "any", "--weak-cost", "0.01"]) == exits.USAGE
    assert "belong together" in capsys.readouterr().err


def test_economics_of_a_route_that_is_not_recorded(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["economics", "none"]) == exits.NOT_FOUND
    assert "no turns of route `none`" in capsys.readouterr().err


def test_a_gateway_tells_judges_but_no_outcomes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gateway(Judge(), tmp_path) as served:
        assert ask(served)[0] == 200
        served.settled()
        assert run(["judges", "--url", served.url]) == 0
        assert "a gateway does not tell outcomes; read its ledger with --ledger" in capsys.readouterr().out
        assert run(["judges", "--url", served.url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outcomes"] is None
