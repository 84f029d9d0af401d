"""Whether to go back: what conditions amount to together, and how often in a row there was not enough data."""

import pytest
from tests.outcomes import BIG, ROUTER, run
from tests.pages.opened import Opened, digest

from turnout.evaluate.report.review import html
from turnout.evaluate.review.conditions import Condition, Conditions, CountedAs, Trials
from turnout.evaluate.review.material import Material, Told
from turnout.evaluate.review.review import WEEK_S, Review, review

NOW = 100 * WEEK_S
DAY = 86400.0


def runs(weeks: dict[int, int], routed: float = 0.5) -> Told:
    """So many tasks in each of these weeks back from now; the capable model solves all, the router this share."""
    found = []
    for week, tasks in weeks.items():
        for n in range(tasks):
            at = NOW - week * WEEK_S - DAY
            task = f"{week}-{n}"
            found.append(run(BIG, True, 2.0, task, line=len(found) + 1, at=at))
            found.append(run(ROUTER, n % 100 < routed * 100, 1.0, task, line=len(found) + 1, at=at))
    return Told(found, (BIG, ROUTER))


LOST = Condition("success_loss", above=0.03)
CHEAP = Condition("saving", below=0.1, source="trials")
HOPELESS = Condition("success", below=0.01, at_least=10_000)


def reviewed(conditions: dict[str, Condition], told: Told, days: float = 7, **more: object) -> Review:
    asked = Conditions("coder", conditions, trials=Trials("big", "router"), **more)  # type: ignore[arg-type]
    material = Material(asked, trials=told)
    found, _ = review(asked, "large", material.evidence, (NOW - days * DAY, NOW), material.first, 200, 1)
    return found


@pytest.mark.parametrize(
    ("names", "when", "outcome"),
    [
        (("lost",), "any", "go back"),
        (("cheap",), "any", "stay"),
        (("open",), "any", "undecided"),
        (("lost", "cheap", "open"), "any", "go back"),
        (("cheap", "open"), "any", "undecided"),
        (("lost",), "all", "go back"),
        (("lost", "cheap", "open"), "all", "stay"),
        (("lost", "open"), "all", "undecided"),
    ],
)
def test_any_or_all(names: tuple[str, ...], when: str, outcome: str) -> None:
    known = {"lost": LOST, "cheap": CHEAP, "open": HOPELESS}
    found = reviewed({name: known[name] for name in names}, runs({0: 100}), go_back_when=when)
    assert found.outcome == outcome


@pytest.mark.parametrize(
    ("of_file", "of_condition", "outcome"),
    [
        ("undecided", None, "undecided"),
        ("holds", None, "go back"),
        ("does not hold", None, "stay"),
        ("holds", "does not hold", "stay"),
        ("does not hold", "undecided", "undecided"),
    ],
)
def test_the_operator_says_what_not_enough_data_counts_as(
    of_file: CountedAs, of_condition: CountedAs | None, outcome: str
) -> None:
    open_ = Condition("success", below=0.01, at_least=10_000, not_enough_data=of_condition)
    found = reviewed({"open": open_}, runs({0: 100}), not_enough_data=of_file)
    assert found.outcome == outcome
    assert found.checked[0].answer == "not enough data"
    assert found.checked[0].reason == "it rests on 100 tasks; 10000 are asked for"


@pytest.mark.parametrize(
    ("weeks", "above", "value", "said"),
    [
        ({0: 5, 1: 5, 2: 5, 3: 100}, 2, 3, "holds"),
        ({0: 5, 1: 5, 2: 5, 3: 100}, 3, 3, "does not hold"),
        ({0: 5, 1: 100, 2: 5, 3: 5}, 0, 1, "holds"),
        ({0: 100, 1: 5}, 0, 0, "does not hold"),
        ({0: 5, 1: 5}, 4, 2, "does not hold"),  # there was nothing to review before that
        ({0: 5, 5: 5}, 3, 5, "holds"),
    ],
)
def test_reviews_in_a_row_without_enough_data(weeks: dict[int, int], above: int, value: int, said: str) -> None:
    conditions = {"lost": LOST, "nobody knows": Condition("undecided_weeks", above=above, of="lost")}
    one = reviewed(conditions, runs(weeks)).checked[1]
    assert (one.value, one.answer) == (value, said)


def test_without_any_data_every_condition_says_so() -> None:
    found = reviewed(
        {"lost": LOST, "weeks": Condition("undecided_weeks", above=1, of="lost")}, Told(reason="nothing here")
    )
    assert found.outcome == "undecided"
    assert found.checked[0].reason == "nothing here"
    assert found.checked[1].value == 0


def test_the_verdict_names_what_holds_with_its_figure() -> None:
    found = reviewed({"success is lost": LOST}, runs({0: 100}))
    assert found.verdict.startswith("Go back to large: success is lost (+50.0 points [")
    assert found.verdict.endswith("bound above +3.0 points).")


def test_rows_of_the_page_are_those_that_the_figure_names() -> None:
    asked = Conditions("coder", {"lost": LOST, "cheap": CHEAP}, trials=Trials("big", "router"))
    material = Material(asked, trials=runs({0: 40, 3: 10}))
    found, evidence = review(asked, "large", material.evidence, (NOW - 7 * DAY, NOW), material.first, 200, 1)
    page = Opened(html(found, evidence))
    assert page.reaches_out() == []
    for one in found.checked:
        rows = page.shown_by("trials")
        assert len(rows) == one.rows == 40
        assert digest(rows, ["key"]) == one.rows_digest
    lost = sum(row["ok_capable"] for row in rows) - sum(row["ok_routed"] for row in rows)
    assert found.checked[0].value == pytest.approx(lost / 40)
