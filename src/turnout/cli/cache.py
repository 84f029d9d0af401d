"""`turnout cache`: what providers' prompt caches hold of each lane, how well that was predicted, and who broke a prefix."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from msgspec import Struct

from turnout.cli import options, output
from turnout.cli.records import Records, none_of

if TYPE_CHECKING:
    from turnout.ledger.trace import TurnRecord
    from turnout.pricing.remaining import Remaining
    from turnout.routing.warmth import CacheUse

OVER_S = 3600.0
"""Seconds without a turn after which a session counts as ended."""
ENOUGH = 20
"""Ended sessions from which own figures are stated."""
SHOWN = 3
"""Breaks that a row of the table shows, the newest."""
TURNS = (1, 5, 10, 20, 40, 80)
"""Turn numbers for which the turns to be expected are stated."""

State: TypeAlias = Literal["warm", "maybe", "expired", "none"]


class Broken(Struct, frozen=True):
    """A turn that found its prefix broken. Fields as those of `CacheUse`."""

    turn: str
    at: float
    cause: str
    part: str
    message: int | None
    upto: int | None
    lost_tokens: int


class Lane(Struct, frozen=True):
    """The cache of one target for one lane, over the turns read.

    `held_tokens`: the prefix it holds, as of its last turn; `state`: whether that can still be read now, `none` when
    nothing is held. `hit_rate`: reported
    reads over prompt tokens; `read_error`: predicted reads over reported ones less 1; both None when nothing was reported.
    `bias`: running relative error of the predicted cost. `lost_tokens`: warm and not readable, over all breaks.
    """

    tenant: str
    session: str
    agent: str
    target: str
    model: str
    turns: int
    idle_s: float
    held_tokens: int
    state: State
    prompt_tokens: int
    predicted_read: int
    reported_read: int | None
    predicted_write: int
    reported_write: int | None
    hit_rate: float | None
    read_error: float | None
    bias: float | None
    lost_tokens: int
    breaks: tuple[Broken, ...]


def cache(
    limit: options.Newest = 2000,
    route: Annotated[str, typer.Option(metavar="NAME", help="Only turns of this route.")] = "",
    session: Annotated[str, typer.Option(metavar="ID", help="Only turns of this session.")] = "",
    ledger: options.Ledger = "",
    url: options.Gateway = "",
    key_env: options.KeyEnv = "",
    as_json: options.AsJson = False,
) -> None:
    """Show prompt caches by lane and target.

    The prefix that is warm, the share that was read from the cache, how far predictions were off, and who broke a prefix."""
    turns = Records(ledger, url, key_env).recent(limit, route, session)
    now = time.time()
    lanes = lanes_of(turns, now)
    if as_json:
        found = own_remaining(turns, now)
        output.emit({"turns": len(turns), "lanes": lanes, "remaining": _expected(found)})
        return
    if not turns:
        output.say(none_of(route, session))
        return
    if not lanes:
        output.say(
            "no recorded turn has an account of a cache: that takes an identified session, a prompt of some length and a target "
            "whose price for cached tokens is known (`turnout prices show MODEL`)"
        )
        return
    table = output.table("lane", "target", "turns", "warm prefix", "read", "predicted", "bias", "breaks")
    for lane in lanes:
        table.row(*_row(lane))
    table.print()


def lanes_of(turns: "Iterable[TurnRecord]", now: float) -> list[Lane]:
    """Figures per lane and target, those used last first. `turns`: newest first."""
    groups: dict[tuple[str, str, str, str], list[TurnRecord]] = {}
    for record in turns:
        if record.cache is not None:
            groups.setdefault((record.tenant, record.session, record.agent, record.cache.target), []).append(record)
    return [_lane(records, now) for records in groups.values()]


def _lane(records: "list[TurnRecord]", now: float) -> Lane:
    newest = records[0]
    uses = [record.cache for record in records if record.cache is not None]
    last = uses[0]
    told = [use for use in uses if use.reported_read is not None]
    read = sum(use.reported_read or 0 for use in told)
    prompt = sum(use.prompt_tokens for use in told)
    predicted = sum(use.predicted_read for use in told)
    written = [use for use in uses if use.reported_write is not None]
    idle_s = max(now - newest.at, 0.0)
    broken = tuple(_broken(record) for record in records if record.cache is not None and record.cache.broke)
    return Lane(
        tenant=newest.tenant,
        session=newest.session,
        agent=newest.agent,
        target=last.target,
        model=newest.model,
        turns=len(records),
        idle_s=round(idle_s, 1),
        held_tokens=last.held_tokens,
        state=_state(last, idle_s),
        prompt_tokens=sum(use.prompt_tokens for use in uses),
        predicted_read=predicted,
        reported_read=read if told else None,
        predicted_write=sum(use.predicted_write for use in written),
        reported_write=sum(use.reported_write or 0 for use in written) if written else None,
        hit_rate=round(read / prompt, 4) if prompt else None,
        read_error=round(predicted / read - 1.0, 4) if read else None,
        bias=next((use.bias for use in uses if use.bias is not None), None),
        lost_tokens=sum(one.lost_tokens for one in broken),
        breaks=broken,
    )


def _state(use: "CacheUse", idle_s: float) -> State:
    from turnout.pricing.caching import survival

    if not use.held_tokens:
        return "none"
    left = survival(idle_s, use.lifetime or "5m")
    return "warm" if left == 1.0 else "maybe" if left else "expired"


def _broken(record: "TurnRecord") -> Broken:
    use = record.cache
    assert use is not None  # only such turns are asked about
    return Broken(record.id, record.at, use.cause, use.part, use.message, use.upto, use.lost_tokens)


def own_remaining(turns: "Iterable[TurnRecord]", now: float) -> "Remaining":
    """How long the recorded sessions last: of each lane its turns, ended where it has been quiet for an hour."""
    from turnout.pricing.remaining import fit

    counts: Counter[tuple[str, str, str]] = Counter()
    newest: dict[tuple[str, str, str], float] = {}
    for record in turns:
        if record.session and record.ended != "rejected" and record.agent_kind != "background":
            lane = (record.tenant, record.session, record.agent)
            counts[lane] += 1
            newest[lane] = max(newest.get(lane, 0.0), record.at)
    return fit((turns, now - newest[lane] > OVER_S) for lane, turns in counts.items())


def _expected(own: "Remaining") -> dict[str, Any]:
    from turnout.pricing.remaining import CODING

    return {
        "sessions_ended": own.sessions,
        "expected_turns": {str(turn): round(own.expected(turn), 1) for turn in TURNS}
        if own.sessions >= ENOUGH
        else None,
        "packaged_expected_turns": {str(turn): round(CODING.expected(turn), 1) for turn in TURNS},
    }


def _row(lane: Lane) -> tuple[str, ...]:
    name = " / ".join(part for part in (lane.tenant, lane.session, lane.agent) if part)
    return (
        name,
        lane.target,
        str(lane.turns),
        f"{lane.held_tokens:,}{_STATES[lane.state]}",
        "not reported" if lane.hit_rate is None else f"{lane.hit_rate:.1%}",
        "" if lane.read_error is None else f"{lane.read_error:+.1%}",
        "" if lane.bias is None else f"{lane.bias:+.1%}",
        "; ".join(words(one) for one in lane.breaks[:SHOWN]) + _more(len(lane.breaks) - SHOWN),
    )


_STATES: dict[State, str] = {"warm": "", "maybe": " (may have expired)", "expired": " (expired)", "none": ""}


def _more(count: int) -> str:
    return f"; {count} earlier" if count > 0 else ""


_WHO = {
    "switch": "model switch",
    "expiry": "expired",
    "client": "client",
    "agent": "agent",
    "gateway": "gateway",
    "provider": "provider",
}
_WHAT = {
    "rewind": "went back",
    "message": "changed a message",
    "system": "changed the instructions",
    "tools": "changed the tools",
    "truncated": "took earlier messages out",
    "compaction": "compacted the history",
    "prompt": "another prompt put before",
    "reasoning": "reasoning left out",
}


def words(broken: "Broken | CacheUse") -> str:
    """A break as people read it: who, what, where, how much."""
    said = " ".join(part for part in (_WHO.get(broken.cause, broken.cause), _WHAT.get(broken.part, "")) if part)
    if broken.cause == "provider":
        said += " no longer had it"
    if broken.message is not None:
        said += f", from message {broken.message}" + (f" to {broken.upto}" if broken.upto is not None else "")
    return f"{said}: {broken.lost_tokens:,} tokens"
