"""Replay: a recorded turn decided again, by the router that decided it or by another one.

What a decision may rest on is in the record under `capture = "full"`: the request, the signals, what the lane remembered, the
hour, the targets that were unhealthy, and what came of each call the router made. Without the request, routers that read only
the signals decide as they did. No model is called and no clock is read.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from turnout.errors import ClientError, TapeMiss
from turnout.ledger.trace import TurnRecord
from turnout.routing.beside import Unrecorded
from turnout.routing.core import (
    AgentInfo,
    Decision,
    Lane,
    Router,
    Rung,
    TargetFacts,
    TargetName,
    Turn,
    Why,
    taken_over,
)
from turnout.routing.tape import Tape, played
from turnout.wire import CODECS

_NOTHING: frozenset[str] = frozenset()


def turn_of(
    record: TurnRecord,
    targets: Mapping[TargetName, TargetFacts],
    deadline_s: float | None = None,
    memory: Mapping[str, Any] | None = None,
) -> Turn:
    """The turn as its router saw it. `targets`: what the configuration says of them. `memory`: what the lane remembers, None = as
    recorded. To look at what the record does not hold raises TapeMiss, and so does a record without signals at once."""
    if record.signals is None:
        raise TapeMiss(f'turn {record.id} was recorded without signals (capture = "none")', "signals")
    conversation, settings = _said(record)
    kind: Any = record.agent_kind
    return Turn(
        id=record.id,
        lane=lane_of(record),
        conversation=conversation,
        settings=settings,
        signals=record.signals,
        targets=_as_they_were(targets, record.cooling),
        memory=record.memory if memory is None else memory,
        now=record.at,
        deadline_s=deadline_s,
        asked_for=record.asked_for,
        agent=AgentInfo(record.agent_program, kind, record.agent_parent),
        stopped=frozenset(record.stopped) if record.stopped else _NOTHING,
    )


def lane_of(record: TurnRecord) -> Lane:
    """Whose turn it was."""
    return Lane(record.tenant, record.session, record.agent, cast(Rung, record.rung))


def _said(record: TurnRecord) -> tuple[Any, Any]:
    """The conversation and the settings of the request, or what stands for them where they are not known."""
    if record.request is None:
        message = f'turn {record.id} was recorded without its request; replay needs capture = "full"'
        absent = Unrecorded(message, "conversation")
        return absent, absent
    if record.format not in CODECS:
        absent = Unrecorded(f"turn {record.id} came in the unknown format {record.format!r}", "conversation")
        return absent, absent
    try:
        request = CODECS[record.format].read_request(record.request)
    except ClientError as error:
        absent = Unrecorded(f"the request of turn {record.id} cannot be read: {error.message}", "conversation")
        return absent, absent
    settings = request.settings
    if settings.previous_response_id is not None or settings.conversation_id is not None:
        message = f"turn {record.id} continues a response by its id; the record holds what was new only"
        return Unrecorded(message, "continued"), settings
    return request.conversation, settings


def _as_they_were(
    targets: Mapping[TargetName, TargetFacts], cooling: tuple[str, ...]
) -> Mapping[TargetName, TargetFacts]:
    if not cooling and all(facts.healthy for facts in targets.values()):
        return targets
    return {
        name: msgspec.structs.replace(facts, healthy=name not in cooling)
        if facts.healthy == (name in cooling)
        else facts
        for name, facts in targets.items()
    }


def replay(
    record: TurnRecord,
    router: Router,
    targets: Mapping[TargetName, TargetFacts],
    deadline_s: float | None = None,
) -> Decision:
    """What `router` decides on a recorded turn, its calls answered by the recording. Raises TapeMiss when it asks for a call that
    was not made, or looks at what the record does not hold."""
    turn = turn_of(record, targets, deadline_s)
    return played(router.route(turn), Tape(record.asked, record.lookups), turn.conversation)


def differences(record: TurnRecord, decision: Decision) -> list[str]:
    """In what a decision is not the recorded one; nothing when it is the same. That another target served in the end, because the
    chosen one could not, makes no difference."""
    was, found = record.why, []
    if was is None:
        return ["the record holds no decision"]
    now = decision.why
    if record.target and record.target != decision.target:
        taken = taken_over(now, decision.target, record.target)
        if _same(taken, was):
            now = taken
        else:
            found.append(f"target {decision.target} instead of {record.target}")
    if now != was:
        found += [
            f"{name} {ours!r} instead of {theirs!r}"
            for name in Why.__struct_fields__
            if (ours := _plain(getattr(now, name))) != (theirs := _plain(getattr(was, name)))
        ]
    if decision.propensity != record.propensity:
        found.append(f"propensity {decision.propensity} instead of {record.propensity}")
    # What was remembered includes nothing when the turn ended before it could be.
    if record.remembered and (ours := _plain(decision.remember)) != _plain(record.remembered):
        found.append(f"remembers {ours!r} instead of {_plain(record.remembered)!r}")
    return found


def _same(one: Why, other: Why) -> bool:
    return one == other or _plain(one) == _plain(other)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=repr))
