"""Whether a judge pays: the share of turns that the cheap model must get through, from prices or from recorded turns. Pure."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from turnout.evaluate.spending import alone_usd
from turnout.evaluate.verdicts import SKIPPED
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing.rates import Rates
from turnout.routing.core import ANSWERING
from turnout.statistics.shares import Share, share


class Economics(Struct, frozen=True):
    """The economics of asking a judge, in USD per turn.

    `weak_usd`, `strong_usd`: a turn by either model; `judge_usd`: a judgement. `break_even`: the share of judged turns that must
    stay with the weak model for the judge to be paid for, judge / (strong - weak); `with_drafts`: the same where the weak reply
    is made before it is judged, and is paid for also where the strong model does the turn again, (weak + judge) / strong. Both
    None where no share would do. `drafts`: which of the two applies. `pays`: whether any share would.
    """

    weak_usd: float
    strong_usd: float
    judge_usd: float
    drafts: bool = True

    @property
    def break_even(self) -> float | None:
        """The share, discarded drafts left out."""
        gap = self.strong_usd - self.weak_usd
        return self.judge_usd / gap if 0.0 <= self.judge_usd < gap else None

    @property
    def with_drafts(self) -> float | None:
        """The share, discarded drafts charged."""
        spent = self.weak_usd + self.judge_usd
        return spent / self.strong_usd if 0.0 <= spent < self.strong_usd else None

    @property
    def needed(self) -> float | None:
        """The one of the two that applies."""
        return self.with_drafts if self.drafts else self.break_even

    @property
    def pays(self) -> bool:
        """Whether there is a share of turns from which on the judge saves money."""
        return self.needed is not None

    def saving_usd(self, kept: float) -> float:
        """What a judged turn saves on average against the strong model alone, when the share `kept` stays with the weak one;
        negative when it costs more."""
        if self.drafts:
            return kept * self.strong_usd - self.weak_usd - self.judge_usd
        return kept * (self.strong_usd - self.weak_usd) - self.judge_usd


class Recorded(Struct, frozen=True):
    """The economics of a route from its turns.

    `judged`: turns with a judgement made and all costs known, `left_out`: with one not known. `kept`: of `judged`, those the
    weak model served. `judge_share`: of the known spend, judges'. `discarded`, `discarded_usd`: weak replies paid for and thrown
    away. `spent_usd`: all that the route's `compared` turns cost; `alone_usd`: the tokens that were served, at the strong
    model's rates, with the cached shares that were reported and what a change of model made cold read too; None without these
    rates. `repriced`: `strong_usd` comes from those rates too, else from the strong model's own turns (`strong_turns`).
    """

    economics: Economics | None
    turns: int
    judged: int
    left_out: int
    kept: Share
    judge_usd: float
    route_usd: float
    discarded: int
    discarded_usd: float
    strong_turns: int
    repriced: bool
    compared: int
    spent_usd: float
    alone_usd: float | None

    @property
    def judge_share(self) -> float | None:
        """The judges' part of the route's known spend."""
        return self.judge_usd / self.route_usd if self.route_usd else None

    @property
    def saved_usd(self) -> float | None:
        """What the route saved against its strong model alone; negative when it cost more."""
        return None if self.alone_usd is None else self.alone_usd - self.spent_usd


def recorded(records: Iterable[TurnRecord], strong: str, rates: Rates | None = None) -> Recorded:
    """The economics of one route. `strong`: the target that takes over; `rates`: its prices, where they are known."""
    turns = [record for record in records if record.calls]
    judged = [record for record in turns if _judgements(record)]
    whole = [record for record in judged if all(call.cost_usd is not None for call in record.calls)]
    drafts = any(call.purpose == "draft" for record in judged for call in record.calls)
    kept = [record for record in whole if record.target != strong]
    weak = [_usd(_cheap(record, strong)) for record in whole if _cheap(record, strong)]
    judge = [_usd(_judgements(record)) for record in whole]
    again = [c.cost_usd for r in turns for c in r.calls if c.served and c.target == strong and c.cost_usd is not None]
    priced = [usd for record in kept if (usd := alone_usd(record, rates)) is not None]
    strong_usd = _mean(priced) if priced else _mean(again)
    weak_usd, judge_usd = _mean(weak), _mean(judge)
    known = weak_usd is not None and strong_usd is not None and judge_usd is not None
    lost = [c for r in turns for c in r.calls if c.purpose == "draft" and not c.served and c.cost_usd]
    both = [(usd, r.cost_usd) for r in turns if r.cost_usd is not None and (usd := alone_usd(r, rates)) is not None]
    return Recorded(
        economics=Economics(weak_usd or 0.0, strong_usd or 0.0, judge_usd or 0.0, drafts) if known else None,
        turns=len(turns),
        judged=len(whole),
        left_out=len(judged) - len(whole),
        kept=share(len(kept), len(whole)),
        judge_usd=sum(_usd(_judgements(record)) for record in turns),
        route_usd=sum(_usd(record.calls) for record in turns),
        discarded=len(lost),
        discarded_usd=_usd(lost),
        strong_turns=len(again),
        repriced=bool(priced),
        compared=len(both),
        spent_usd=sum(spent for _, spent in both),
        alone_usd=sum(alone for alone, _ in both) if both else None,
    )


def _judgements(record: TurnRecord) -> list[Call]:
    return [call for call in record.calls if call.purpose not in ANSWERING and call.unheard not in SKIPPED]


def _cheap(record: TurnRecord, strong: str) -> list[Call]:
    """The calls in which another model than the strong one answered, or drafted."""
    return [call for call in record.calls if call.purpose in ANSWERING and call.target != strong]


def _usd(calls: Sequence[Call]) -> float:
    return sum(call.cost_usd or 0.0 for call in calls)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
