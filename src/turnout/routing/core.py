"""The vocabulary of routing: what a router knows, what it may ask for, and what it decides.

A router is a frozen, tagged struct with a `route` method; its fields are its TOML schema. `route` returns a decision, or is
a generator that yields the model calls it wants and returns a decision. Routers do no I/O, keep no state of their own and
know no clock but `Turn.now`.
"""

import hashlib
from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Literal, NewType, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Edit, Format, Reply, Settings
from turnout.errors import UpstreamFault
from turnout.pricing.caching import Caching
from turnout.pricing.rates import Rates
from turnout.signals import Signals

TargetName = NewType("TargetName", str)
"""Name of a configured target. The loader checks every field of this type in every router."""

Rung: TypeAlias = Literal[
    "header",
    "claude_code",
    "codex",
    "opencode",
    "affinity",
    "session_header",
    "metadata",
    "cache_key",
    "chain",
    "fingerprint",
    "none",
]
"""Which rung of the identity ladder named a lane, surest first."""


BACKGROUND_AGENT = "~background"
"""The agent of lanes for a program's calls beside the work: titles, summaries, suggestions."""
UNNAMED_CHILD = "~subagent"
"""The agent of lanes for delegated work that does not say whose it is: apart from the parent's, and surely of no one child."""


class Lane(Struct, frozen=True):
    """Whose turn this is: tenant, session and agent. State never crosses lanes.

    `rung`: where the identity came from. `confident`: whether a latch may be tied to it (not for fingerprints).
    """

    tenant: str = ""
    session: str = ""
    agent: str = ""
    rung: Rung = "none"

    @property
    def confident(self) -> bool:
        """Whether two turns of this lane surely belong to one agent of one session."""
        return self.rung not in ("fingerprint", "none") and self.agent != UNNAMED_CHILD

    @property
    def identified(self) -> bool:
        """Whether anything can be kept for this lane at all."""
        return self.rung != "none"

    @property
    def key(self) -> str:
        """One string for stores; "" when there is no identity at all."""
        return "" if self.rung == "none" else f"{self.tenant}\x1f{self.session}\x1f{self.agent}"


class AgentInfo(Struct, frozen=True):
    """Which program and which of its agents sent the turn.

    `program`: `claude-code`, `codex`, ... where known. `kind`: `main`, `subagent` (delegated work), `background` (titles,
    summaries, compaction and the like). `parent`: the parent agent's id.
    """

    program: str = ""
    kind: Literal["main", "subagent", "background"] = "main"
    parent: str = ""
    version: str = ""


class TargetFacts(Struct, frozen=True):
    """What a router may know of a target at this moment.

    `context_window`: tokens, None when unknown. `healthy`: False while the target is cooling down. Prices are USD per
    million tokens, None when unpriced; `rates` holds them all, long-context tiers too. `caching`: the rules of its prompt cache,
    None when nothing is known of one. `capabilities`: declared abilities (`tools`, `images` ...), None = undeclared.
    """

    name: TargetName
    model: str
    format: Format
    context_window: int | None = None
    healthy: bool = True
    capabilities: frozenset[str] | None = None
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    rates: Rates | None = None
    caching: Caching | None = None


class Failure(Struct, frozen=True):
    """A call that failed in a way a router can act on. `kind`: see UpstreamFault. `reason`: why this side did not make the call,
    `breaker` (the judge failed too often of late) or `budget` (the route's judges have had their share); "" when it was made.
    `deadline`: it was not made, or was broken off, since its `by_s` had come."""

    kind: UpstreamFault
    message: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    reason: Literal["", "breaker", "budget", "deadline"] = ""


Outcome: TypeAlias = Reply | Failure


ANSWERING = frozenset(("answer", "draft", "refine", "step"))
"""Purposes of calls whose reply may become the turn's answer, or hold it. All others are opinions that a turn can do
without: hosts make them over connections of their own, once, and not at all while they mostly fail or have had their share of
the money."""


class Expectation(Protocol):
    """What a reply must be to be of use."""

    def missed(self, reply: Reply) -> str:
        """Why `reply` is of no use, in a word; "" when it is."""
        ...


