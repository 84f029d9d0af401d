"""The report of a period of a ledger: who spent what, and every session turn by turn. Needs matplotlib."""

from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from msgspec.structs import astuple

from turnout.evaluate.period import Period
from turnout.evaluate.report.plots import spending_plot
from turnout.evaluate.spending import Kind, Part
from turnout.evaluate.timeline import Session, Step
from turnout.evaluate.words import dollars, sentence
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
    listed,
    render,
    table,
    tile,
)

SHOWN = 8
"""Sessions that each list names; the others are found by the box above the timeline."""

_COLUMNS: dict[Kind, str] = {
    "judges": "judges_usd",
    "discarded": "discarded_usd",
    "failed": "failed_calls_usd",
    "hung up": "hung_up_usd",
    "cold after a switch": "cold_switch_usd",
    "cold otherwise": "cold_other_usd",
}


def html(found: Period, steps: Sequence[Step]) -> str:
    """The page, complete."""
    sections = [
        Section("Who spent what", spending_plot(found.spending) or absent("Nothing of known cost."), found.assumed),
        Section("Part by part", _parts(found), beside=True),
        Section("A session, turn by turn", _timeline(found), _LEGEND),
        Section("The dearest sessions", _sessions(found, lambda one: one.known_usd, "cost")),
        Section("The most switched", _sessions(found, lambda one: one.switches, "switches")),
        Section("The most troubled", _sessions(found, lambda one: one.failures, "failures")),
        Section("Notes", listed(_notes(found))),
        Section("Definitions", defined(found.definitions)),
    ]
    return render(
        Page(
            title=f"Who spent what: {found.source}",
            kicker="Who spent what?",
            verdict=sentence(found),
            tone=_tone(found),
            who=f"{escape(found.source)}<br>{escape(_span(found))}",
            tiles=_tiles(found),
            sections=sections,
            tables=(_turns(found, steps), _table_of_sessions(found)),
            presets=(
                Preset("all turns", "turns"),
                Preset("switches", "turns", {"switched": True}),
                Preset("failures", "turns", {"failed": True}),
                Preset("cold caches", "turns", {"cold_usd": POSITIVE}),
                Preset("judged", "turns", {"judges_usd": POSITIVE}),
                Preset("sessions", "sessions"),
            ),
            figures=found,
            script=files("turnout.evaluate.report").joinpath("timeline.js").read_text("utf-8"),
        )
    )


def _tone(found: Period) -> Tone:
    alone = found.spending.alone
    if alone is None or alone.saved is None:
        return "open"
    return "good" if alone.saved > 0 else "bad"


def _span(found: Period) -> str:
    return f"turns from {found.first} to {found.last}" if found.first else "no turns"


def _tiles(found: Period) -> str:
    spent = found.spending
    by: dict[Kind, float] = {}
    for part in spent.parts:
        by[part.kind] = by.get(part.kind, 0.0) + part.usd
    cold = by.get("cold after a switch", 0.0) + by.get("cold otherwise", 0.0)
    tiles = [
        tile("spent", [(link(dollars(spent.known_usd), "turns"), f"{spent.turns:,} turns")]),
        tile("judges", [(link(dollars(by.get("judges", 0.0)), "turns", judges_usd=POSITIVE), _share(found, "judges"))]),
        tile("cold caches", [(link(dollars(cold), "turns", cold_usd=POSITIVE), _cold(by))]),
        tile("changes of model", [(link(f"{found.switches:,}", "turns", switched=True), "within a lane")]),
        tile("turns in trouble", [(link(f"{found.failures:,}", "turns", failed=True), "an error, or a failed call")]),
    ]
    if spent.alone is not None:
        name = f"{spent.alone.target} alone"
        tiles.insert(1, tile(name, [(escape(dollars(spent.alone.usd)), "reckoned, see below")]))
    return "".join(tiles)


def _share(found: Period, kind: Kind) -> str:
    usd = sum(part.usd for part in found.spending.parts if part.kind == kind)
    return f"{usd / found.spending.known_usd:.1%} of the spend" if found.spending.known_usd else "nothing was spent"


def _cold(by: dict[Kind, float]) -> str:
    return f"{dollars(by.get('cold after a switch', 0.0))} of it after a change of model"


