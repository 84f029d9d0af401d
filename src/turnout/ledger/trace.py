"""The record of a turn: what came in, what was decided and why, what it cost, how it ended."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from turnout.conversation import Usage
from turnout.routing.asked import Asked
from turnout.routing.core import Why
from turnout.routing.handover.note import HandOver
from turnout.routing.retrieval.looked_up import LookedUp
from turnout.routing.warmth import CacheUse
from turnout.signals import Signals, ToolKind

Ended: TypeAlias = Literal["ok", "error", "cut", "client_gone", "rejected"]
"""How a turn ended for the client: `ok`; `error` (an error before any content); `cut` (an in-stream error after content);
`client_gone` (the client hung up); `rejected` (the request was refused before routing)."""


class Call(Struct, frozen=True, omit_defaults=True):
    """One attempt at a model call made for a turn.

    `purpose`: `answer`, `draft`, `judge`, ... `served`: its reply reached the client. `cost_usd` None = unpriced or unknown,
    with `cost_note` saying which. `error`: the fault kind, "" when it went well. `unheard`: why the router could not use what
    came of it, such as `timeout`, `parse_error` or `breaker` (it was not made); "" when it could, and for answers. Times in
    seconds from the turn's start.
    """

    target: str
    model: str
    purpose: str = "answer"
    served: bool = False
    status: int | None = None
    error: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    cost_note: str = ""
    started_s: float = 0.0
    first_byte_s: float | None = None
    ended_s: float | None = None
    retries: int = 0
    reply: str = ""
    unheard: str = ""


class TurnRecord(Struct, frozen=True, omit_defaults=True):
    """One turn, as the ledger keeps it.

    `id`: also the header x-turnout-turn. `at`: Unix seconds. `policy`: digest of the route's configuration. `asked_for`: the
    model name the client sent. `target`, `model`: who served (or would have); `decided`: the target that was chosen, where that
    is another. `signals`: kept unless capture is `none`. `acts`: kinds of the tools the reply called, where known. `request`,
    `response`: bodies, kept under capture `full`. `drops`: how many fields a translation lost, listed in `drop_report`.
    `memory`: the lane's states the router read; `remembered`: events it left. `cost_usd`: sum over all calls; None when any
    part is unknown. `cache`: how the served call used the prompt cache, where that is known. `handover`: the note that the
    target was given because another model had served before; under capture `signals` without what people and models said.
    `propensity`: with which the target was drawn. `lookups`: what the router looked up in a knowledge, in order; facts and whole
    queries under capture `full` only. Under capture `full` also `asked`: what the router asked models while
    deciding and what came of it, `cooling`: the targets that were unhealthy then,
    and `stopped`: the canaries that had been stopped, so that the decision can be made again.
    """

    id: str
    at: float
    route: str
    policy: str = ""
    router: str = ""
    tenant: str = ""
    session: str = ""
    agent: str = ""
    rung: str = "none"
    agent_program: str = ""
    agent_kind: str = "main"
    agent_parent: str = ""
    format: str = ""
    upstream_format: str = ""
    stream: bool = False
    asked_for: str = ""
    target: str = ""
    model: str = ""
    decided: str = ""
    why: Why | None = None
    signals: Signals | None = None
    memory: dict[str, Any] = {}
    remembered: tuple[Any, ...] = ()
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = None
    cost_note: str = ""
    cache: CacheUse | None = None
    handover: HandOver | None = None
    propensity: float = 1.0
    ended: Ended = "ok"
    status: int = 200
    error: str = ""
    error_message: str = ""
    stop: str = ""
    acts: tuple[ToolKind, ...] = ()
    drops: int = 0
    drop_report: tuple[Any, ...] = ()
    decision_s: float = 0.0
    first_byte_s: float | None = None
    total_s: float = 0.0
    response_id: str = ""
    lookups: tuple[LookedUp, ...] = ()
    asked: tuple[Asked, ...] = ()
    cooling: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    request: bytes | None = None
    response: bytes | None = None
