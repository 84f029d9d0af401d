"""How far each judge can be relied on: self-preference, length, agreement with the others, unreadable scores, spread. Pure.

Nothing is corrected silently. A judge that fails is reported, and its scores and votes are left out.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from turnout.peers.graph.scored import Scored

LENGTH = 0.4
"""Rank correlation of score and length above which a judge is said to score length."""
LEAST_AGREEMENT = 0.2
"""Correlation with the mean of the other judges below which a judge is an outlier."""
MOST_FAILURES = 0.1
"""Share of unreadable scores above which a judge is left out."""
LEAST_SPREAD = 0.5
"""Standard deviation of scores, on a scale of 10 points, below which a judge does not tell answers apart."""
_POINTS = 9.0
"""From the lowest to the highest score of that scale."""
_LEAST_ANSWERS = 25
"""Fewer scores say nothing of a judge."""


class Judge(Struct, frozen=True):
    """What is known of one judge. None: not known.

    `scores`: how many it gave. `mean`, `spread`: of these, and their standard deviation. `agreement`: Pearson's correlation with
    the mean score of the other judges for the same answers. `length`: Spearman's correlation of its scores with the lengths of
    the answers. `self_preference`: by how much its scores for its own answers exceed those of the others. `parse_failures`: share
    of scores that could not be read. `notes`: what to beware of. `fails`: why it is not to be relied on, "" = it is.
    """

    scores: int
    mean: float | None
    spread: float | None
    agreement: float | None
    length: float | None
    self_preference: float | None
    parse_failures: float | None
    notes: tuple[str, ...]
    fails: str


def judges(scored: Scored) -> dict[str, Judge]:
    """Every judge; {} where scores are not there one by one."""
    if not scored.cells:
        return {}
    answers = _answers(scored)
    low, high = scored.manifest.scale
    return {judge: _judge(scored, judge, answers, _POINTS / (high - low)) for judge in scored.models}


Answer = tuple[str, int]
"""Author and index of the question."""


def _answers(scored: Scored) -> dict[Answer, dict[str, float]]:
    """The scores of every answer by the others, by judge."""
    found: dict[Answer, dict[str, float]] = {}
    for judge, authors in scored.cells.items():
        for author, cells in authors.items():
            if author == judge:
                continue
            for at, score in enumerate(cells):
                if score is not None:
                    found.setdefault((author, at), {})[judge] = score
    return found


def _judge(scored: Scored, judge: str, answers: dict[Answer, dict[str, float]], points: float) -> Judge:
    own: list[float] = []
    beside: list[tuple[float, float]] = []
    long: list[tuple[float, float]] = []
    for (author, at), by_judge in answers.items():
        score = by_judge.get(judge)
        if score is None:
            continue
        own.append(score)
        if len(by_judge) > 1:
            beside.append((score, (math.fsum(by_judge.values()) - score) / (len(by_judge) - 1)))
        length = scored.lengths[author][at] if author in scored.lengths else None
        if length is not None:
            long.append((score, length))
    mean = math.fsum(own) / len(own) if own else None
    spread = None if mean is None else math.sqrt(math.fsum((score - mean) ** 2 for score in own) / len(own))
    agreement = correlation([a for a, _ in beside], [b for _, b in beside])
    length_said = correlation(ranks([a for a, _ in long]), ranks([b for _, b in long]))
    work = scored.judges.get(judge)
    failures = work.parse_failures / work.asked if work is not None and work.asked else None
    fails = _fails(len(own), None if spread is None else spread * points, agreement, failures)
    notes = []
    if length_said is not None and length_said > LENGTH:
        notes.append(f"its scores follow length (rank correlation {length_said:.2f})")
    preference = _self_preference(scored, judge, answers)
    if preference is not None and abs(preference) * points >= 0.5:
        notes.append(f"scores its own answers {preference:+.2f} beside the others")
    return Judge(len(own), mean, spread, agreement, length_said, preference, failures, tuple(notes), fails)


def _fails(scores: int, spread: float | None, agreement: float | None, failures: float | None) -> str:
    if failures is not None and failures > MOST_FAILURES:
        return f"{failures:.0%} of its scores could not be read (limit {MOST_FAILURES:.0%})"
    if scores < _LEAST_ANSWERS:
        return ""
    if spread is not None and spread < LEAST_SPREAD:
        return f"its scores hardly differ (standard deviation {spread:.2f} on 10 points, at least {LEAST_SPREAD:g})"
    if agreement is not None and agreement < LEAST_AGREEMENT:
        return f"it does not agree with the others (correlation {agreement:.2f}, at least {LEAST_AGREEMENT:g})"
    return ""


def _self_preference(scored: Scored, judge: str, answers: dict[Answer, dict[str, float]]) -> float | None:
    differences = []
    for at, score in enumerate(scored.self_scores.get(judge, [])):
        others = answers.get((judge, at))
        if score is not None and others:
            differences.append(score - math.fsum(others.values()) / len(others))
    return math.fsum(differences) / len(differences) if differences else None


def correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pearson's correlation; None for fewer than three pairs, and where one side does not vary."""
    n = len(one)
    if n < 3:
        return None
    mean_one, mean_other = math.fsum(one) / n, math.fsum(other) / n
    both = math.fsum((a - mean_one) * (b - mean_other) for a, b in zip(one, other, strict=True))
    spread = math.fsum((a - mean_one) ** 2 for a in one) * math.fsum((b - mean_other) ** 2 for b in other)
    return both / math.sqrt(spread) if spread > 1e-18 else None


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for at in order[start : end + 1]:
            found[at] = (start + end) / 2 + 1
        start = end + 1
    return found
