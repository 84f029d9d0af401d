"""Makes the record of a turn that is over."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from turnout.gateway import artefacts
from turnout.gateway.handing import handed
from turnout.gateway.warmth import PREFIX_KEY
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.core import State

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving


def recorded(serving: "Serving") -> TurnRecord:
    """The record of a turn, every call it made priced and charged."""
    decision, route, request, gateway = serving.decision, serving.route, serving.request, serving.gateway
    lane, agent = serving.lane, serving.agent
    calls = tuple([account.call(serving.at) for account in serving.accounts])
    cost, note = total(calls)
    return TurnRecord(
        id=serving.id,
        at=serving.at,
        route=route.name if route is not None else "",
        policy=route.policy if route is not None else "",
        router=route.kind if route is not None else "",
        tenant=lane.tenant,
        session=lane.session,
        agent=lane.agent,
        rung=lane.rung,
        agent_program=agent.program,
        agent_kind=agent.kind,
        agent_parent=agent.parent,
        format=serving.codec.format,
        upstream_format=serving.upstream_format,
        stream=request.settings.stream if request is not None else False,
        asked_for=request.settings.model if request is not None else "",
        target=serving.target or "",
        model=serving.model_name,
        decided=decision.target if decision is not None and decision.target != serving.target else "",
        why=serving.overruled or (decision.why if decision is not None else None),
        signals=serving.signals if gateway.keeps_signals else None,
        memory=_memory(serving.loaded.states),
        remembered=decision.remember if decision is not None and serving.committed else (),
        calls=calls,
        usage=serving.usage if serving.usage is not None or not calls else calls[-1].usage,
        cost_usd=cost,
        cost_note=note,
        cache=serving.cache,
        handover=handed(serving, gateway.models[serving.target]) if serving.target is not None else None,
        propensity=decision.propensity if decision is not None else 1.0,
        ended=serving.ended,
        status=serving.status,
        error=serving.error,
        error_message=serving.error_message,
        stop=serving.stop,
        drops=len(serving.drops),
        drop_report=serving.drops,
        decision_s=serving.decided_s,
        first_byte_s=next((call.first_byte_s for call in calls if call.served), None),
        total_s=time.monotonic() - serving.began,
        response_id=serving.response_id,
        lookups=serving.lookups,
        asked=serving.asked if gateway.keeps_bodies else (),
        cooling=serving.cooling,
        stopped=serving.stopped,
        request=serving.body if gateway.keeps_bodies else None,
        response=b"".join(serving.response) if serving.response is not None else None,
    )


def _memory(states: Mapping[str, State]) -> dict[str, State]:
    """What routers read of a lane's memory: without the digests that only the gateway's own accounts need."""
    kept = {name: state for name, state in states.items() if name != PREFIX_KEY}
    made = artefacts.makers(states)
    if made.marks:
        kept[artefacts.KEY] = replace(made, marks={})
    return kept


def total(calls: tuple[Call, ...]) -> tuple[float | None, str]:
    """What all calls of a turn cost together; None, with the reason, when any part is not known."""
    usd = 0.0
    for call in calls:
        if call.cost_usd is None:
            return None, call.cost_note
        usd += call.cost_usd
    return usd, ""