class Ask(Struct, frozen=True):
    """A model call a router wants made and given back whole. `purpose`: draft, judge, vote, ... (for the ledger and prices).

    `settings`: how to ask; None = as the client asked, for a draft, and plain defaults for other purposes. `once`: a name under
    which only one of concurrent turns of the lane makes the call; the others get a Failure of kind `cancelled`. `expects`: what
    the reply must be; one that is not counts as a failure of the judge's. `tells`: what a client that waits may be told when the
    call begins. `by_s`: seconds after the turn's beginning at which the call has failed; None = the turn's own deadline.
    """

    target: TargetName
    conversation: Conversation
    purpose: str = "draft"
    within_s: float = 120.0
    edits: tuple[Edit, ...] = ()
    settings: Settings | None = None
    once: str = ""
    expects: Expectation | None = None
    tells: str = ""
    by_s: float | None = None


Source: TypeAlias = Literal[
    "override", "signals", "hold", "judge", "latch", "vote", "default", "fixed", "random", "pin", "classifier",
    "advisor", "fallback", "fit", "canary", "subagent", "background", "fault", "learned", "price", "retrieval",
]  # fmt: skip
"""Who decided."""


class Why(Struct, frozen=True, omit_defaults=True):
    """The explanation of a decision.

    `sentence`: for people. `score` in [-1, 1] (positive = capable), `confidence` in [0, 1], `threshold`: where the router has
    them. `values`: the signal values the decision rests on, by name. `rule`: the rule that fired. `basis`: the router's
    settings that they were weighed with, and the name of the calculation, so that the decision can be made again from its
    record. `price`: of the change of target that was considered. `place`: of the nested router that decided, "" for the
    route's own. `consensus`: how far several models agreed on the answer, in a line that a header can hold. `abstained`: the
    router had nothing to go by and named its default: a router around it uses its own instead, and nothing is pinned to it.
    """

    source: Source
    sentence: str
    rule: str = ""
    score: float | None = None
    confidence: float | None = None
    threshold: float | None = None
    values: dict[str, Any] = {}
    basis: dict[str, Any] = {}
    place: str = ""
    abstained: bool = False
    price: dict[str, Any] = {}
    consensus: str = ""

    def without_words(self) -> "Why":
        """The same without what a judge wrote: its reasons, its plan, the texts of its answer."""
        values = _wordless(self.values)
        return self if values == self.values else msgspec.structs.replace(self, values=values)


def _wordless(values: Any) -> Any:
    if isinstance(values, list):
        return [_wordless(one) for one in values]
    if not isinstance(values, dict):
        return values
    kept = {key: _wordless(value) for key, value in values.items() if key not in _WRITTEN}
    if isinstance(verdict := kept.get("verdict"), dict):
        kept["verdict"] = {key: value for key, value in verdict.items() if isinstance(value, bool | int | float)}
    return kept


_WRITTEN = frozenset(("verdict_reason", "crux", "plan"))
"""Names of values that hold a judge's words."""


def taken_over(why: Why, chosen: str, by: str) -> Why:
    """The explanation of a choice that could not serve the turn, so that another target did."""
    sentence = f"{chosen} could not serve the turn, so {by} did. {why.sentence}"
    return msgspec.structs.replace(why, source="fallback", sentence=sentence)


class Placed(Struct, frozen=True):
    """An event remembered at the place of a nested router."""

    place: str
    event: Struct


class Forward(Struct, frozen=True):
    """Decision: the host makes the last call and streams it.

    `fallbacks`: tried in order before the first content byte has gone out. `edits`: changes on the way to the target.
    `rewrite`: replaces the conversation (re-encodes the body). `propensity`: probability with which this target was drawn.
    `remember`: events for the lane's memory, committed before the reply's terminal event goes out. `failure`: no call is to be
    made any more, and this is what the client is told.
    """

    target: TargetName
    why: Why
    fallbacks: tuple[TargetName, ...] = ()
    edits: tuple[Edit, ...] = ()
    rewrite: Conversation | None = None
    propensity: float = 1.0
    remember: tuple[Struct, ...] = ()
    failure: Failure | None = None

    def __iter__(self) -> "Asking[Decision]":
        return _finished(self)


class Answer(Struct, frozen=True):
    """Decision: a reply given while routing is the answer; the host plays it back whole."""

    reply: Reply
    target: TargetName
    why: Why
    propensity: float = 1.0
    remember: tuple[Struct, ...] = ()

    def __iter__(self) -> "Asking[Decision]":
        return _finished(self)


Decision: TypeAlias = Forward | Answer


