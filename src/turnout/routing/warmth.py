"""What providers' prompt caches hold of a lane's conversation, and the price of a switch in its light.

The gateway leaves one `Warmed` event per answered turn; routers read the fold of them by `warmth(turn)`, no I/O, no clock but
`turn.now`. What is kept is of one size however long the conversation: an entry per target, the last few targets only.
"""

import math
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.pricing.cache import CACHED_SHARE, Candidate, SwitchPrice, switch_price
from turnout.pricing.caching import Lifetime, survival
from turnout.pricing.remaining import Remaining, usual
from turnout.routing.core import State, TargetFacts, TargetName, Turn

PLACE = "gateway"
KEY = f"{PLACE}/Warmth"
TARGETS_AT_MOST = 8
"""Targets of a lane that are remembered, those used last."""
NEWEST = 0.3
"""Weight of the newest turn in running means."""
DECAY = 0.9
"""What is left of an earlier turn in the running bias with every further one: about the last ten turns count."""
BIAS_FROM = 3
"""Compared turns from which a bias is stated."""

Cause: TypeAlias = Literal["", "first", "switch", "expiry", "client", "agent", "gateway", "provider"]
"""Why less was read than the lane had written. "": nothing of note was lost. `first`: nothing was warm yet. `switch`: the target
has not seen what another served meanwhile. `expiry`: it was idle too long. `client`: the user went back or changed a message.
`agent`: the agent's program changed tools, instructions or history. `gateway`: an edit of ours. `provider`: none of these; the
provider evicted it or asked another machine."""


class CacheUse(Struct, frozen=True, omit_defaults=True):
    """What one call was expected to read from and write to the target's cache, what was reported, and who broke the prefix.

    Tokens of the target. None = not reported, or nothing to go by. `part`: what of the prompt changed (`tools`, `system`,
    `message`, `rewind`, `truncated`, `compaction`, `prompt`, `reasoning`). `message`: index of the first message that differs,
    `upto`: the last that may be meant where messages are digested in groups. `lost_tokens`: held before and not readable now.
    `idle_s`: since the target was last used in this lane. `bias`: running relative error of the predicted cost of prompts on
    this target in this lane, this call included; positive = predicted too dear. `held_tokens`: what the cache holds from now on,
    for `lifetime`.
    """

    target: str
    prompt_tokens: int = 0
    predicted_read: int = 0
    predicted_write: int = 0
    reported_read: int | None = None
    reported_write: int | None = None
    cause: Cause = ""
    part: str = ""
    message: int | None = None
    upto: int | None = None
    lost_tokens: int = 0
    idle_s: float | None = None
    bias: float | None = None
    held_tokens: int = 0
    lifetime: Lifetime | Literal[""] = ""

    @property
    def broke(self) -> bool:
        """Whether a prefix that was warm, and was still wanted, could not be read."""
        return self.cause not in ("", "first") and self.part != "rewind"


class Digests(Struct, frozen=True, omit_defaults=True):
    """What is kept of a conversation to find where the next one differs; its size is bounded.

    `tools`, `system`: digests. `count`: messages. `blocks`: four bytes for every `group` messages, in order; `tail`: four for
    each of those after them. `settled_size`, `settled_crc`: bytes of all messages that have a block, and a digest over them.
    """

    tools: int = 0
    system: int = 0
    count: int = 0
    group: int = 1
    blocks: bytes = b""
    tail: bytes = b""
    settled_size: int = 0
    settled_crc: int = 0


class Warmed(Struct, frozen=True, tag="warmed", tag_field="event"):
    """A target answered a turn of this lane, so its cache holds the conversation so far.

    `count`, `size`: messages and bytes of the prompt, as the client sent it. `held_tokens`: how much of it can be read next
    time. `turns`: answered in the lane, this one included. `kept`: messages and bytes up to which the conversation is what it
    was, None when it only grew. `shape`: digest of our own lasting edits. `lifetime`: of what was written; "" = as before.
    `share`: of the new tokens, those that were written, None when not reported. `trust`: reported reads over those predicted,
    None when neither tells. `predicted`, `reported`: cost of the prompt in any one unit, 0 when not compared. `digests`: of
    the conversation.
    """

    target: str
    at: float
    count: int
    size: int
    prompt_tokens: int
    output_tokens: int
    held_tokens: int
    turns: int = 1
    kept: tuple[int, int] | None = None
    shape: int = 0
    lifetime: Lifetime | Literal[""] = ""
    share: float | None = None
    trust: float | None = None
    predicted: float = 0.0
    reported: float = 0.0
    digests: Digests | None = None


