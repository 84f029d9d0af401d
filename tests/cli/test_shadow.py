"""`turnout shadow`: what shadows decided, from the ledger."""

import json
from pathlib import Path

import pytest

from turnout.cli import exits
from turnout.cli.app import run
from turnout.ledger.shadows import ShadowTurn
from turnout.ledger.store import Ledger
from turnout.routing.beside import Flip, Side

FLIP = Flip(
    "t1", 1e9, "coder", "s1", "", Side("small", "default", "nothing failed"), Side("large", "signals", "tests failed twice"),
    {"threshold": (0.5, 0.2)}, {"severity": 0.7},
)  # fmt: skip


def turn(n: int, **more: object) -> ShadowTurn:
    fields = {"policy": "p1", "at": 1e9 + n, "route": "coder", "tenant": "", "session": "s1", "was": "small", **more}
    return ShadowTurn(f"t{n}", "eager", **fields)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with a shadow of two policies."""
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open("sqlite:///turnout.db")
    rows = [
        turn(0, target="small", source="default", live_usd=0.01, usd=0.01),
        turn(1, target="large", source="signals", live_usd=0.01, usd=0.05, flip=FLIP),
        turn(2, reason="call"),
        turn(3, target="small", source="default"),
        turn(90_000, target="small", source="default", policy="p2"),
    ]
    ledger.add_shadows(rows)
    ledger.add_shadows(rows)  # each counts once
    ledger.close()
    return tmp_path


def test_status_shows_each_policy_of_each_shadow(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["shadow", "status"]) == 0
    out = capsys.readouterr().out
    for part in (
        "shadow eager of route coder, policy p1: 4 turns",
        "1 not supported: asks for a call that was not made",
        "2 of 3 to the target that was chosen (66.7%)",
        "1 small -> large",
        "Predicted cost of 2 turns, caches included: $0.060 by the shadow, $0.020 as it went (+200.0%)",
        "assumed: the same prompts",
        "policy p2: 1 turns",
        "What it would have cost is not known",
    ):
        assert part in out, out
    assert run(["shadow", "status", "--json", "--since", "2001-09-10"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["policy"], one["turns"], one["agreement"]) == ("p2", 1, 1.0)


def test_flips_are_listed_with_both_reasons(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["shadow", "flips", "eager"]) == 0
    out = capsys.readouterr().out
    for part in (
        "small -> large",
        "was  default: nothing failed",
        "now  signals: tests failed twice",
        "threshold 0.5 -> 0.2",
    ):
        assert part in out
    assert run(["shadow", "flips", "eager", "--json", "--limit", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["now"]["target"] == "large"
    assert run(["shadow", "flips", "eager", "--since", "2001-09-10"]) == 0
    assert "the same target on every turn" in capsys.readouterr().err


def test_bad_input_is_said_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["shadow", "flips", "nobody"]) == exits.NOT_FOUND
    assert "shadows that decided: eager" in capsys.readouterr().err
    assert run(["shadow", "status", "--ledger", "sqlite:///nowhere.db"]) == exits.NOT_FOUND
    capsys.readouterr()
    Ledger.open("sqlite:///empty.db").close()
    assert run(["shadow", "status", "--ledger", "sqlite:///empty.db"]) == 0
    assert "no shadow has decided yet" in capsys.readouterr().err
