"""How much credit a retrieval trajectory deserves: its route, its reward, the weight of its advantage. Pure.

PathRouter, arXiv 2606.16409: C says whether the answer is right (Eq. 1), P how far what was retrieved overlaps with the gold
evidence (Eq. 2, `scores.path_score`). The two make four routes (Eq. 3); the route scales the group-normalised advantage
(Eq. 4), so a weight never turns its sign.
"""

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.train.scores import best_f1, coverage, exact_match, path_score


class Route(StrEnum):
    """What kind of outcome a trajectory was."""

    FAITHFUL = "faithful_success"
    """Right, and the evidence was retrieved."""
    SHORTCUT = "shortcut_success"
    """Right without the evidence: from memory or by luck."""
    EVIDENCE = "evidence_retrieved"
    """Wrong, though the evidence was there."""
    FAILURE = "joint_failure"
    """Wrong, and the evidence was not retrieved."""


RouteBy: TypeAlias = Literal["both", "correctness", "path", "none"]
"""What decides the weight. `both` is PathRouter; `correctness` and `path` are its ablations by C and by P only; `none` is
plain GRPO."""

FormatRule: TypeAlias = Literal["half_per_step", "every_step"]
"""`half_per_step`: 0.5 for each well-formed step, at most 1 (Graph-R1): an answer given at once reaches 0.5 and so earns
nothing for being right. `every_step`: 1 where every step is well formed, else 0.5 times the share that is."""


class Thresholds(Struct, frozen=True, forbid_unknown_fields=True):
    """`correct`: the F1 from which an answer counts as right (theta_C). `path`: the P from which the evidence counts as
    retrieved (theta_P); its scale depends on the corpus, see `calibrated`."""

    correct: float = 0.5
    path: float = 0.1


class Weights(Struct, frozen=True, forbid_unknown_fields=True):
    """Factors of the advantage. `full`: faithful successes and joint failures. `down`: shortcut successes. `preserve`:
    trajectories that found the evidence and answered wrongly. Never negative."""

    full: float = 1.0
    down: float = 0.5
    preserve: float = 0.3

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more: a negative weight would turn the sign of the advantage")


class Shaping(Struct, frozen=True, forbid_unknown_fields=True):
    """The terms of the reward beside the answer's F1 (Eq. 8-9). A term of 0 is switched off.

    `base`: R_0, what every trajectory begins with. `path`: alpha, the factor of P. `explored`: r_e, for a right answer after
    two look-ups or more. `stopped_early`: r_l, for at most one look-up and too little evidence. `ran_out`: r_o, for no answer
    within the turns or tokens allowed. `repeated`: r_d, times the share of facts that had been returned before, summed over
    look-ups. `format`: how steps are scored; what the answer and the path earn counts only where that score is 1.
    """

    base: float = -1.0
    path: float = 0.5
    explored: float = 0.2
    stopped_early: float = -0.25
    ran_out: float = -0.5
    repeated: float = -0.1
    format: FormatRule = "half_per_step"


class Episode(Struct, frozen=True):
    """What credit reads of one finished trajectory.

    `answer`: None when none was given. `golds`: right answers. `gold_passages`: texts. `lookups`: per look-up, the facts
    returned. `steps`: the model's turns; `well_formed`: how many kept the protocol. `ran_out`: turns or tokens were used up.
    """

    answer: str | None
    golds: tuple[str, ...]
    gold_passages: tuple[str, ...]
    lookups: tuple[tuple[str, ...], ...]
    steps: int
    well_formed: int
    ran_out: bool = False

    @property
    def retrieved(self) -> tuple[str, ...]:
        """Every fact that was returned, once, in order."""
        return tuple(dict.fromkeys(fact for facts in self.lookups for fact in facts))


class Credit(Struct, frozen=True):
    """What a trajectory earned. `correct`: C. `f1`: of the answer. `path`: P. `coverage`: recall of the gold passages.
    `terms`: each summand of the reward by name. `weight`: the factor of its advantage."""

    route: Route
    correct: bool
    exact: bool
    f1: float
    path: float
    coverage: float
    terms: dict[str, float]
    weight: float

    @property
    def reward(self) -> float:
        """R: the sum of its terms."""
        return sum(self.terms.values())


def credit(
    episode: Episode, thresholds: Thresholds, weights: Weights, shaping: Shaping, route_by: RouteBy = "both"
) -> Credit:
    """Score one trajectory."""
    answer, retrieved = episode.answer, episode.retrieved
    exact = answer is not None and exact_match(answer, episode.golds)
    f1 = 0.0 if answer is None else best_f1(answer, episode.golds)
    correct = exact or f1 >= thresholds.correct
    path = path_score(retrieved, episode.gold_passages)
    enough = path >= thresholds.path
    route = route_of(correct, enough)
    return Credit(
        route,
        correct,
        exact,
        f1,
        path,
        coverage(retrieved, episode.gold_passages),
        _terms(episode, f1, correct, path, enough, shaping),
        weight_of(route, weights, route_by),
    )