class Warm(Struct, frozen=True, omit_defaults=True):
    """What one target's cache holds. Fields as those of `Warmed`; `trust` and `share` are running means, `predicted` and
    `reported` sums over the newest turns, `compared` the number of turns in them."""

    target: str
    at: float
    count: int
    size: int
    tokens: int
    prompt_tokens: int
    output_tokens: float = 0.0
    shape: int = 0
    lifetime: Lifetime | Literal[""] = ""
    share: float = CACHED_SHARE
    trust: float = 1.0
    predicted: float = 0.0
    reported: float = 0.0
    compared: int = 0

    @property
    def bias(self) -> float | None:
        """Relative error of the predicted cost of prompts over the newest turns; None before there are a few."""
        if self.compared < BIAS_FROM or self.reported <= 0.0:
            return None
        return self.predicted / self.reported - 1.0

    def cut(self, count: int, size: int) -> "Warm":
        """What is left when only so many messages and bytes of the prompt are still what they were."""
        if self.count <= count or not self.size:
            return self
        left = min(size / self.size, 1.0)
        return replace(
            self,
            count=count,
            size=min(size, self.size),
            tokens=int(self.tokens * left),
            prompt_tokens=int(self.prompt_tokens * left),
        )


class Warmth(State, frozen=True):
    """The caches of one lane. `turns`: answered so far. `target`: who answered last; `prompt_tokens` and `size`: of that prompt.
    `growth_tokens`, `pace_s`: running means, new tokens and seconds from one turn to the next. `warm`: by target, newest last."""

    events: ClassVar[tuple[type[Struct], ...]] = (Warmed,)
    recent: ClassVar[bool] = True

    turns: int = 0
    target: str = ""
    at: float = 0.0
    prompt_tokens: int = 0
    size: int = 0
    growth_tokens: float = 0.0
    pace_s: float = 0.0
    warm: tuple[Warm, ...] = ()

    def of(self, target: str) -> Warm | None:
        """What this target's cache holds; None when it has not answered in this lane lately."""
        return next((one for one in self.warm if one.target == target), None)

    def after(self, event: Any) -> "Warmth":
        """With the answered turn."""
        before = self.of(event.target)
        kept = event.kept
        others = tuple(one if kept is None else one.cut(*kept) for one in self.warm if one.target != event.target)
        return Warmth(
            turns=max(self.turns + 1, event.turns),
            target=event.target,
            at=event.at,
            prompt_tokens=event.prompt_tokens,
            size=event.size,
            growth_tokens=self._growth(event),
            pace_s=_mean(self.pace_s, max(event.at - self.at, 0.0), self.turns > 1) if self.turns else 0.0,
            warm=(*others[-(TARGETS_AT_MOST - 1) :], warm_after(before, event)),
        )

    def _growth(self, event: Warmed) -> float:
        """Running mean of new tokens a turn. Another vocabulary is told apart by the bytes; a shrunken prompt tells nothing."""
        if not self.turns or not self.size or event.size <= self.size or not event.size:
            return self.growth_tokens
        grown = (event.size - self.size) * event.prompt_tokens / event.size
        return _mean(self.growth_tokens, grown, self.growth_tokens > 0.0)

    def candidate(self, facts: TargetFacts, now: float) -> Candidate | None:
        """This target as it could serve the next turn, with what its cache is expected to hold at `now` (Unix seconds); None when
        it is unpriced. Counts of prompts are in the tokens of the target that answered last."""
        if facts.rates is None:
            return None
        warm, caching = self.of(facts.name), facts.caching
        if warm is None:
            known = [one.output_tokens for one in self.warm]
            return Candidate(facts.rates, 0.0, sum(known) / len(known) if known else 0.0, lifetime=_written(facts, ""))
        held = 0.0
        if caching is not None:
            held = caching.held(warm.tokens, now - warm.at, warm.lifetime or None) * warm.trust
        return Candidate(
            facts.rates, held, warm.output_tokens, warm.share, self._ratio(warm), _written(facts, warm.lifetime)
        )

    def _ratio(self, warm: Warm) -> float:
        """Tokens of this target for one of the target that answered last."""
        if warm.target == self.target or not (warm.size and warm.prompt_tokens and self.size and self.prompt_tokens):
            return 1.0
        return (warm.prompt_tokens / warm.size) / (self.prompt_tokens / self.size)


