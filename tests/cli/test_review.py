"""`turnout review`: the conditions for going back, on a ledger and on files, and its exit codes."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.outcomes import row
from tests.outcomes import written as outcomes_written
from tests.pages.opened import Opened
from tests.spent import CONFIG, LARGE, plain, turns, written

from turnout.cli import exits
from turnout.cli.app import run
from turnout.ledger.outcome import Outcome
from turnout.ledger.store import Ledger
from turnout.routing.core import Why

SAVING = '[conditions.saving]\nmeasure = "saving"\nbelow = {below}\nat_least = 10\n'

LOST = '[conditions.lost]\nmeasure = "success_loss"\nabove = {above}\nat_least = 10\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a configuration and a ledger: twenty sessions of the last day, half of them in the candidate's arm of a
    canary, with outcomes; and one of long ago."""
    at = tmp_path_factory.mktemp("review")
    (at / "turnout.toml").write_text(CONFIG)
    now = time.time()
    records = [
        replace(one, id=f"old-{one.id}", session="old", at=now - 40 * 86400.0 + n) for n, one in enumerate(turns())
    ]
    for n in range(20):
        arm = {"name": "back", "arm": "candidate" if n % 2 else "incumbent", "share": 0.5}
        why = Why("default", "", values={"canary": arm})
        for part, one in enumerate(turns()[:4]):
            moment = now - 86400.0 + 60.0 * n + part
            records.append(replace(one, id=f"{n}-{one.id}", session=f"s{n}", at=moment, why=why))
    url = written(at / "turnout.db", records)
    ledger = Ledger.read(url)
    for n in range(20):
        ledger.add_outcome(Outcome(session=f"s{n}", success=n % 4 != 0))
        for model, success in (("big", True), ("router", n % 4 != 0)):
            ledger.add_outcome(Outcome(task=f"t{n}", model=model, success=success, cost_usd=1.0))
    ledger.close()
    outcomes_written(
        at / "trials.jsonl", [row(str(n), model, n % 2, 1.0) for n in range(40) for model in ("big", "router")]
    )
    return at


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def asked(text: str, *arguments: str) -> list[str]:
    """A command line that checks these conditions."""
    Path("review.toml").write_text(f'route = "coder"\n{text}')
    return ["review", "--resamples", "200", *arguments]


def checked(capsys: pytest.CaptureFixture[str], code: int, text: str, *arguments: str) -> Any:
    assert run([*asked(text, *arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("below", "code", "outcome"), [(0.9, exits.GO_BACK, "go back"), (0.001, exits.OK, "stay")])
def test_the_exit_code_says_whether_to_go_back(
    below: float, code: int, outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(capsys, code, SAVING.format(below=below))
    assert (found["outcome"], found["against"]) == (outcome, "large")
    one = found["checked"][0]
    assert (one["n"], one["rows"]) == (20, 80)
    # Every session is the same four turns.
    four = plain_of(turns()[:4])
    assert one["value"] == pytest.approx(1 - four["paid"] / four["alone"])


def plain_of(records: Any) -> dict[str, Any]:
    """What some turns spent, added up from a ledger's file."""
    path = Path("plain.db")
    path.unlink(missing_ok=True)
    written(path.absolute(), records)
    return plain(path)


@pytest.mark.parametrize(
    ("counts", "code"), [("", exits.UNDECIDED), ("holds", exits.GO_BACK), ("does not hold", exits.OK)]
)
def test_not_enough_data_has_a_code_of_its_own_unless_the_operator_says_otherwise(
    counts: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f'not_enough_data = "{counts}"\n' if counts else ""
    found = checked(capsys, code, said + SAVING.format(below=0.9).replace("at_least = 10", "at_least = 21"))
    assert found["checked"][0]["answer"] == "not enough data"
    assert found["checked"][0]["reason"] == "it rests on 20 sessions; 21 are asked for"


def test_an_older_period_is_reviewed_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    found = checked(capsys, exits.UNDECIDED, SAVING.format(below=0.9), "--until", "39d", "--since", "2d")
    assert (found["checked"][0]["n"], found["checked"][0]["rows"]) == (1, 6)


def test_a_canary_is_compared_by_the_outcomes_of_its_lanes(capsys: pytest.CaptureFixture[str]) -> None:
    text = '[canary]\nname = "back"\nrouted = "incumbent"\n' + LOST.format(above=0.1)
    one = checked(capsys, exits.GO_BACK, text)["checked"][0]
    # Of the incumbent's ten lanes every second failed, of the candidate's none.
    assert (one["value"], one["n"], one["rows"], one["source"]) == (0.5, 10, 20, "canary")


@pytest.mark.parametrize(("file", "value", "n"), [("", 0.25, 20), ('outcomes = "trials.jsonl"', 0.0, 40)])
def test_trials_are_taken_from_the_ledger_or_a_file(
    file: str, value: float, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f'[trials]\ncapable = "big"\nrouted = "router"\n{file}\n' + LOST.format(above=0.9)
    one = checked(capsys, exits.OK, text)["checked"][0]
    assert (one["value"], one["n"], one["rows"]) == (pytest.approx(value), n, n)


def test_people_get_the_verdict_and_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(asked(SAVING.format(below=0.9), "--report", "review.html")) == exits.GO_BACK
    caught = capsys.readouterr()
    assert caught.out.startswith("Go back to large: saving (")
    assert "turns: 80 turns of the route" in caught.out
    assert "wrote review.html" in caught.err
    page = Opened((folder / "review.html").read_text("utf-8"))
    assert page.reaches_out() == []
    rows = page.shown_by("turns", compared="> 0")
    assert 1 - sum(one["spent"] for one in rows) / sum(one["alone"] for one in rows) == pytest.approx(
        page.data["figures"]["checked"][0]["value"]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[conditions.a]\nmeasure = 'saving'\nbelow = 0.1\nabov = 0.2",
            "review.toml:5: conditions.a.abov: unknown key `abov`; did you mean `above`?",
        ),
        (
            "[conditions.a]\nmeasure = 'savings'\nbelow = 0.1",
            "review.toml:3: conditions.a.measure: invalid value 'savings'; did you mean `saving`?",
        ),
        ("[conditions.a]\nmeasure = 'saving'", "a condition has one bound"),
        ("", "missing key `conditions`"),
        ("[conditions.a]\nmeasure = 'success'\nbelow = 0.1", "it needs a table [trials] or [canary] or [logged]"),
        ("since = '14'\n" + SAVING.format(below=0.1), "review.toml: since '14': expected a time span"),
        ("against = 'lagre'\n" + SAVING.format(below=0.1), "there is no target `lagre`; there are: large, small"),
        ("[conditions", "not TOML"),
        (
            "[trials]\ncapable = 'big'\nrouted = 'rooter'\n[conditions.a]\nmeasure = 'success'\nbelow = 0.1",
            "no rows of rooter; nearest: router",
        ),
        (
            "[trials]\ncapable = 'big'\nrouted = 'big'\n[conditions.a]\nmeasure = 'success'\nbelow = 0.1",
            "big and big are the same arm",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(asked(text)) == exits.USAGE
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["review", "none.toml"]) == exits.USAGE
    assert "none.toml" in capsys.readouterr().err


def test_a_route_the_configuration_does_not_know_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("review.toml").write_text('route = "codr"\n' + SAVING.format(below=0.1))
    assert run(["review"]) == exits.USAGE
    assert "no route `codr`; there are: coder" in capsys.readouterr().err


def test_prices_are_those_of_the_target() -> None:
    assert f"input = {LARGE.input}" in CONFIG
