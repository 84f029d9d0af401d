"""The cache ledger: what each turn was expected to read from its target's prompt cache, what it did read, and who broke the
prefix where it fell short.

Worked out once per answered turn, while its terminal is held back, and only for lanes with an identity at targets whose caching
is known and for prompts long enough to be cached at all. What it finds goes into the lane's memory (`routing.warmth`), where
routers read it, and into the turn's record.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple
from zlib import crc32

from msgspec.structs import replace

from turnout.conversation import Edit, Instruction, Note, Usage
from turnout.gateway.digests import Prompt, prompt_of
from turnout.pricing.caching import Caching, Lifetime, survival
from turnout.pricing.rates import Rates
from turnout.routing.core import Forward, Placed
from turnout.routing.warmth import KEY, PLACE, CacheUse, Cause, Digests, Prefix, Warm, Warmed, Warmth, warm_after
from turnout.signals import real_user_text
from turnout.upstream.models import Model

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving

PREFIX_KEY = f"{PLACE}/{Prefix.__name__}"
CONFIRMED = 0.9
"""Share of what was held that the provider must report as read to have the last word: then nothing broke."""
MISSED = 0.5
"""Share of the predicted reads below which the reported ones are a miss."""
NOTE_BYTES_A_TOKEN = 4


class Break(NamedTuple):
    """Why a target holds less than it did. `kept`: messages and bytes of the prompt that are still what they were, None when the
    conversation itself is unchanged."""

    cause: Cause
    lost: float
    part: str = ""
    message: int | None = None
    upto: int | None = None
    kept: tuple[int, int] | None = None


_WHOLE = Break("", 0.0)
_COLD = Warmth()


def warmed(serving: "Serving", usage: Usage, model: Model) -> tuple[Placed, CacheUse] | None:
    """The event for the lane's memory and the account for the record, of a turn that `model` has answered; None where nothing
    can be said of it."""
    caching, conversation, request = model.facts.caching, serving.conversation, serving.request
    prompt = usage.prompt_tokens
    decision = serving.decision
    if caching is None or conversation is None or request is None or not prompt:
        return None
    if isinstance(decision, Forward) and decision.rewrite is not None:
        return None
    now = prompt_of(conversation)
    if now is None:
        return None
    lane, before = _before(serving)
    shape = _shape(serving.edits)
    warm = lane.of(model.name)
    found = _changed(serving, now, before)
    idle, left, lost = None, 1.0, [found]
    if warm is not None:
        idle = max(serving.at - warm.at, 0.0)
        left = survival(idle, warm.lifetime or caching.lifetime)
        lost = _losses(warm, found, shape, now, serving)
    broke = _broken(lane, warm, lost, left)
    predicted = 0
    if warm is not None:
        held = (warm.tokens - max(reason.lost for reason in lost)) * left
        predicted = int(min(caching.whole(held) * warm.trust, prompt))
    use = _use(usage, model, caching, warm, broke, predicted, idle)
    digests = now.digests(before if found is _WHOLE else None)
    event = _event(serving, usage, model, caching, now.size, digests, use, shape, found.kept, lane.turns + 1)
    after = warm_after(warm, event)
    bias = None if after.bias is None else round(after.bias, 4)
    lifetime = after.lifetime or caching.lifetime
    return Placed(PLACE, event), replace(use, bias=bias, held_tokens=caching.whole(after.tokens), lifetime=lifetime)


def _before(serving: "Serving") -> tuple[Warmth, Digests | None]:
    """The lane's caches and conversation before this turn.

    Where this conversation continues none that is remembered, those of the lane's last turn: its history has been rewritten, or
    somebody went far back. Titles and the like come as conversations of their own, as does what has had no answer yet.
    """
    states = serving.loaded.states
    lane, prefix = states.get(KEY), states.get(PREFIX_KEY)
    if not isinstance(lane, Warmth) and serving.loaded.latest and serving.agent.kind != "background":
        conversation = serving.conversation
        if conversation is not None and "assistant" in conversation.roles:
            lane, prefix = serving.loaded.latest.get(KEY), serving.loaded.latest.get(PREFIX_KEY)
    return lane if isinstance(lane, Warmth) else _COLD, prefix.digests if isinstance(prefix, Prefix) else None


def _changed(serving: "Serving", now: Prompt, before: Digests | None) -> Break:
    """Where the conversation stopped being what it was, and who did that; `_WHOLE` when it only grew."""
    if before is None or not before.count:
        return _WHOLE
    if serving.signals.compacted and len(now.texts) < before.count:
        return Break("agent", 0.0, "compaction", 0, None, (0, now.head_size))
    if now.tools != before.tools:
        return Break("agent", 0.0, "tools", None, None, (0, 0))
    if now.system != before.system:
        return Break("agent", 0.0, "system", None, None, (0, now.tools_size))
    found = now.differs_at(before)
    if found is None:
        return _WHOLE
    first, last = found
    cause, part = _who(serving, now, before, first)
    return Break(cause, 0.0, part, first, last if last > first else None, (first, now.size_of(first)))


def _who(serving: "Serving", now: Prompt, before: Digests, first: int) -> tuple[Cause, str]:
    """Who changed the message at `first`, as far as the two conversations show."""
    conversation = serving.conversation
    assert conversation is not None  # it has been digested
    roles = conversation.roles
    if first >= len(roles):
        return "client", "rewind"
    if roles[first] in ("system", "developer"):
        return "agent", "system"
    rest = now.rest(first, before)
    if rest == "moved":
        return "agent", "truncated"
    if rest == "gone":
        # What followed is gone as well: somebody went back and took another way from there.
        return "client", "rewind"
    wrote = roles[first] == "user" and real_user_text(conversation.messages[first]) is not None
    return ("client" if wrote else "agent"), "message"


def _losses(warm: Warm, found: Break, shape: int, now: Prompt, serving: "Serving") -> list[Break]:
    """What changes of the prompt have cost `warm`: of the conversation, and of our own edits."""
    lost = [found]
    if found.kept is not None:
        lost = [found._replace(lost=warm.tokens - warm.cut(*found.kept).tokens)]
    if warm.shape != shape:
        lost.append(_edited(warm, now))
    return lost


def _broken(lane: Warmth, warm: Warm | None, lost: list[Break], left: float) -> Break:
    """Why less is held than the lane has written: the reason that costs most. `left`: the chance that nothing has expired."""
    if not lane.turns:
        return Break("first", 0.0)
    if warm is None:
        return Break("switch", lane.prompt_tokens)
    reasons = list(lost)
    if lane.target != warm.target and lane.size:
        reasons.append(Break("switch", (1.0 - min(warm.size / lane.size, 1.0)) * lane.prompt_tokens))
    if left < 1.0:
        reasons.append(Break("expiry", warm.tokens * (1.0 - left)))
    return max(reasons, key=lambda reason: reason.lost)


def _edited(warm: Warm, now: Prompt) -> Break:
    """What a change of our own edits costs: a prompt stands before all but the tools."""
    return Break("gateway", warm.tokens - warm.cut(0, now.tools_size).tokens, "prompt")


def _shape(edits: tuple[Edit, ...]) -> int:
    """A digest of the edits that change the prompt for good. Reasoning that is left out never was in this target's prompt."""
    digest = 0
    for edit in edits:
        if type(edit) is Instruction:
            digest = crc32(edit.text.encode("utf-8", "surrogatepass"), digest) or 1
    return digest