def _parts(found: Period) -> str:
    rows = [
        (
            escape(part.kind),
            escape(part.name),
            _linked(part, dollars(part.usd)),
            f"{part.usd / found.spending.known_usd:.1%}" if found.spending.known_usd else "",
            f"{part.turns:,}",
        )
        for part in found.spending.parts
    ]
    total = ("in all", "", link(dollars(found.spending.known_usd), "turns"), "", f"{found.spending.turns:,}")
    return table(("", "", "USD", "share", "turns"), [*rows, total])


def _linked(part: Part, said: str) -> str:
    if part.kind == "answers":
        return link(said, "turns", target=part.name, answers_usd=POSITIVE)
    return link(said, "turns", **{_COLUMNS[part.kind]: POSITIVE})


_LEGEND = (
    "Top: who served, one line a lane; a triangle is a change of model, a cross a failure. Middle: the prompt's tokens, read "
    "from the cache, written to it, and neither. Bottom: cost, what cold caches cost in red. Click a turn for its row; "
    "<code>turnout why ID</code> explains it."
)


def _timeline(found: Period) -> str:
    if not found.sessions:
        return absent("No turn belongs to a known session.")
    return (
        '<p><label>Find a session or turn <input id="seek" type="search" size="36" list="names"></label> '
        '<datalist id="names"></datalist><label>Sessions <select id="pick"></select></label> <label>in order of '
        '<select id="rank"><option value="known_usd">cost</option><option value="switches">changes of model</option>'
        '<option value="failures">failures</option><option value="turns">turns</option>'
        '<option value="cold_usd">cold caches</option><option value="last">time</option></select></label></p>'
        '<p id="of"></p><div class="wide" id="line"></div>'
        '<details><summary>Its turns, one by one</summary><div class="wide"><table id="steps"></table></div></details>'
    )


def _sessions(found: Period, by: Callable[[Session], float], said: str) -> str:
    chosen = sorted((one for one in found.sessions if by(one)), key=lambda one: (-by(one), one.session))[:SHOWN]
    if not chosen:
        return absent(f"No session has {said}.")
    heads = ("session", "turns", "lanes", "USD", "cold caches", "judges", "switches", "failures", "cached", "targets")
    rows = []
    for one in chosen:
        share = "" if one.cached_share is None else f"{one.cached_share:.0%}"
        rows.append(
            (
                f'<a href="#line" data-session="{escape(_key(one))}">{escape(one.session)}</a>',
                link(str(one.turns), "turns", session=one.session, tenant=one.tenant),
                str(one.lanes),
                dollars(one.known_usd),
                dollars(one.cold_usd),
                dollars(one.judges_usd),
                link(str(one.switches), "turns", session=one.session, tenant=one.tenant, switched=True),
                link(str(one.failures), "turns", session=one.session, tenant=one.tenant, failed=True),
                share,
                escape(", ".join(one.targets)),
            )
        )
    return table(heads, rows)


def _key(one: Session) -> str:
    return f"{one.tenant}\n{one.session}"


def _notes(found: Period) -> list[str]:
    spent = found.spending
    notes = [
        f"{spent.unknown:,} turns have calls whose cost is not known; only what is known of them counts"
        * bool(spent.unknown),
        f"{spent.cold_unknown:,} turns lost warm tokens whose price is not known; they are among the answers"
        * bool(spent.cold_unknown),
        "every turn's id is in the table below and in the ledger: `turnout why ID` explains it",
    ]
    return [note for note in notes if note]


def _turns(found: Period, steps: Sequence[Step]) -> Rows:
    rows: list[tuple[Cell, ...]] = [astuple(step) for step in steps]
    said = "A row is a turn; tokens are those of the reply that was served, USD of all its calls."
    return Rows("turns", Step.__struct_fields__, rows, ("turn",), found.source, said)


def _table_of_sessions(found: Period) -> Rows:
    rows: list[tuple[Any, ...]] = [
        tuple(", ".join(value) if isinstance(value, tuple) else value for value in astuple(one))
        for one in found.sessions
    ]
    return Rows("sessions", Session.__struct_fields__, rows, ("tenant", "session"), found.source, "A row is a session.")
