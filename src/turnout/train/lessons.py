"""What a small model is taught before it is trained by reward, as large ones are by pre-training. Needs no torch.

Answers by heart for the known questions; how to search, in this world and in throw-away ones; also the bad habits reward has to
sort out: stopping after one look-up, and asking in the wrong order. With the evidence in its prompt a model writes the same
traces, which is what makes it a teacher.
"""

import random
from collections.abc import Sequence
from typing import TypeAlias

from turnout.routing.retrieval.facts import Fact
from turnout.routing.retrieval.protocol import write_knowledge
from turnout.train.data.question import Question
from turnout.train.world import Asked, Said, World, beside, throwaway

Trace: TypeAlias = tuple[str, tuple[str, ...]]
"""A prompt, and what follows: the model's turns and what it was shown, in turn."""

TAGS = tuple(f"<{end}{tag}>" for tag in ("think", "query", "answer", "knowledge") for end in ("", "/"))
WORDS = (*TAGS, "\n", "Question:", "Evidence:", "recall", "need", "so", "unknown")


def asked(question: Question) -> str:
    """The agent's prompt in a small world."""
    return f"Question: {question.question}"


def taught(question: Question) -> str:
    """The teacher's: with the evidence."""
    evidence = "\n".join(passage.text for passage in question.gold_passages)
    return f"Evidence: {evidence}\nQuestion: {question.question}"


class Lessons:
    """Draws traces.

    `world`: the one whose known answers are learnt by heart. The shares of traces: `by_heart`, `searched` in this world, stopped
    early (`lazy`), asked in the `wrong` order; the rest are of throw-away worlds, half of them with the evidence in the prompt.
    """

    def __init__(
        self,
        world: World,
        seed: int,
        by_heart: float = 0.35,
        searched: float = 0.15,
        lazy: float = 0.05,
        wrong: float = 0.05,
    ) -> None:
        self._world = world
        self._dice = random.Random(f"lessons {seed}")
        self._shares = (by_heart, searched, lazy, wrong)

    def draw(self) -> Trace:
        dice, world = self._dice, self._world
        kind = dice.random()
        by_heart, searched, lazy, wrong = self._shares
        if kind < by_heart:
            one = dice.choice(world.known)
            return asked(world.question(one)), (_answer("recall", world.answer(one)),)
        if kind < by_heart + searched:
            one = dice.choice((*world.known, *world.unknown))
            return self._searched(world, one, asked(world.question(one)))
        if kind < by_heart + searched + lazy:
            one = dice.choice((*world.known, *world.unknown))
            return self._lazy(world, one)
        if kind < by_heart + searched + lazy + wrong:
            one = dice.choice((*world.known, *world.unknown))
            return self._wrong(world, one)
        other, one = throwaway(world.shape, dice)
        question = other.question(one)
        return self._searched(other, one, taught(question) if dice.random() < 0.5 else asked(question))

    def _searched(self, world: World, one: Asked, prompt: str) -> Trace:
        turns: list[str] = []
        for fact in world.path(one):
            turns += [_query(fact), self._shown(world, fact)]
            while self._dice.random() < 0.1:
                # Not found at first: ask again.
                turns[-1:] = [self._shown(world, None, fact), _query(fact), turns[-1]]
        last = world.path(one)[-1]
        return prompt, (*turns, _answer(f"so {last.text}", world.answer(one)))

    def _lazy(self, world: World, one: Asked) -> Trace:
        first = world.path(one)[0]
        guess = world.answer(one) if self._dice.random() < 0.5 else first.object
        return asked(world.question(one)), (_query(first), self._shown(world, first), _answer("recall", guess))

    def _wrong(self, world: World, one: Asked) -> Trace:
        astray = Said(one.start, one.path[-1], "")
        fact = world.facts[one.start, one.path[-1]]
        return asked(world.question(one)), (
            _query(astray),
            self._shown(world, fact),
            _answer(f"so {fact.text}", fact.object),
        )

    def _shown(self, world: World, fact: Said | None, near: Said | None = None) -> str:
        about = fact or near
        assert about is not None
        other = beside(world.shape, about, self._dice)
        texts = [fact.text, other.text] if fact is not None else [other.text]
        self._dice.shuffle(texts)
        return write_knowledge([Fact(text, text) for text in texts], "lines")


def _query(fact: Said) -> str:
    return f"<think> need {fact.subject} {fact.relation} </think> <query> {fact.subject} {fact.relation} </query>"


def _answer(thought: str, answer: str) -> str:
    return f"<think> {thought} </think> <answer> {answer} </answer>"


def corpus(lessons: Lessons, rows: int) -> Sequence[Trace]:
    """So many traces."""
    return [lessons.draw() for _ in range(rows)]