def _use(
    usage: Usage, model: Model, caching: Caching, warm: Warm | None, broke: Break, predicted: int, idle: float | None
) -> CacheUse:
    """The account of the call: the prediction beside the report, and the cause where the two agree that something was lost."""
    prompt, read, written = usage.prompt_tokens or 0, usage.cache_read_tokens, usage.cache_write_tokens
    cause, part, message, upto, lost = broke.cause, broke.part, broke.message, broke.upto, broke.lost
    if cause not in ("", "first") and lost < caching.least_tokens:
        cause = ""
    if read is not None:
        held = caching.whole(warm.tokens) if warm is not None else 0
        unbroken = held if cause != "switch" else predicted + lost
        if cause not in ("", "first") and unbroken and read >= CONFIRMED * min(unbroken, prompt):
            cause = ""
        elif cause == "" and predicted >= caching.least_tokens and read < MISSED * predicted:
            cause, part, message, upto, lost = "provider", "", None, None, predicted - read
        if cause == "switch" and not read and written == 0 and _counts_writes(model.facts.rates):
            cause = ""  # Nothing was marked to be kept, so whoever serves reads it all anew.
    if cause in ("", "first"):
        part, message, upto, lost = "", None, None, 0.0
    return CacheUse(
        target=model.name,
        prompt_tokens=prompt,
        predicted_read=predicted,
        predicted_write=_writes(prompt - predicted, model.facts.rates, caching, warm),
        reported_read=read,
        reported_write=written,
        cause=cause,
        part=part,
        message=message,
        upto=upto,
        lost_tokens=int(lost),
        idle_s=None if idle is None else round(idle, 3),
    )