def route_of(correct: bool, enough_evidence: bool) -> Route:
    """Eq. 3."""
    if correct:
        return Route.FAITHFUL if enough_evidence else Route.SHORTCUT
    return Route.EVIDENCE if enough_evidence else Route.FAILURE


def weight_of(route: Route, weights: Weights, route_by: RouteBy = "both") -> float:
    """The factor of the advantage (Eq. 4).

    By correctness only, right answers keep `full` and wrong ones get `preserve`; by path only, trajectories with the evidence
    keep `full` and those without get `down`.
    """
    if route_by == "none":
        return 1.0
    if route_by == "correctness":
        return weights.full if route in (Route.FAITHFUL, Route.SHORTCUT) else weights.preserve
    if route_by == "path":
        return weights.full if route in (Route.FAITHFUL, Route.EVIDENCE) else weights.down
    return {Route.SHORTCUT: weights.down, Route.EVIDENCE: weights.preserve}.get(route, weights.full)


def format_score(steps: int, well_formed: int, rule: FormatRule) -> float:
    """R_format, in [0, 1]."""
    if rule == "half_per_step":
        return min(1.0, 0.5 * well_formed)
    if steps and well_formed == steps:
        return 1.0
    return 0.5 * well_formed / steps if steps else 0.0


def repeated_share(lookups: Sequence[Sequence[str]]) -> float:
    """The share of facts a look-up returned that an earlier one had returned, summed over look-ups (after StepSearch)."""
    seen: set[str] = set()
    total = 0.0
    for facts in lookups:
        if facts:
            total += sum(fact in seen for fact in facts) / len(facts)
        seen.update(facts)
    return total


def _terms(episode: Episode, f1: float, correct: bool, path: float, enough: bool, shaping: Shaping) -> dict[str, float]:
    form = format_score(episode.steps, episode.well_formed, shaping.format)
    terms = {"base": shaping.base, "format": form}
    if form < 1.0:
        return terms
    lookups = len(episode.lookups)
    terms["answer"] = f1
    terms["path"] = shaping.path * path
    terms["explored"] = shaping.explored if correct and lookups >= 2 else 0.0
    terms["stopped_early"] = shaping.stopped_early if lookups <= 1 and not enough else 0.0
    terms["ran_out"] = shaping.ran_out if episode.ran_out else 0.0
    terms["repeated"] = shaping.repeated * repeated_share(episode.lookups)
    return terms


class Calibration(Struct, frozen=True):
    """Where to put theta_P on a corpus. `edges` and `counts`: a histogram of P. `suggested`: the threshold. `below`: the share
    of trajectories under it, which the teacher would work on. `separation`: Youden's J of the threshold against whether the
    gold was covered, in [0, 1]; None where nothing could be separated."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    suggested: float
    below: float
    separation: float | None


def calibrated(paths: Sequence[float], coverages: Sequence[float], covered: float = 0.5, bins: int = 20) -> Calibration:
    """A theta_P for a corpus, from trajectories of the untrained agent: the value of P that tells best those that covered the
    gold (`coverages` of `covered` or more) from those that did not. Where all did or none did, the median of P.

    Raises ValueError for no trajectories, or sequences of different lengths.
    """
    if not paths or len(paths) != len(coverages):
        raise ValueError(
            f"calibration takes one coverage for each P, at least one: got {len(paths)} and {len(coverages)}"
        )
    top = max(*paths, 1e-9)
    counts = [0] * bins
    for path in paths:
        counts[min(bins - 1, int(path / top * bins))] += 1
    found = sorted(path for path, share in zip(paths, coverages, strict=True) if share >= covered)
    missed = sorted(path for path, share in zip(paths, coverages, strict=True) if share < covered)
    separation: float | None = None
    ordered = sorted(paths)
    suggested = ordered[len(ordered) // 2]
    if found and missed:
        separation, suggested = _split(ordered, found, missed)
    below = sum(path < suggested for path in paths) / len(paths)
    edges = tuple(top * i / bins for i in range(bins + 1))
    return Calibration(edges, tuple(counts), suggested, below, separation)


def _split(ordered: list[float], found: list[float], missed: list[float]) -> tuple[float, float]:
    best, at = -1.0, ordered[0]
    for low, high in pairwise(ordered):
        if low == high:
            continue
        cut = (low + high) / 2
        youden = sum(path >= cut for path in found) / len(found) - sum(path >= cut for path in missed) / len(missed)
        if youden > best:
            best, at = youden, cut
    return max(best, 0.0), at
