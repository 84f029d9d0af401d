"""Reading the ledger: turns, pages of turns, and figures over them."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.engine import Connection

from turnout.errors import ClientError
from turnout.ledger import bodies
from turnout.ledger.outcome import REPORTED, Outcome, Reported
from turnout.ledger.rows import OUTCOME_COLUMNS, clean_row, outcome_row, record_of
from turnout.ledger.schema import messages, outcomes, turns
from turnout.ledger.trace import TurnRecord

PAGE_AT_MOST = 500
By: TypeAlias = Literal["route", "target", "source", "tenant", "session", "agent", "ended"]
"""What figures can be grouped by."""


_SUMMED = (
    "ended",
    "cost_gap",
    "known_usd",
    "aside_usd",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "first_byte_s",
    "total_s",
)


class TurnFilter(Struct, frozen=True, forbid_unknown_fields=True):
    """Which turns; an empty field does not restrict.

    `cost_gap`: only turns whose cost is incomplete, `unpriced` or `unknown`. `aside`: only turns that paid for calls whose
    reply was not served. `since`, `until`: Unix seconds, the first included, the last not.
    """

    route: str = ""
    tenant: str = ""
    session: str = ""
    agent: str = ""
    target: str = ""
    source: str = ""
    ended: str = ""
    cost_gap: str = ""
    aside: bool = False
    since: float | None = None
    until: float | None = None


class Page(Struct, frozen=True):
    """Turns, newest first, without bodies. `next`: the cursor of the page after, "" at the end."""

    turns: tuple[TurnRecord, ...]
    next: str


class Figures(Struct, frozen=True):
    """Figures over a set of turns.

    `errors`: turns that ended otherwise than `ok` by our side's or the upstream's fault (`error`, `cut`); `gone`: the client hung
    up; `rejected`: refused. `cost_usd`: the known part of the cost; `unpriced` and `unknown` count the turns it is incomplete
    for. `aside_usd`: the part spent on calls whose reply was not served (judges, discarded drafts). Latencies in seconds by
    nearest rank, None without turns: whole turn, and to the first byte.
    """

    turns: int = 0
    ok: int = 0
    errors: int = 0
    gone: int = 0
    rejected: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    aside_usd: float = 0.0
    unpriced: int = 0
    unknown: int = 0
    total_p50_s: float | None = None
    total_p90_s: float | None = None
    total_p99_s: float | None = None
    first_byte_p50_s: float | None = None
    first_byte_p90_s: float | None = None
    first_byte_p99_s: float | None = None


class Group(Struct, frozen=True):
    """Figures of the turns that agree in `key` (one value per name grouped by)."""

    key: dict[str, str]
    figures: Figures


class Stats(Struct, frozen=True):
    """Figures over all turns and by group, most turns first."""

    total: Figures
    groups: tuple[Group, ...]


def one(connection: Connection, id: str) -> TurnRecord | None:
    """A turn with its bodies as far as they are kept."""
    found = connection.execute(
        sa.select(turns.c.record, turns.c.request_skeleton, turns.c.request_parts, turns.c.response).where(
            turns.c.id == id
        )
    ).first()
    if found is None:
        return None
    record = record_of(found.record)
    sent = response = None
    if found.request_skeleton is not None:
        sent = _restored(connection, found)
    if found.response is not None:
        response = bodies.unpack(bytes(found.response))
    return replace(record, request=sent, response=response) if sent is not None or response is not None else record


def _restored(connection: Connection, row: Any) -> bytes | None:
    skeleton = bodies.unpack(bytes(row.request_skeleton))
    return bodies.restore(skeleton, bytes(row.request_parts), lambda names: _parts(connection, names))


def _parts(connection: Connection, names: Sequence[bytes]) -> dict[bytes, bytes]:
    stored: dict[bytes, bytes] = {}
    for at in range(0, len(names), 500):
        query = sa.select(messages.c.digest, messages.c.body).where(messages.c.digest.in_(names[at : at + 500]))
        stored.update((bytes(row.digest), bytes(row.body)) for row in connection.execute(query))
    return stored


def page(connection: Connection, which: TurnFilter, limit: int, before: str) -> Page:
    """A page of turns. `before`: the cursor a page gave. Raises ClientError for a cursor that no page gave."""
    limit = max(1, min(limit, PAGE_AT_MOST))
    query = sa.select(turns.c.seq, turns.c.at, turns.c.record).where(*_where(which))
    if before:
        at, seq = _cursor(before)
        query = query.where(sa.or_(turns.c.at < at, sa.and_(turns.c.at == at, turns.c.seq < seq)))
    rows = connection.execute(query.order_by(turns.c.at.desc(), turns.c.seq.desc()).limit(limit + 1)).all()
    last = rows[limit - 1] if len(rows) > limit else None
    following = "" if last is None else _written((last.at, last.seq))
    return Page(tuple(_listed(record_of(row.record)) for row in rows[:limit]), following)


def _listed(record: TurnRecord) -> TurnRecord:
    if record.lookups:
        record = replace(record, lookups=tuple(one.without_facts() for one in record.lookups))
    return replace(record, asked=()) if record.asked else record


def _written(place: tuple[float, int]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _cursor(text: str) -> tuple[float, int]:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=tuple[float, int])
    except (ValueError, msgspec.DecodeError):
        raise ClientError("not a cursor of this list; use `next` of the page before", param="before") from None


def _where(which: TurnFilter) -> list[sa.ColumnElement[bool]]:
    names = ("route", "tenant", "session", "agent", "target", "source", "ended", "cost_gap")
    found: list[sa.ColumnElement[bool]] = [turns.c[n] == value for n in names if (value := getattr(which, n))]
    if which.aside:
        found.append(turns.c.aside_usd > 0)
    if which.since is not None:
        found.append(turns.c.at >= which.since)
    if which.until is not None:
        found.append(turns.c.at < which.until)
    return found


def stats(connection: Connection, which: TurnFilter, by: Sequence[By]) -> Stats:
    """Figures over the turns and by group."""
    total = _figures(connection, which, ())
    groups = _figures(connection, which, by) if by else []
    return Stats(
        total=total[0].figures if total else Figures(),
        groups=tuple(sorted(groups, key=lambda group: (-group.figures.turns, sorted(group.key.items())))),
    )


def _figures(connection: Connection, which: TurnFilter, by: Sequence[By]) -> list[Group]:
    keys = [turns.c[name] for name in by]
    # first_byte_s is ranked among the turns that have one: SQLite puts NULL first, PostgreSQL last, so it is told.
    ranked = (
        sa.select(
            *(turns.c[name] for name in dict.fromkeys((*by, *_SUMMED))),
            sa.func.row_number().over(partition_by=keys or None, order_by=turns.c.total_s).label("rank"),
            sa.func.count().over(partition_by=keys or None).label("n"),
            sa.func.row_number()
            .over(partition_by=keys or None, order_by=turns.c.first_byte_s.asc().nulls_last())
            .label("first_rank"),
            sa.func.count(turns.c.first_byte_s).over(partition_by=keys or None).label("first_n"),
        )
        .where(*_where(which))
        .subquery()
    )
    columns = dict(_sums(ranked.c))
    query = sa.select(*(ranked.c[name] for name in by), *(e.label(name) for name, e in columns.items()))
    rows = connection.execute(query.group_by(*(ranked.c[name] for name in by)) if by else query).mappings()
    return [
        Group({name: row[name] for name in by}, Figures(**{name: row[name] for name in columns}))
        for row in rows
        if row["turns"]
    ]


def _sums(c: Any) -> list[tuple[str, Any]]:
    def ended(*how: str) -> Any:
        return sa.func.coalesce(sa.func.sum(sa.case((c.ended.in_(how), 1), else_=0)), 0)

    def gap(what: str) -> Any:
        return sa.func.coalesce(sa.func.sum(sa.case((c.cost_gap == what, 1), else_=0)), 0)

    def total(column: Any, kind: Any = sa.BigInteger) -> Any:
        return sa.cast(sa.func.coalesce(sa.func.sum(column), 0), kind)

    def percentile(p: int, value: Any, rank: Any, n: Any) -> Any:
        # Nearest rank: the value whose rank is p * n / 100 rounded up.
        return sa.func.max(sa.case((rank * 100 <= p * n + 99, value)))

    return [
        ("turns", sa.func.count()),
        ("ok", ended("ok")),
        ("errors", ended("error", "cut")),
        ("gone", ended("client_gone")),
        ("rejected", ended("rejected")),
        *(
            (name, total(c[name]))
            for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        ),
        ("cost_usd", total(c.known_usd, sa.Float)),
        ("aside_usd", total(c.aside_usd, sa.Float)),
        ("unpriced", gap("unpriced")),
        ("unknown", gap("unknown")),
        *((f"total_p{p}_s", percentile(p, c.total_s, c.rank, c.n)) for p in (50, 90, 99)),
        *((f"first_byte_p{p}_s", percentile(p, c.first_byte_s, c.first_rank, c.first_n)) for p in (50, 90, 99)),
    ]


def report(connection: Connection, outcome: Outcome, at: float) -> None:
    """Add an outcome. Raises ClientError when it names no turn, session or task."""
    if not outcome.turn and not outcome.session and not outcome.task:
        raise ClientError("an outcome names a turn, a session or a task", param="turn")
    row = clean_row(outcome_row(outcome, at, REPORTED))
    connection.execute(sa.insert(outcomes).values(dict(zip(OUTCOME_COLUMNS, row, strict=True))))


def reported(connection: Connection, turn: str, session: str) -> tuple[Reported, ...]:
    """The outcomes of a turn or a session, oldest first; of either where both are given."""
    either = [column == value for column, value in ((outcomes.c.turn, turn), (outcomes.c.session, session)) if value]
    if not either:
        return ()
    return tuple(_outcomes(connection, [sa.or_(*either)]))


def reported_of(connection: Connection, turns: Sequence[str], sessions: Sequence[str]) -> tuple[Reported, ...]:
    """The outcomes that name any of these turns or sessions, each once."""
    found: dict[int, Reported] = {}
    for column, names in ((outcomes.c.turn, turns), (outcomes.c.session, sessions)):
        for at in range(0, len(names), 500):
            query = sa.select(outcomes.c.seq, outcomes.c.at, outcomes.c.outcome, outcomes.c.source)
            for row in connection.execute(query.where(column.in_(names[at : at + 500]))):
                outcome = msgspec.json.decode(row.outcome, type=Outcome)
                found[row.seq] = Reported(row.at, outcome, row.source or REPORTED)
    return tuple(found[seq] for seq in sorted(found))


def of_tasks(connection: Connection, source: str) -> Iterator[Reported]:
    """The outcomes that name a task, in the order they were stored, read as they are taken. `source`: "" = any."""
    where: list[sa.ColumnElement[bool]] = [outcomes.c.task != ""]
    if source:
        where.append(outcomes.c.source == source)
    return _outcomes(connection.execution_options(yield_per=1000), where, (outcomes.c.seq,))


def lanes(connection: Connection, which: TurnFilter) -> Iterator[TurnRecord]:
    """Turns without bodies, lane after lane and each in the order it went, read as they are taken."""
    query = sa.select(turns.c.record).where(*_where(which))
    query = query.order_by(turns.c.tenant, turns.c.session, turns.c.agent, turns.c.at, turns.c.seq)
    for row in connection.execution_options(yield_per=500).execute(query):
        yield record_of(row.record)


class Lane(NamedTuple):
    """Whose turns: the columns that name a lane."""

    tenant: str
    session: str
    agent: str


def count(connection: Connection, which: TurnFilter) -> int:
    """How many turns."""
    return int(connection.execute(sa.select(sa.func.count()).select_from(turns).where(*_where(which))).scalar_one())


def whole_lanes(connection: Connection, which: TurnFilter) -> Iterator[tuple[TurnRecord, bool]]:
    """Turns without bodies, lane after lane and each in the order it went, read as they are taken. Of a lane with turns that are
    wanted all are given, from its first one to the last of the period, each with whether it is one that is wanted."""
    where = _where(which)
    columns = (turns.c.tenant, turns.c.session, turns.c.agent)
    named = connection.execute(sa.select(*columns).where(*where).distinct().order_by(*columns)).all()
    wanted = sa.and_(*where) if where else sa.true()
    until = [turns.c.at < which.until] if which.until is not None else []
    lane = [column == sa.bindparam(name) for column, name in zip(columns, Lane._fields, strict=True)]
    query = sa.select(turns.c.record, wanted.label("wanted")).where(*lane, *until).order_by(turns.c.at, turns.c.seq)
    streamed = connection.execution_options(yield_per=500)
    for row in named:
        for found in streamed.execute(query, Lane(*row)._asdict()):
            yield record_of(found.record), bool(found.wanted)


def request(connection: Connection, id: str) -> bytes | None:
    """The body of a turn's request, where it is kept."""
    query = sa.select(turns.c.request_skeleton, turns.c.request_parts).where(turns.c.id == id)
    found = connection.execute(query).first()
    return None if found is None or found.request_skeleton is None else _restored(connection, found)


def _outcomes(connection: Connection, where: Sequence[Any], order: Sequence[Any] = ()) -> Iterator[Reported]:
    query = sa.select(outcomes.c.at, outcomes.c.outcome, outcomes.c.source).where(*where)
    for row in connection.execute(query.order_by(*(order or (outcomes.c.at, outcomes.c.seq)))):
        yield Reported(row.at, msgspec.json.decode(row.outcome, type=Outcome), row.source or REPORTED)