def _writes(new: int, rates: Rates | None, caching: Caching, warm: Warm | None) -> int:
    """How many of the new tokens are expected to be reported as written; none where writes are not counted."""
    if not _counts_writes(rates):
        return 0
    if not caching.whole(new + (warm.tokens if warm is not None else 0)):
        return 0
    return round(new * (warm.share if warm is not None else _FRESH.share))


def _counts_writes(rates: Rates | None) -> bool:
    """Whether what goes into the cache is charged and reported, as where clients mark what is kept."""
    return rates is not None and rates.cache_write_5m is not None


_FRESH = Warm("", 0.0, 0, 0, 0, 0)


def _event(
    serving: "Serving",
    usage: Usage,
    model: Model,
    caching: Caching,
    size: int,
    digests: Digests,
    use: CacheUse,
    shape: int,
    kept: tuple[int, int] | None,
    turns: int,
) -> Warmed:
    prompt, read, written = use.prompt_tokens, use.reported_read, use.reported_write
    noted = sum(len(edit.text) for edit in serving.edits if type(edit) is Note) // NOTE_BYTES_A_TOKEN
    new = prompt - (read or 0)
    compared = read is not None and use.predicted_read >= caching.least_tokens and not use.broke
    predicted, reported = _costs(use, usage, model.facts.rates)
    return Warmed(
        target=model.name,
        at=serving.at,
        count=digests.count,
        size=size,
        prompt_tokens=prompt,
        output_tokens=usage.output_tokens or 0,
        # Where clients mark what is kept, only what was read and written is; elsewhere all of the prompt, but for a note of ours.
        held_tokens=(read or 0) + (written or 0) if caching.marked else max(prompt - noted, 0),
        turns=turns,
        kept=kept,
        shape=shape,
        lifetime=_lifetime(serving, usage),
        share=written / new if written is not None and new > 0 and model.facts.cache_write_price is not None else None,
        trust=_trust(use, read) if compared or use.cause == "provider" else None,
        predicted=predicted,
        reported=reported,
        digests=digests,
    )


def _trust(use: CacheUse, read: int | None) -> float | None:
    return None if read is None or not use.predicted_read else read / use.predicted_read


def _lifetime(serving: "Serving", usage: Usage) -> Lifetime | Literal[""]:
    """The lifetime of what this call wrote; "" where nothing tells."""
    if usage.cache_write_1h_tokens:
        return "1h"
    if usage.cache_write_1h_tokens == 0 and usage.cache_write_tokens:
        return "5m"
    settings = serving.request.settings if serving.request is not None else None
    return "24h" if settings is not None and settings.extra.get("prompt_cache_retention") == "24h" else ""


def _costs(use: CacheUse, usage: Usage, rates: Rates | None) -> tuple[float, float]:
    """What the prompt was predicted to cost and what it did, in millionths of a USD; zeros where there is nothing to compare."""
    read, plain = use.reported_read, usage.input_tokens
    if rates is None or read is None or plain is None or use.cause == "first":
        return 0.0, 0.0
    at = rates.at_size(use.prompt_tokens) if rates.tiers else rates
    if at.input is None:
        return 0.0, 0.0
    reading = at.input if at.cache_read is None else at.cache_read
    write = at.cache_write_1h if usage.cache_write_1h_tokens else at.cache_write_5m
    writing = at.input if write is None else write
    written = usage.cache_write_tokens or 0
    expected = use.prompt_tokens - use.predicted_read - use.predicted_write
    predicted = expected * at.input + use.predicted_read * reading + use.predicted_write * writing
    return predicted, plain * at.input + read * reading + written * writing
