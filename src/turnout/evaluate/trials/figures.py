"""What the ledger knows of one run: its turns and the outcomes that were told of it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from turnout.evaluate.outcomes import Call
from turnout.ledger.outcome import Outcome
from turnout.ledger.trace import TurnRecord
from turnout.routing.core import ANSWERING
from turnout.signals import Signals
from turnout.signals.course import CRITICAL, WEIGHT


class Figures(Struct, frozen=True, omit_defaults=True):
    """Turns and outcomes of a session.

    `turns`: without those that were `refused` before routing. `cost_usd` None = unknown, and `cost_note` says why; `known_usd`:
    the known part. `judge_usd`: spent on judges. Tokens over all calls, None where a call did not report its use. `calls`: each
    call's use, () where one is unknown. `retries`: attempts of calls beyond the first. `errors`: turns that ended in an error or
    were cut. `tool_calls`: results of tools that came in, `critical`: lanes that ended on an uncleared failure of the environment
    or provider; both None where no signals were kept. `asked_for`: turns by the model they asked for, `served`: by target.
    `policies`: digests of routes. `model_s`: seconds spent in turns. `success`: of the newest outcome that tells, None without.
    `severe`, `rollbacks`, `takeovers`: outcomes that told of damage, of undone work, of a person who took over.
    """

    turns: int = 0
    refused: int = 0
    cost_usd: float | None = None
    cost_note: str = ""
    known_usd: float = 0.0
    judge_usd: float = 0.0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    calls: tuple[Call, ...] = ()
    retries: int = 0
    errors: int = 0
    tool_calls: int | None = None
    critical: int | None = None
    asked_for: dict[str, int] = {}
    served: dict[str, int] = {}
    policies: tuple[str, ...] = ()
    model_s: float = 0.0
    success: bool | None = None
    severe: int = 0
    rollbacks: int = 0
    takeovers: int = 0

    @property
    def cost_gap(self) -> bool:
        """Whether turns were made that cost an unknown amount."""
        return self.turns > 0 and self.cost_usd is None

    @property
    def irreversible(self) -> int | None:
        """Errors that no retry mends: outcomes told as severe failure or rolled back, and lanes that ended on an uncleared
        critical failure; None where the last is unknown and nothing was told."""
        told = self.severe + self.rollbacks
        if self.critical is None:
            return told or None
        return told + self.critical


def figures(turns: Sequence[TurnRecord], outcomes: Iterable[Outcome]) -> Figures:
    """The figures of a run. `turns`: oldest first. `outcomes`: oldest first."""
    heard = [turn for turn in turns if turn.ended != "rejected"]
    calls = [call for turn in heard for call in turn.calls if call.unheard != "breaker"]
    notes = [turn.cost_note or "unknown" for turn in heard if turn.cost_usd is None]
    if not heard:
        notes = ["no turn reached the gateway"]
    known = [call.cost_usd for call in calls if call.cost_usd is not None]
    used = _used(heard)
    told = list(outcomes)
    successes = [found for one in told if (found := _success(one)) is not None]
    tools, critical = _signals(heard)
    return Figures(
        turns=len(heard),
        refused=len(turns) - len(heard),
        cost_usd=None if notes else sum(turn.cost_usd or 0.0 for turn in heard),
        cost_note=notes[0] if notes else "",
        known_usd=sum(known),
        judge_usd=sum(call.cost_usd or 0.0 for call in calls if call.purpose not in ANSWERING),
        input_tokens=None if used is None else sum(one.prompt_tokens for one in used),
        cached_tokens=None if used is None else sum(one.cached_tokens for one in used),
        output_tokens=None if used is None else sum(one.output_tokens for one in used),
        calls=tuple(used or ()),
        retries=sum(call.retries for call in calls),
        errors=sum(turn.ended in ("error", "cut") for turn in heard),
        tool_calls=tools,
        critical=critical,
        asked_for=dict(Counter(turn.asked_for for turn in heard)),
        served=dict(Counter(turn.target for turn in heard if turn.target)),
        policies=tuple(sorted({turn.policy for turn in heard if turn.policy})),
        model_s=sum(turn.total_s for turn in heard),
        success=successes[-1] if successes else None,
        severe=sum(one.severe_failure for one in told),
        rollbacks=sum(one.rollback for one in told),
        takeovers=sum(one.takeover for one in told),
    )


def _success(outcome: Outcome) -> bool | None:
    """Whether the work succeeded; None when the outcome does not tell."""
    if outcome.success is not None:
        return outcome.success
    return False if outcome.severe_failure or outcome.takeover or outcome.rollback else None


def _used(turns: Iterable[TurnRecord]) -> list[Call] | None:
    """What each call used; None where one that got an answer did not say."""
    found = []
    for turn in turns:
        for call in turn.calls:
            usage = call.usage
            if usage is None or usage.prompt_tokens is None or usage.output_tokens is None:
                if call.error or call.unheard:
                    continue
                return None
            cached = min(usage.cache_read_tokens or 0, usage.prompt_tokens)
            found.append(Call(usage.prompt_tokens, cached, usage.output_tokens, call.cost_usd))
    return found


def _signals(turns: Sequence[TurnRecord]) -> tuple[int | None, int | None]:
    """Tool results, and lanes that ended on an uncleared critical failure; None where signals are missing."""
    lanes: dict[str, Signals] = {}
    tools = 0
    for turn in turns:
        if turn.signals is None:
            return None, None
        before = lanes[turn.agent].results if turn.agent in lanes else 0
        # Fewer than before: a conversation began anew, with a summary or from nothing.
        tools += turn.signals.results - (before if turn.signals.results >= before else 0)
        lanes[turn.agent] = turn.signals
    ended = [one.course for one in lanes.values() if one.course is not None]
    return tools, sum(any(mark & WEIGHT == CRITICAL for mark in course.marks) for course in ended)
