"""What an operator writes down: when to go back to one model. Pure.

A condition compares a measure with a bound. It *holds* when the whole interval of the measure is beyond the bound, *does not
hold* when none of it is, and in between, as with too few data, there is *not enough data*. Equal to the bound is not beyond it.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

Measure: TypeAlias = Literal[
    "success_loss",
    "success",
    "saving",
    "cost_per_completed",
    "judge_failures",
    "judge_share",
    "turn_errors",
    "undecided_weeks",
]
Source: TypeAlias = Literal["trials", "canary", "logged", "turns"]
Answer: TypeAlias = Literal["holds", "does not hold", "not enough data"]
CountedAs: TypeAlias = Literal["undecided", "holds", "does not hold"]
"""As what a condition counts that has not enough data; `undecided`: as neither."""

MEASURES: dict[Measure, str] = {
    "success_loss": "success of the one model alone, less that of the router (a share; 0.03 = 3 points lost)",
    "success": "success of the router (a share)",
    "saving": "the share of the one model's cost that routing saves, judges, discarded replies, failed attempts and cold caches "
    "charged; negative when routing costs more",
    "cost_per_completed": "the router's USD per completed task over that of the one model alone (1 = the same)",
    "judge_failures": "the share of judgements asked for that gave no verdict",
    "judge_share": "the share of the spend that went to judges",
    "turn_errors": "the share of turns that ended in an error or were cut",
    "undecided_weeks": "how many reviews in a row, each a week apart, up to this one, could not decide the condition in `of`",
}
COMPARING: tuple[Source, ...] = ("trials", "canary", "logged")
SOURCES: dict[Measure, tuple[Source, ...]] = {
    "success_loss": COMPARING,
    "success": COMPARING,
    "saving": ("turns", *COMPARING),
    "cost_per_completed": COMPARING,
    "judge_failures": ("turns",),
    "judge_share": ("turns",),
    "turn_errors": ("turns",),
    "undecided_weeks": (),
}
"""What a measure can be taken from, the first that there is if a condition does not say."""
SHARES: frozenset[Measure] = frozenset(("success", "judge_failures", "turn_errors"))
"""Counts of counts, whose intervals at 0 and 1 are Wilson's."""


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """A condition for going back to one model.

    `measure`: what is compared. `above`, `below`: the bound, one of the two. `by`: `interval` asks the whole interval to be
    beyond the bound, `estimate` only the figure. `confidence`: of the interval. `source`: what to measure on; the first that the
    file names and the measure can be taken from if absent. `at_least`: tasks, lanes or sessions, of either side where there are
    two, below which there is not enough data. `not_enough_data`: as what that counts; the file's if absent. `of`: for
    `undecided_weeks`, the name of the other condition. `note`: for people.
    """

    measure: Measure
    above: float | None = None
    below: float | None = None
    by: Literal["interval", "estimate"] = "interval"
    confidence: float = 0.95
    source: Source | None = None
    at_least: int = 30
    not_enough_data: CountedAs | None = None
    of: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if (self.above is None) == (self.below is None):
            raise ValueError("a condition has one bound: either `above` or `below`")
        if not 0.5 <= self.confidence < 1.0:
            raise ValueError("`confidence` is 0.5 or more, and less than 1")
        if self.at_least < 1:
            raise ValueError("`at_least` is 1 or more")
        if self.measure == "undecided_weeks":
            if not self.of or self.above is None or self.above < 0:
                raise ValueError(
                    "`undecided_weeks` names another condition in `of`, and has a bound `above` of 0 or more"
                )
        elif self.of:
            raise ValueError("`of` belongs to the measure `undecided_weeks`")
        if self.source is not None and self.source not in SOURCES[self.measure]:
            known = ", ".join(SOURCES[self.measure]) or "none"
            raise ValueError(
                f"`source` = {self.source} does not tell {self.measure}; of these it can be taken: {known}"
            )

    @property
    def bound(self) -> float:
        """The number that is compared with."""
        return self.above if self.above is not None else self.below or 0.0


class Trials(Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks that both did, such as those of `turnout trial`. `capable`, `routed`: MODEL[@HARNESS], as their outcomes name them.
    `outcomes`: a file of outcomes; those of the ledger if absent."""

    capable: str
    routed: str
    outcomes: str = ""


class CanaryArms(Struct, frozen=True, forbid_unknown_fields=True):
    """Lanes of a canary, of which one arm is the router and the other the one model. `name`: of the canary; `routed`: its arm."""

    name: str
    routed: Literal["incumbent", "candidate"] = "incumbent"


class Logged(Struct, frozen=True, forbid_unknown_fields=True):
    """Runs whose model dice chose, with propensities: what the one model alone would have made of them is estimated. `capable`,
    `efficient`: MODEL[@HARNESS]. `routed`: the policy that `logged` the runs, or the `candidate` whose propensities are logged
    too. `outcomes`: a file; those of the ledger if absent."""

    capable: str
    efficient: str
    routed: Literal["logged", "candidate"] = "logged"
    outcomes: str = ""


class Conditions(Struct, frozen=True, forbid_unknown_fields=True):
    """The file of conditions.

    `route`: whose turns are reviewed. `against`: the target that one would go back to; the one that the route falls to if absent.
    `since`: how long the period is. `go_back_when`: `any` condition holds, or `all` do. `not_enough_data`: as what a condition
    counts that has not enough. `trials`, `canary`, `logged`: what to compare on. `conditions`: by name.
    """

    route: str
    conditions: dict[str, Condition]
    against: str = ""
    since: str = "14d"
    go_back_when: Literal["any", "all"] = "any"
    not_enough_data: CountedAs = "undecided"
    trials: Trials | None = None
    canary: CanaryArms | None = None
    logged: Logged | None = None

    def __post_init__(self) -> None:
        if not self.conditions:
            raise ValueError("no conditions: a table [conditions.NAME] is one")
        for name, one in self.conditions.items():
            if one.of and (one.of not in self.conditions or self.conditions[one.of].measure == "undecided_weeks"):
                raise ValueError(
                    f"condition `{name}`: `of` names no other condition with a measure of its own: {one.of}"
                )
            if one.measure != "undecided_weeks" and self.source_of(one) is None:
                tables = " or ".join(f"[{source}]" for source in SOURCES[one.measure])
                raise ValueError(f"condition `{name}`: nothing to take {one.measure} from; it needs a table {tables}")

    def source_of(self, condition: Condition) -> Source | None:
        """What a condition is measured on; None where the file has nothing for it."""
        wanted = (condition.source,) if condition.source is not None else SOURCES[condition.measure]
        return next((one for one in wanted if one == "turns" or getattr(self, one) is not None), None)


def answer(condition: Condition, value: float | None, low: float | None, high: float | None, n: int) -> Answer:
    """What a measured figure says of a condition. `low`, `high`: its interval; `n`: how much it rests on."""
    if value is None or n < condition.at_least:
        return "not enough data"
    if condition.by == "estimate":
        low = high = value
    if low is None or high is None:
        return "not enough data"
    if condition.above is not None:
        return "holds" if low > condition.above else "does not hold" if high <= condition.above else "not enough data"
    bound = condition.bound
    return "holds" if high < bound else "does not hold" if low >= bound else "not enough data"
