"""Does it pay? One sentence, the criteria behind it, and how many more tasks an open one would take. Pure.

A criterion is a paired difference with its 95 % interval, and a bound. It holds when the whole interval is on the right side
of the bound, fails when it is on the wrong side, and is open in between.

With a routed run, routing
- pays when the router is no worse than the capable model (by less than the margin), cheaper, and does better than the
  efficient model;
- does not pay when it is worse than the capable model by more than the margin, or no cheaper, or when the efficient model alone
  is no worse than the router and cheaper;
- otherwise there is not enough data.

Without one, the question is whether there is anything to win. It
- does not pay when one model alone is no worse and cheaper;
- pays at best when a choice by what is known without looking at the outcome (the task's other trials, its category) is no worse
  than the better model, and cheaper;
- does not pay when not even the oracle is cheaper than the better model;
- otherwise there is not enough data: tasks that luck decided cannot be told from tasks that a router could know.

Worse is counted in tasks lost less tasks gained, each lost one weighted (`--loss-weight`).
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.evaluate.baselines import Baselines
from turnout.statistics.bootstrap import Terms
from turnout.statistics.interval import Interval
from turnout.statistics.power import POWER, tasks_needed

MARGIN = 0.02
"""How much success per unit may be given up before it counts as worse."""

Answer: TypeAlias = Literal["pays", "does not pay", "not enough data"]

POWER_STATED = (
    f"tasks needed: tasks x ((z(0.975) + z({POWER})) x bootstrap standard error / distance to the bound)^2, for {POWER:.0%} "
    f"power at 5 %, "
    "normal approximation, if the difference and scatter seen so far last"
)


class Criterion(Struct, frozen=True):
    """A difference that has to be below its bound. `holds` None = open. `tasks_needed`: in all, to settle it if what was
    seen lasts; None when it is settled, or no number would."""

    name: str
    difference: Interval
    bound: float
    holds: bool | None
    tasks_needed: int | None = None


class Verdict(Struct, frozen=True):
    """`basis`: whether a routed run was judged, or only what there is to win. `more_tasks`: to settle the open criteria,
    None = none are open, or no number can be stated."""

    answer: Answer
    sentence: str
    basis: Literal["routed", "headroom"]
    margin: float
    criteria: tuple[Criterion, ...]
    more_tasks: int | None
    power: str = POWER_STATED


def verdict(figures: Baselines, margin: float = MARGIN) -> Verdict:
    """The verdict on the routed run where there is one, else on what there is to win."""
    judge = _Judge(figures, margin)
    if not figures.units:
        return judge.says("not enough data", "no task was run by both models", "headroom", [])
    return judge.routed() if "routed" in figures.plays else judge.headroom()


class _Judge:
    def __init__(self, figures: Baselines, margin: float) -> None:
        self.figures = figures
        self.margin = margin

    def routed(self) -> Verdict:
        safe = self.no_worse("routed", "capable", "the router is no worse than the capable model")
        if not self.figures.n_cost:
            return self.says("not enough data", NO_COSTS, "routed", [safe])
        cheaper = self.cheaper("routed", "capable", "the router is cheaper than the capable model")
        better = self.better("routed", "efficient", "the router does better than the efficient model")
        spared = self.no_worse("efficient", "routed", "the efficient model alone is no worse than the router")
        cheapest = self.cheaper("efficient", "routed", "the efficient model alone is cheaper than the router")
        criteria = [safe, cheaper, better, spared, cheapest]
        saving = self.saving("routed", "capable")
        if safe.holds is False:
            return self.says("does not pay", "the router loses more tasks than the margin allows", "routed", criteria)
        if cheaper.holds is False:
            return self.says(
                "does not pay", "the router is no cheaper than the capable model alone", "routed", criteria
            )
        if spared.holds and cheapest.holds:
            return self.says("does not pay", "the efficient model alone does as well for less", "routed", criteria)
        if safe.holds and cheaper.holds and better.holds:
            return self.says("pays", f"as good as the capable model, {saving}", "routed", criteria)
        return self.open("routed", criteria, [safe, cheaper, better])

    def headroom(self) -> Verdict:
        spared = self.no_worse("efficient", "capable", "the efficient model alone is no worse than the capable one")
        if not self.figures.n_cost:
            return self.says("not enough data", NO_COSTS, "headroom", [spared])
        cheaper = self.cheaper("efficient", "capable", "the efficient model is cheaper than the capable one")
        criteria = [spared, cheaper]
        if spared.holds and cheaper.holds:
            said = f"the efficient model alone does as well as the capable one, {self.saving('efficient', 'capable')}"
            if not any(one.success for one in self.figures.plays["oracle"]):
                said += "; neither solves any of these tasks"
            return self.says("does not pay", said, "headroom", criteria)
        behind = self.no_worse("capable", "efficient", "the capable model alone is no worse than the efficient one")
        if cheaper.holds is False and behind.holds:
            return self.says(
                "does not pay", "the capable model alone does as well for less", "headroom", [*criteria, behind]
            )
        best = self.best()
        some = self.cheaper("oracle", best, f"the oracle is cheaper than the {best} model")
        criteria.append(some)
        if some.holds is False:
            return self.says(
                "does not pay", f"not even the oracle is cheaper than the {best} model", "headroom", criteria
            )
        if "held_out" not in self.figures.plays:
            return self.once(criteria, spared)
        known = f"a choice by {self.known()}"
        safe = self.no_worse("held_out", best, f"{known} is no worse than the {best} model")
        saves = self.cheaper("held_out", best, f"{known} is cheaper than the {best} model")
        criteria += [safe, saves]
        if safe.holds and saves.holds:
            said = f"at best, {known} is as good as the {best} model, {self.saving('held_out', best)}"
            return self.says("pays", said, "headroom", criteria)
        if safe.holds is None or saves.holds is None:
            return self.open("headroom", criteria, [safe, saves])
        said = f"{known} is not as good as the {best} model for less; only a routed run can show whether a router knows more"
        return self.says("not enough data", said, "headroom", criteria)

    def once(self, criteria: Sequence[Criterion], spared: Criterion) -> Verdict:
        """Each task was tried once, and nothing but its outcome is known of it."""
        said = NO_CONTROL if spared.holds is None else NO_CONTROL_BUT.format(lead=self.lead())
        unsettled = [one for one in criteria if one.holds is None]
        return self.open("headroom", criteria, unsettled, said, "tell the two apart")

    def no_worse(self, name: str, other: str, said: str) -> Criterion:
        return self.criterion(
            f"{said} (margin {self.margin:g})", {f"risk {name}": 1, f"risk {other}": -1}, "n", self.margin
        )

    def better(self, name: str, other: str, said: str) -> Criterion:
        return self.criterion(said, {f"risk {name}": 1, f"risk {other}": -1}, "n", 0.0)

    def cheaper(self, name: str, other: str, said: str) -> Criterion:
        return self.criterion(said, {f"cost {name}": 1, f"cost {other}": -1}, "costed", 0.0)

    def criterion(self, said: str, top: Terms, bottom: str, bound: float) -> Criterion:
        sums = self.figures.sums
        found = sums.ratio(top, bottom)
        if found.value is None or found.low is None or found.high is None:
            return Criterion(said, found, bound, None)
        holds = True if found.high < bound else False if found.low >= bound else None
        # One task, or tasks that are all alike, show no scatter; that is no evidence.
        if sums.tasks < LEAST_TASKS:
            holds = None
        needed = None
        if holds is None:
            needed = tasks_needed(sums.tasks, found.value - bound, sums.spread(top, bottom))
            needed = None if needed is None else max(needed, LEAST_TASKS, sums.tasks + 1)
        return Criterion(said, found, bound, holds, needed)

    def known(self) -> str:
        """What can be known of a unit without looking at it."""
        units = self.figures.units
        named = ["each task's other trials"] * (len({unit.task for unit in units}) < len(units))
        named += ["the task's category"] * (len({unit.category for unit in units}) > 1)
        return " and ".join(named)

    def best(self) -> str:
        lead = self.figures.success_difference("efficient", "capable").value
        return "efficient" if lead is not None and lead > 0 else "capable"

    def lead(self) -> str:
        lead = self.figures.success_difference("capable", "efficient").value or 0.0
        return f"{abs(lead) * 100:.1f} points {'less' if lead > 0 else 'more'} success"

    def saving(self, name: str, other: str) -> str:
        ratio = self.figures.sums.ratio(f"cost {name}", f"cost {other}")
        if ratio.value is None or ratio.low is None or ratio.high is None:
            return "for less"
        return f"for {ratio.value:.0%} of its cost [{ratio.low:.0%} {ratio.high:.0%}]"

    def open(
        self,
        basis: Literal["routed", "headroom"],
        criteria: Sequence[Criterion],
        unsettled: Sequence[Criterion],
        why: str = "",
        settle: str = "settle it",
    ) -> Verdict:
        undecided = [one for one in unsettled if one.holds is None]
        needed = [one.tasks_needed for one in undecided]
        more = None
        if needed and None not in needed:
            more = max(one for one in needed if one is not None) - self.figures.sums.tasks
        said = why or "it is open whether " + ", and whether ".join(one.name for one in undecided)
        if not undecided and not why:
            said = "better than the efficient model by too little to tell, and worse by too little to tell"
        if more is not None:
            said += f"; about {more:,} more tasks would {settle}"
            if more > HOPELESS * self.figures.sums.tasks:
                said += ", more than anyone will run: it is as close to the bound as can be"
        return self.says("not enough data", said, basis, criteria, more)

    def says(
        self,
        answer: Answer,
        said: str,
        basis: Literal["routed", "headroom"],
        criteria: Sequence[Criterion],
        more: int | None = None,
    ) -> Verdict:
        sentence = f"{answer[0].upper()}{answer[1:]}: {said}."
        return Verdict(answer, sentence, basis, self.margin, tuple(criteria), more)


HOPELESS = 100
"""Times the tasks there are, beyond which more of them are no advice."""

LEAST_TASKS = 10
"""Tasks below which nothing is settled: fewer say too little about their own scatter."""

NO_COSTS = "no unit has a known cost for every arm, and without costs nothing can pay"
NO_CONTROL = (
    "the two models are too close to tell apart, and each task was tried once, "
    "so luck cannot be told from what a router could know (no control); try each at least twice"
)
NO_CONTROL_BUT = (
    "the efficient model alone has {lead}, and each task was tried once, so luck cannot be told from what a router could know "
    "(no control); try each task at least twice"
)
