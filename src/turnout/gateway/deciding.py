"""Decides without calling anything: what a route would do with a request, and why."""

import time
from collections.abc import Iterable
from typing import Any

import msgspec

from turnout.conversation import FORMATS, Format
from turnout.errors import ClientError
from turnout.gateway.canary.host import NONE
from turnout.gateway.continuing import continued
from turnout.gateway.opened import Gateway
from turnout.routing.core import Answer, Ask, Decision, Turn
from turnout.routing.stage.explain import explain
from turnout.signals import observe
from turnout.steps import Run
from turnout.wire import CODECS
from turnout.wire.body import fields


async def decide(gateway: Gateway, body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """The decision for `{"format": ..., "request": {...}}`, or for a bare request whose format its shape tells.

    The lane's memory is read, never written. A router that would need model calls first says which under `needs`.
    Raises ClientError.
    """
    form, raw = _unwrapped(body)
    request = CODECS[form].read_request(raw)
    route = gateway.route(request.settings.model)
    by_name = dict(headers)
    conversation, _, lane, agent = await continued(gateway, request, by_name, gateway.tenant(by_name, form))
    signals = observe(conversation, gateway.vocabulary, lane.agent)
    loaded = await gateway.sessions.load(lane, conversation, signals.compacted) if lane.identified else None
    turn = Turn(
        id="decision-only",
        lane=lane,
        conversation=conversation,
        settings=request.settings,
        signals=signals,
        targets=gateway.models.facts(),
        memory=loaded.states if loaded is not None else {},
        now=time.time(),
        deadline_s=gateway.config.server.deadline_s,
        asked_for=request.settings.model,
        agent=agent,
        stopped=gateway.canaries.stopped.get(route.name, NONE),
    )
    try:
        run: Run[Ask, Any, Decision] = Run(route.router.route(turn))
    except ClientError:
        raise
    except Exception as error:
        run = Run(route.fault(error))
    answer: dict[str, Any] = {
        "route": route.name,
        "policy": route.policy,
        "lane": {"session": lane.session, "agent": lane.agent, "rung": lane.rung},
        "signals": signals,
    }
    if not run.done:
        needs = [{"target": ask.target, "purpose": ask.purpose} for ask in run.pending]
        run.close()
        return {**answer, "target": None, "needs": needs}
    explained = explain(run.result.why, signals, turn.memory, turn.targets, turn.now)
    return {**answer, **described(run.result), **({"explained": explained} if explained else {})}


def described(decision: Decision) -> dict[str, Any]:
    """A decision as JSON-able values."""
    why = decision.why
    return {
        "target": decision.target,
        "fallbacks": [] if isinstance(decision, Answer) else list(decision.fallbacks),
        "source": why.source,
        "score": why.score,
        "confidence": why.confidence,
        "threshold": why.threshold,
        "propensity": decision.propensity,
        "why": why,
        "needs": [],
    }


def _unwrapped(body: bytes) -> tuple[Format, bytes]:
    top = fields(body)
    if "request" in top:
        form = msgspec.json.decode(top.get("format", b'"openai_chat"'))
        if form not in FORMATS:
            raise ClientError(f"format must be one of {', '.join(FORMATS)}", param="format")
        return form, bytes(top["request"])
    if "input" in top:
        return "openai_responses", body
    if "system" in top or ("max_tokens" in top and "messages" in top and b'"tool_result"' in body):
        return "anthropic_messages", body
    return "openai_chat", body