def _finished(decision: Decision) -> Generator[tuple[Ask, ...], tuple[Outcome, ...], Decision]:
    """A decision is finished work: iterating it asks nothing and returns itself, so `yield from` composes both kinds."""
    return decision
    yield ()


D = TypeVar("D")
Asking: TypeAlias = Generator[tuple[Ask, ...], tuple[Outcome, ...], D]
"""A procedure that asks models on the way to a result of type `D`."""

Routed: TypeAlias = Decision | Asking[Decision] | Generator[tuple[Any, ...], tuple[Any, ...], Decision]
"""What `route` returns: a decision, or the steps to one: calls of models, and of other kinds that hosts know (look-ups)."""


class Router(Protocol):
    """Anything with `route`. `otherwise`: the target a host falls to when the router raises.

    A router's field of this type holds a nested router: in a configuration a table with a `type`, or a target's name.
    """

    def route(self, turn: "Turn") -> Routed: ...

    @property
    def otherwise(self) -> TargetName: ...


S = TypeVar("S", bound="State")


class State(Struct, frozen=True):
    """What a router remembers of a lane: a pure fold of events.

    A subclass names the events it is folded from and says what each does; its defaults are the state of a new lane.
    States are kept by class name, so renaming one forgets it. `recent`: kept at the newest few positions of a conversation only;
    a client that goes back further finds none.
    """

    events: ClassVar[tuple[type[Struct], ...]] = ()
    recent: ClassVar[bool] = False

    def after(self: S, event: Any) -> S:
        """The state after `event`."""
        raise NotImplementedError


class Turn(Struct, frozen=True):
    """Everything a router may know about one turn.

    `memory`: states of this lane by `place/StateName`. `now`: Unix seconds, the only clock. `deadline_s`: seconds left for
    the whole turn, None = no limit. `asked_for`: the model name the client sent. `place`: where a nested router stands.
    `stopped`: canaries of the route that were stopped, by name.
    """

    id: str
    lane: Lane
    conversation: Conversation
    settings: Settings
    signals: Signals
    targets: Mapping[TargetName, TargetFacts]
    memory: Mapping[str, Any] = {}
    now: float = 0.0
    deadline_s: float | None = None
    asked_for: str = ""
    agent: AgentInfo = AgentInfo()
    place: str = ""
    stopped: frozenset[str] = frozenset()

    def recall(self, kind: type[S]) -> S:
        """What this lane remembers of `kind` at this place; a new state when nothing."""
        state = self.memory.get(f"{self.place}/{kind.__name__}")
        if state is None:
            return kind()
        if isinstance(state, kind):
            return state
        return msgspec.convert(state, kind)

    def draw(self, salt: str, per: Literal["turn", "lane"] = "turn") -> float:
        """A number in [0, 1) from a hash of ids: a router's only dice. The same turn (or lane) and salt draw the same."""
        subject = self.id if per == "turn" else self.lane.key or self.id
        digest = hashlib.blake2b(f"{salt}\x1f{self.place}\x1f{subject}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / 2**56

    def at(self, place: str) -> "Turn":
        """This turn as a nested router at `place` sees it: with its own memory and dice."""
        return msgspec.structs.replace(self, place=f"{self.place}/{place}" if self.place else place)


def ask(
    target: TargetName,
    conversation: Conversation,
    purpose: str = "draft",
    *,
    within_s: float = 120.0,
    edits: tuple[Edit, ...] = (),
    settings: Settings | None = None,
    once: str = "",
    expects: Expectation | None = None,
) -> Asking[Outcome]:
    """`outcome = yield from ask(...)`: one model call."""
    (outcome,) = yield (Ask(target, conversation, purpose, within_s, edits, settings, once, expects),)
    return outcome


def ask_all(*asks: Ask) -> Asking[tuple[Outcome, ...]]:
    """`outcomes = yield from ask_all(a, b)`: several model calls at once; outcomes in the order of the asks."""
    return (yield asks)


def nested(place: str, router: Router, turn: Turn) -> Asking[Decision]:
    """`decision = yield from nested("inner", router, turn)`: another router's decision, its memory kept at `place`, which the
    explanation names."""
    inner = turn.at(place)
    decision: Decision = yield from router.route(inner)
    placed = tuple(e if isinstance(e, Placed) else Placed(inner.place, e) for e in decision.remember)
    why = decision.why if decision.why.place else msgspec.structs.replace(decision.why, place=inner.place)
    return msgspec.structs.replace(decision, remember=placed, why=why)