class Prefix(State, frozen=True):
    """The conversation of a lane as it was last sent. For the gateway alone."""

    events: ClassVar[tuple[type[Struct], ...]] = (Warmed,)
    recent: ClassVar[bool] = True

    digests: Digests | None = None

    def after(self, event: Any) -> "Prefix":
        """The conversation of the newest turn."""
        return Prefix(event.digests)


def warmth(turn: Turn) -> Warmth:
    """What caches hold of this turn's lane; empty when nothing is known."""
    state = turn.memory.get(KEY)
    if state is None:
        return _COLD
    return state if isinstance(state, Warmth) else msgspec.convert(state, Warmth)


def price_of_switch(
    turn: Turn,
    stay: TargetName,
    go: TargetName,
    *,
    returns: float = 0.0,
    extra_usd: float = 0.0,
    remaining: Remaining | None = None,
) -> SwitchPrice | None:
    """What it costs to have `go` serve from this turn on instead of `stay`, over the turns this lane may still have; negative
    when it saves. None when either is unpriced.

    `returns`: the chance that the work comes back to `stay`, which may have expired by then. `remaining`: how sessions like this
    go on; by default what is usual for the kind of agent. While nothing is known of the lane, or its history has just been
    replaced, neither target holds anything that could be lost: the price is that of the extra alone.
    """
    seen = _COLD if turn.signals.compacted else warmth(turn)
    a, b = _candidate(seen, turn, stay), _candidate(seen, turn, go)
    if a is None or b is None:
        return None
    if not seen.turns:
        return SwitchPrice(extra_usd, 0.0, 0.0, 0.0, extra_usd)
    stays = (remaining or usual(turn.agent.kind)).stays(seen.turns + 1)
    away_s = sum(stays) * seen.pace_s
    return switch_price(
        a,
        b,
        prefix_tokens=seen.prompt_tokens,
        growth_tokens=seen.growth_tokens,
        turns=stays,
        returns=returns,
        survival=survival(away_s, _lifetime(turn.targets[stay], seen.of(stay))),
        extra_usd=extra_usd,
    )


def _candidate(seen: Warmth, turn: Turn, name: TargetName) -> Candidate | None:
    facts = turn.targets.get(name)
    return None if facts is None else seen.candidate(facts, turn.now)


def _lifetime(facts: TargetFacts, warm: Warm | None) -> Lifetime:
    if warm is not None and warm.lifetime:
        return warm.lifetime
    return facts.caching.lifetime if facts.caching is not None else "5m"


def _written(facts: TargetFacts, lifetime: Lifetime | Literal[""]) -> Lifetime:
    """The lifetime that writes are charged by."""
    return lifetime or (facts.caching.lifetime if facts.caching is not None else "5m")


def warm_after(before: Warm | None, event: Warmed) -> Warm:
    """What the event's target holds after it. `before`: what it held."""
    share, trust, output = CACHED_SHARE, 1.0, float(event.output_tokens)
    predicted = reported = 0.0
    compared = 0
    if before is not None:
        share, trust = before.share, before.trust
        output = _mean(before.output_tokens, event.output_tokens)
        predicted, reported, compared = before.predicted, before.reported, before.compared
    if event.share is not None:
        share = _mean(share, event.share)
    if event.trust is not None:
        trust = _mean(trust, min(event.trust, 1.0))
    if event.reported > 0.0:
        predicted, reported = predicted * DECAY + event.predicted, reported * DECAY + event.reported
        compared += 1
    return Warm(
        target=event.target,
        at=event.at,
        count=event.count,
        size=event.size,
        tokens=event.held_tokens,
        prompt_tokens=event.prompt_tokens,
        output_tokens=output,
        shape=event.shape,
        lifetime=event.lifetime or (before.lifetime if before is not None else ""),
        share=share,
        trust=trust,
        predicted=predicted,
        reported=reported,
        compared=compared,
    )


def _mean(mean: float, newest: float, known: bool = True) -> float:
    return mean + NEWEST * (newest - mean) if known and math.isfinite(mean) else newest


_COLD = Warmth()
