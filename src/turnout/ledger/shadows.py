"""What the ledger keeps of shadows: what each decided beside a turn, and figures over that."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from turnout.ledger.rows import clean_text
from turnout.ledger.schema import shadows
from turnout.routing.beside import Flip


class ShadowTurn(Struct, frozen=True):
    """What a shadow decided beside one turn.

    `policy`: digest of what the shadow decides by. `was`: the target that was chosen. `target`: that of the shadow, "" when
    it could not decide, for `reason`. `live_usd`, `usd`: what the turn is reckoned to cost the way it went and by the
    shadow's decisions, calls made to decide included; None where it is not known. `flip`: the turn, where the shadow chose
    another target.
    """

    turn: str
    shadow: str
    policy: str
    at: float
    route: str
    tenant: str
    session: str
    was: str
    target: str = ""
    source: str = ""
    reason: str = ""
    live_usd: float | None = None
    usd: float | None = None
    flip: Flip | None = None


class ShadowFigures(Struct, frozen=True):
    """A shadow, and how it did by one policy. `since`, `until`: Unix seconds of its first and newest turn. `unsupported`: turns
    it could not decide, by reason. `was`, `now`: turns by target, of those it decided. `compared`: turns whose cost is known on
    both sides, and `live_usd` and `usd` their sums, None where there are none."""

    shadow: str
    route: str
    policy: str
    since: float
    until: float
    turns: int
    decided: int
    agreed: int
    unsupported: dict[str, int]
    was: dict[str, int]
    now: dict[str, int]
    flipped: dict[str, int]
    compared: int
    live_usd: float | None
    usd: float | None

    @property
    def agreement(self) -> float | None:
        """Share of the decided turns that went to the shadow's target; None before there is one."""
        return self.agreed / self.decided if self.decided else None


COLUMNS = tuple(column.name for column in shadows.columns if column.name != "seq")


def add(connection: Connection, found: Sequence[ShadowTurn]) -> None:
    """Keep what shadows decided; once for each turn and shadow."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(shadows).on_conflict_do_nothing(index_elements=["turn", "shadow"])
    connection.execute(statement, [_row(one) for one in found])


def _row(one: ShadowTurn) -> dict[str, object]:
    row = {name: getattr(one, name) for name in COLUMNS if name not in ("agrees", "flip")}
    row = {name: clean_text(value) if isinstance(value, str) else value for name, value in row.items()}
    flip = None
    if one.flip is not None:
        flip = msgspec.json.encode(_clean(msgspec.to_builtins(one.flip, enc_hook=repr))).decode()
    return {**row, "agrees": None if not one.target else one.flip is None, "flip": flip}


def _clean(value: Any) -> Any:
    """`value` with texts that every database takes: tools and models may say anything."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list | tuple) else value


def figures(connection: Connection, since: float | None = None) -> tuple[ShadowFigures, ...]:
    """How each shadow did by each of its policies, the newest first. `since`: only turns from then on."""
    where = [shadows.c.at >= since] if since is not None else []
    keys = (shadows.c.shadow, shadows.c.route, shadows.c.policy)
    both = sa.and_(shadows.c.live_usd.is_not(None), shadows.c.usd.is_not(None))
    query = sa.select(
        *keys,
        shadows.c.was,
        shadows.c.target,
        shadows.c.reason,
        shadows.c.agrees,
        sa.func.count().label("turns"),
        sa.func.min(shadows.c.at).label("since"),
        sa.func.max(shadows.c.at).label("until"),
        sa.func.sum(sa.case((both, 1), else_=0)).label("compared"),
        sa.func.sum(sa.case((both, shadows.c.live_usd), else_=0.0)).label("live_usd"),
        sa.func.sum(sa.case((both, shadows.c.usd), else_=0.0)).label("usd"),
    ).where(*where)
    grouped = query.group_by(*keys, shadows.c.was, shadows.c.target, shadows.c.reason, shadows.c.agrees)
    by_policy: dict[tuple[str, str, str], list[sa.Row[tuple[object, ...]]]] = {}
    for row in connection.execute(grouped):
        by_policy.setdefault((row.shadow, row.route, row.policy), []).append(row)
    found = [_figures(key, rows) for key, rows in by_policy.items()]
    return tuple(sorted(found, key=lambda one: (one.shadow, -one.until)))


def _figures(key: tuple[str, str, str], rows: Sequence[sa.Row[tuple[object, ...]]]) -> ShadowFigures:
    decided = [row for row in rows if row.target]
    unsupported: dict[str, int] = {}
    was: dict[str, int] = {}
    now: dict[str, int] = {}
    flipped: dict[str, int] = {}
    for row in rows:
        if not row.target:
            unsupported[row.reason] = unsupported.get(row.reason, 0) + row.turns
            continue
        was[row.was] = was.get(row.was, 0) + row.turns
        now[row.target] = now.get(row.target, 0) + row.turns
        if not row.agrees:
            pair = f"{row.was} -> {row.target}"
            flipped[pair] = flipped.get(pair, 0) + row.turns
    compared = sum(row.compared for row in decided)
    return ShadowFigures(
        *key,
        min(row.since for row in rows),
        max(row.until for row in rows),
        sum(row.turns for row in rows),
        sum(row.turns for row in decided),
        sum(row.turns for row in decided if row.agrees),
        unsupported,
        was,
        now,
        flipped,
        compared,
        sum(row.live_usd for row in decided) if compared else None,
        sum(row.usd for row in decided) if compared else None,
    )


def flips(connection: Connection, shadow: str, limit: int, since: float | None = None) -> Iterator[Flip]:
    """The newest turns that a shadow would have given to another target."""
    query = sa.select(shadows.c.flip).where(shadows.c.shadow == shadow, shadows.c.flip.is_not(None))
    if since is not None:
        query = query.where(shadows.c.at >= since)
    for row in connection.execute(query.order_by(shadows.c.at.desc(), shadows.c.seq.desc()).limit(limit)):
        yield msgspec.json.decode(row.flip, type=Flip)


def decided(connection: Connection, shadow: str) -> Iterator[tuple[str, str, str]]:
    """For each turn that a shadow saw, in their order: the turn, the shadow's target ("" = none), and why there is none."""
    query = sa.select(shadows.c.turn, shadows.c.target, shadows.c.reason).where(shadows.c.shadow == shadow)
    for row in connection.execution_options(yield_per=1000).execute(query.order_by(shadows.c.at, shadows.c.seq)):
        yield row.turn, row.target, row.reason
