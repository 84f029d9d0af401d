"""What a review measures on: tasks tried by both, lanes of a canary, runs that dice chose, and turns. Pure.

All become rows of numbers that can be summed. A comparison has, for the one model (`capable`) and the router (`routed`): `n` runs
whose success is known and `ok` of them; `costed` runs whose cost is known and their `usd`; `both` runs of which both are known,
with their `paid` USD and `done` successes.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.off_policy import weigh
from turnout.evaluate.outcomes import Outcome
from turnout.evaluate.pairing import pair
from turnout.evaluate.review.conditions import CanaryArms, Logged, Source
from turnout.evaluate.spending import alone_usd
from turnout.evaluate.verdicts import SKIPPED
from turnout.ledger.outcome import Reported
from turnout.ledger.trace import TurnRecord
from turnout.pricing.rates import Rates
from turnout.routing.core import ANSWERING

SIDE = ("n", "ok", "costed", "usd", "both", "paid", "done")
COMPARED = tuple(f"{name}_{arm}" for arm in ("capable", "routed") for name in SIDE)
TURNS = ("turns", "errors", "made", "failed", "priced", "judge_usd", "known_usd", "compared", "spent", "alone")
NOTHING = (0.0,) * len(SIDE)


class Row(Struct, frozen=True):
    """`key` names it where it stands. `at`: Unix seconds, None = not recorded. `cluster`: rows of one cluster are one piece of
    evidence. `said`: what it is, for people. `values`: numbers, by the columns of its evidence."""

    key: str
    at: float | None
    cluster: str
    said: str
    values: tuple[float, ...]


class Evidence(Struct, frozen=True):
    """Rows of one source. `name`: what a row is called; `reason`: why there is nothing, where there is nothing."""

    source: Source
    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    reason: str = ""


class Lane(Struct):
    """A lane of a canary. `usd` None = a turn of it has an unknown cost. `at`: of its newest turn."""

    key: str
    candidate: bool
    at: float
    usd: float | None = 0.0
    success: bool | None = None
    turns: int = 0


def trials(outcomes: Sequence[Outcome], capable: Arm, routed: Arm) -> Evidence:
    """Tasks and trials that both ran."""
    paired = pair(outcomes, capable, routed)
    rows = []
    for unit in paired.units:
        first, second = unit.capable, unit.efficient
        costed = first.cost_usd is not None and second.cost_usd is not None
        told = (at for at in (first.at, second.at) if at is not None)
        said = f"{unit.task}, trial {unit.trial}" if unit.trial else unit.task
        values = (*_side(first, costed), *_side(second, costed))
        rows.append(Row(f"{first.line} {second.line}", max(told, default=None), unit.task, said, values))
    reason = "" if rows else f"no task was tried by both {capable} and {routed} in this period"
    return Evidence("trials", "task", COMPARED, tuple(rows), reason)


def canary(lanes: Iterable[Lane], arms: CanaryArms) -> Evidence:
    """Lanes of both arms. Each lane is on one side only: the arms are compared as drawn, not paired."""
    rows = []
    for lane in lanes:
        side = _told(lane.success, lane.usd)
        is_routed = lane.candidate == (arms.routed == "candidate")
        said = f"{'candidate' if lane.candidate else 'incumbent'}, {lane.turns} turns"
        values = (*NOTHING, *side) if is_routed else (*side, *NOTHING)
        rows.append(Row(lane.key, lane.at, lane.key, said, values))
    reason = "" if rows else f"no lane of the canary `{arms.name}` ended in this period"
    return Evidence("canary", "lane", COMPARED, tuple(rows), reason)


def logged(outcomes: Sequence[Outcome], capable: Arm, efficient: Arm, how: Logged) -> Evidence:
    """Runs that dice chose, each with what came of it and what the one model is expected to have made of it (doubly robust)."""

    def refused(reason: str) -> Evidence:
        return Evidence("logged", "run", COMPARED, (), reason)

    found = weigh(outcomes, capable, efficient, "capable")
    if found is None:
        return refused("no run of this period has a propensity")
    routed = weigh(outcomes, capable, efficient, "candidate") if how.routed == "candidate" else None
    for weighed in (found, routed):
        if weighed is not None and weighed.refused:
            return refused(weighed.refused)
    successes = [float(one.success) for one in found.logged]
    alone = found.robust(successes)
    as_routed = routed.robust(successes) if routed is not None else successes
    # A cost that is not known leaves the costs of both sides.
    priced = found.priced()
    paid = [one.cost_usd or 0.0 for one in priced.logged]
    usd = dict(zip((one.line for one in priced.logged), priced.robust(paid), strict=True))
    routed_paid = routed.priced().robust(paid) if routed is not None else paid
    routed_usd = dict(zip((one.line for one in priced.logged), routed_paid, strict=True))
    rows = []
    for one, expected, came in zip(found.logged, alone, as_routed, strict=True):
        sides = (_expected(expected, usd.get(one.line)), _expected(came, routed_usd.get(one.line)))
        rows.append(Row(str(one.line), one.at, one.task, f"{one.task} by {one.arm}", (*sides[0], *sides[1])))
    return Evidence("logged", "run", COMPARED, tuple(rows))


def turn(record: TurnRecord, rates: Rates | None) -> Row:
    """A turn. `rates`: of the one model."""
    judgements = [call for call in record.calls if call.purpose not in ANSWERING and call.unheard not in SKIPPED]
    known = [call for call in record.calls if call.cost_usd is not None]
    alone = alone_usd(record, rates) if record.cost_usd is not None else None
    judges = sum(call.cost_usd or 0.0 for call in known if call.purpose not in ANSWERING)
    values = (
        float(record.ended != "rejected"),
        float(record.ended in ("error", "cut")),
        float(len(judgements)),
        float(sum(bool(call.unheard) for call in judgements)),
        float(bool(known)),
        judges,
        sum(call.cost_usd or 0.0 for call in known),
        float(alone is not None),
        (record.cost_usd or 0.0) if alone is not None else 0.0,
        alone or 0.0,
    )
    session = f"{record.tenant} {record.session}" if record.session else record.id
    return Row(record.id, record.at, session, record.target, values)


def turns(rows: Sequence[Row]) -> Evidence:
    """The turns of a route."""
    return Evidence(
        "turns", "turn", TURNS, tuple(rows), "" if rows else "no turn of the route is recorded in this period"
    )


class Lanes:
    """Finds the lanes of a canary among turns, and then their outcomes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lanes: dict[tuple[str, str, str], Lane] = {}
        self._of_turn: dict[str, Lane] = {}
        self._main: dict[tuple[str, str], Lane] = {}

    def turn(self, record: TurnRecord) -> None:
        """A turn of the route, in the order its lane went."""
        mark = record.why.values.get("canary") if record.why is not None else None
        if not isinstance(mark, dict) or mark.get("name") != self._name:
            return
        key = (record.tenant, record.session, record.agent)
        lane = self._lanes.get(key)
        if lane is None:
            named = " ".join(part for part in key if part)
            lane = self._lanes[key] = Lane(named, mark.get("arm") == "candidate", record.at)
        lane.at = max(lane.at, record.at)
        lane.turns += 1
        lane.usd = None if lane.usd is None or record.cost_usd is None else lane.usd + record.cost_usd
        self._of_turn[record.id] = lane
        if record.agent_kind == "main":
            self._main.setdefault(key[:2], lane)

    def outcome(self, reported: Reported) -> None:
        """An outcome: it is that of its turn's lane, else of its session's main lane. The first that tells counts."""
        outcome = reported.outcome
        lane = self._of_turn.get(outcome.turn) if outcome.turn else self._main.get((outcome.tenant, outcome.session))
        if lane is not None and lane.success is None:
            lane.success = outcome.solved

    @property
    def turns(self) -> list[str]:
        """The turns that belong to lanes of the canary."""
        return list(self._of_turn)

    @property
    def sessions(self) -> list[str]:
        """The sessions that have such a lane."""
        return sorted({session for _, session, _ in self._lanes if session})

    def lanes(self) -> tuple[Lane, ...]:
        """All lanes found."""
        return tuple(self._lanes.values())


def _side(run: Outcome, costed: bool) -> tuple[float, ...]:
    return _told(run.success, run.cost_usd if costed else None)


def _told(success: bool | None, usd: float | None) -> tuple[float, ...]:
    known, costed = float(success is not None), float(usd is not None)
    both = known * costed
    return known, float(bool(success)), costed, usd or 0.0, both, (usd or 0.0) * both, float(bool(success)) * both


def _expected(success: float, usd: float | None) -> tuple[float, ...]:
    costed = float(usd is not None)
    return 1.0, success, costed, usd or 0.0, costed, usd or 0.0, success * costed
