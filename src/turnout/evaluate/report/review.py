"""The report of a review: whether to go back to one model, each condition with its figure, and the rows. Needs no plots."""

from collections.abc import Sequence
from html import escape

from turnout.evaluate.review.conditions import Source
from turnout.evaluate.review.evidence import Evidence
from turnout.evaluate.review.measures import formula
from turnout.evaluate.review.review import WORDS, Checked, Outcome, Review, number
from turnout.evaluate.words import dollars, percent
from turnout.pages.page import (
    POSITIVE,
    Cell,
    Page,
    Preset,
    Rows,
    Section,
    Tone,
    absent,
    defined,
    link,
    render,
    table,
    tile,
)

_TONES: dict[Outcome, Tone] = {"go back": "bad", "stay": "good", "undecided": "open"}
_CLASSES = {"holds": "LOSS", "does not hold": "SAFE", "not enough data": "HARD"}


def html(found: Review, evidence: Sequence[Evidence]) -> str:
    """The page, complete."""
    counts = {said: sum(one.answer == said for one in found.checked) for said in _CLASSES}
    return render(
        Page(
            title=f"Back to {found.against}? Route {found.route}",
            kicker=f"Is it time to go back to {found.against}?",
            verdict=found.verdict,
            tone=_TONES[found.outcome],
            who=f"route <b>{escape(found.route)}</b>, {escape(found.since)} to {escape(found.until)}; "
            f"one goes back when {escape(found.go_back_when)} of the conditions hold",
            tiles="".join(tile(said, [(str(count), "conditions")]) for said, count in counts.items()),
            sections=(
                Section(
                    "Conditions", _conditions(found, evidence), escape(found.method[0].upper() + found.method[1:] + ".")
                ),
                Section("The comparison", _sides(found)),
                Section("What there was to measure on", defined(found.sources)),
                Section("Measures", defined(found.measures)),
            ),
            tables=[_rows(one) for one in evidence],
            presets=[Preset(one.source, one.source) for one in evidence],
            figures=found,
        )
    )


def _conditions(found: Review, evidence: Sequence[Evidence]) -> str:
    by = {one.source: one for one in evidence}
    heads = ("condition", "measure", "goes back", "found", "interval", "rests on", "answer", "counted as")
    rows = []
    for one in found.checked:
        name = f"<b>{escape(one.name)}</b>" + (f"<br>{escape(one.note)}" if one.note else "")
        answer = f'<span class="answer {_CLASSES[one.answer]}">{one.answer}</span>'
        counted = "" if one.counted == one.answer else one.counted
        rows.append(
            (
                name,
                escape(one.measure),
                f"{one.side} {number(one.measure, one.bound)}",
                "unknown" if one.value is None else number(one.measure, one.value),
                _interval(one),
                _rests_on(one, by),
                answer + (f"<br>{escape(one.reason)}" if one.reason else ""),
                counted,
            )
        )
    return table(heads, rows)


def _sides(found: Review) -> str:
    names = {"capable": f"{found.against} alone", "routed": f"route {found.route}"}
    rows = []
    for source, sides in found.sides.items():
        for arm, one in sides.items():
            cost, done = one.cost_usd, one.per_completed_usd
            rows.append(
                (
                    escape(WORDS[source]),
                    escape(names[arm]),
                    link(f"{one.n:,}", source, **{f"n_{arm}": POSITIVE}),
                    link(percent(one.success), source, **{f"n_{arm}": POSITIVE}),
                    link(dollars(cost.value, cost.low, cost.high), source, **{f"costed_{arm}": POSITIVE}),
                    link(dollars(done.value, done.low, done.high), source, **{f"both_{arm}": POSITIVE}),
                )
            )
    if not rows:
        return absent("Nothing compares the two: the conditions rest on turns alone, or there are no outcomes.")
    return table(("from", "", "known success", "success", "USD a run", "USD a completed one"), rows)


def _interval(one: Checked) -> str:
    if one.low is None or one.high is None or one.measure == "undecided_weeks":
        return ""
    if one.by == "estimate":
        return "not asked for"
    return f"{number(one.measure, one.low)} to {number(one.measure, one.high)} ({one.confidence:.0%})"


def _rests_on(one: Checked, by: dict[Source, Evidence]) -> str:
    said = f"{one.rows:,} rows of {one.source}"
    source = by.get(one.source)
    if source is None:
        return escape(said)
    if one.measure != "undecided_weeks":
        columns = formula(one.measure, source).rows
        if len(columns) == 1:
            return link(said, source.source, **{columns[0]: POSITIVE})
    return link(said, source.source)


def _rows(one: Evidence) -> Rows:
    columns = ("key", "at", "cluster", "said", *one.columns)
    rows: list[tuple[Cell, ...]] = [(row.key, row.at, row.cluster, row.said, *row.values) for row in one.rows]
    said = f"A row is a {one.name}; the numbers are what sums are made of."
    return Rows(one.source, columns, rows, ("key",), one.source, said)
