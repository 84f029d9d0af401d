"""How each strategy answers the questions of a split."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from turnout.peers.simulate.arms import Arm
from turnout.peers.simulate.playing import DrawnVoters, Played, Playing
from turnout.peers.simulate.recorded import Question
from turnout.peers.simulate.splits import Split
from turnout.routing.collaboration.chain import dice
from turnout.routing.collaboration.electorate import Electorate

Play: TypeAlias = Callable[[Question], Played]


def player(split: Split, arm: Arm, *, optimistic: bool) -> Play:
    """What plays the questions of a split by an arm."""
    match arm.kind:
        case "single":
            return lambda question: _alone(
                split, question, split.first(arm.first, _electorate(split, arm, question), question)
            )
        case "by_labels":
            return lambda question: _alone(split, question, split.by_labels)
        case "majority":
            best = split.electorate(arm.settings).best()
            return _majority(split, best if arm.of is None else best[: arm.of])
        case "majority_C":
            named = split.electorate(arm.settings)
            return _majority(split, named.anchors or named.best()[:1])
        case "self_mixture":
            return _self_mixture(split)
        case "random_chain":
            return lambda question: _random_chain(split, arm, question, optimistic)
    return _chain(split, arm, optimistic)


def _electorate(split: Split, arm: Arm, question: Question) -> Electorate:
    return split.electorate(arm.settings, question.category if arm.by_type else "")


def _chain(split: Split, arm: Arm, optimistic: bool) -> Play:
    rules = arm.rules

    def electing(question: Question) -> Electorate:
        named = _electorate(split, arm, question)
        return named if arm.targeted else DrawnVoters(named, rules, question.id, split.seed).electorate()

    playing = Playing(rules, split.table.models, electing, split.prices, optimistic=optimistic, shared=arm.targeted)

    def play(question: Question) -> Played:
        first = split.first(arm.first, _electorate(split, arm, question), question)
        return playing.play(question, first, split.seed)

    return play


def _alone(split: Split, question: Question, model: int) -> Played:
    return Played(question.values[model], 1, 0, split.prices.models[model])


def _random_chain(split: Split, arm: Arm, question: Question, optimistic: bool) -> Played:
    """A drawn other model follows, alpha times."""
    author = split.first(arm.first, _electorate(split, arm, question), question)
    draw, models = dice(f"next {question.id}", split.seed), range(len(split.table.models))
    value, cost = question.values[author], split.prices.models[author]
    for hop in range(arm.alpha):
        others = [model for model in models if model != author]
        author = others[int(draw(hop, 0) * len(others))]
        value = max(value, question.values[author]) if optimistic else question.values[author]
        cost += split.prices.models[author]
    return Played(value, arm.alpha + 1, 0, cost)


def _majority(split: Split, names: Sequence[str]) -> Play:
    """The most frequent answer of some models; of those given equally often, the one whose models are scored higher together."""
    members = [split.table.models.index(name) for name in names]
    received = split.electorate(Arm("majority").settings).received
    weights = [received.get(name, 0.0) for name in split.table.models]
    cost = sum(split.prices.models[member] for member in members)

    def play(question: Question) -> Played:
        marks = Counter(question.marks[member] for member in members)
        most = max(marks.values())
        support: dict[int, float] = {}
        for member in members:
            if marks[mark := question.marks[member]] == most:
                support[mark] = support.get(mark, 0.0) + weights[member]
        chosen = question.marks.index(max(support, key=support.__getitem__))
        return Played(question.values[chosen], len(members), 0, cost)

    return play


def _self_mixture(split: Split) -> Play:
    """The most frequent of a model's recorded answers; of those given equally often, the first."""
    best = split.first("best", split.electorate(Arm("single").settings), split.table.questions[0])

    def play(question: Question) -> Played:
        taken = question.samples[best] if question.samples else ()
        if not taken:
            return _alone(split, question, best)
        marks = Counter(mark for mark, _ in taken)
        value = dict(reversed(taken))[_first_of_most(marks, [mark for mark, _ in taken])]
        return Played(value, len(taken), 0, len(taken) * split.prices.models[best])

    return play


def _first_of_most(counts: Counter[int], order: Iterable[int]) -> int:
    most = max(counts.values())
    return next(mark for mark in order if counts[mark] == most)
