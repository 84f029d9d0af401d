"""What a record tells of a turn's answer, for reckoning what it would have cost elsewhere, and how it would have gone."""

from collections.abc import Iterable, Sequence

from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.asked import Asked
from turnout.routing.beside import Flip, changed, side, weighed
from turnout.routing.core import ANSWERING, Answer, Decision, Why
from turnout.routing.spending import Answered

_REWRITTEN = ("client", "agent")
"""Who changes a conversation so that no target's cache holds what follows."""


def answered(record: TurnRecord) -> Answered | None:
    """The answer of a turn; None when nobody answered it, or its usage is not known."""
    call = next((call for call in record.calls if call.served), None)
    usage = call.usage if call is not None else None
    if call is None or usage is None:
        return None
    prompt, output, use = usage.prompt_tokens, usage.output_tokens, record.cache
    if prompt is None or output is None:
        return None
    new, written = prompt - (usage.cache_read_tokens or 0), usage.cache_write_tokens
    return Answered(
        at=record.at,
        target=call.target,
        prompt_tokens=prompt,
        output_tokens=output,
        held_tokens=use.held_tokens if use is not None else prompt,
        lifetime=use.lifetime if use is not None else "",
        share=written / new if written and new > 0 else None,
        unchanged_tokens=use.predicted_read if use is not None and use.cause in _REWRITTEN else None,
    )


def decided_target(record: TurnRecord) -> str:
    """The target that was chosen, whoever served in the end."""
    return record.decided or record.target


def flip(record: TurnRecord, was: str, was_why: Why | None, now: str, now_why: Why) -> Flip:
    """A turn that a router beside would have given to `now` instead of `was`."""
    return Flip(
        record.id,
        record.at,
        record.route,
        record.session,
        record.agent,
        side(was, was_why),
        side(now, now_why),
        changed(was_why, now_why),
        weighed(now_why),
    )


def aside_usd(record: TurnRecord) -> float | None:
    """What the calls cost that a router made while it decided and that are not the answer; None when that is not known."""
    return _sum(call for call in record.calls if call.purpose != "answer" and not call.served)


def aside_of(record: TurnRecord, heard: Sequence[Asked], decision: Decision) -> float | None:
    """The same for a decision that rests on `heard` of the turn's calls."""
    left = [call for call in record.calls if call.purpose != "answer" or call.served]
    counted: list[Call] = []
    for one in heard:
        found = next((c for c in left if (c.target, c.purpose) == (one.target, one.purpose)), None)
        if found is not None:
            left.remove(found)
            counted.append(found)
    if isinstance(decision, Answer):
        # The reply that is the answer is charged as such: the newest of the target's that may be one.
        drafts = [call for call in counted if call.target == decision.target and call.purpose in ANSWERING]
        if drafts:
            counted.remove(drafts[-1])
    return _sum(counted)


def _sum(calls: Iterable[Call]) -> float | None:
    total = 0.0
    for call in calls:
        if call.cost_usd is None:
            return None
        total += call.cost_usd
    return total
