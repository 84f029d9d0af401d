"""A local model answering questions as the agent, for evaluation: greedy, in batches. Needs the extra `train`."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from turnout.routing.core import Failure
from turnout.routing.retrieval.agent import Step
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.routing.retrieval.protocol import Move, closed_book_instructions, one_shot_instructions
from turnout.train.credit import Thresholds
from turnout.train.data.question import Question
from turnout.train.evaluation import Scored, scored
from turnout.train.generation import closers, generated
from turnout.train.rollout import Limits, LookUp, Rollout, Turned, rollouts
from turnout.train.spelling import spelling_of
from turnout.train.trainer import Prompting, asked, episode

Told = Callable[[int], None]


def _nobody(done: int) -> None:
    pass


def marked(questions: Sequence[Question], done: Sequence[Rollout], thresholds: Thresholds) -> list[Scored]:
    """The scores of rollouts."""
    return [scored(question, one, thresholds, episode) for question, one in zip(questions, done, strict=True)]


class Answerer:
    """A model with its tokenizer, ready to answer. `rows`: questions at once."""

    def __init__(self, model: Any, tokenizer: Any, limits: Limits, rows: int = 64) -> None:
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._spelling = spelling_of(tokenizer)
        self._closing = closers(tokenizer)
        self._limits = limits
        self._rows = rows

    def answer(
        self,
        questions: Sequence[Question],
        look_up: LookUp,
        prompt: Prompting = asked,
        told: Told = _nobody,
    ) -> list[Rollout]:
        """Answer `questions`, in order. `told` hears how many are done."""
        done: list[Rollout] = []
        for at in range(0, len(questions), self._rows):
            part = questions[at : at + self._rows]
            texts, prompts = [one.question for one in part], [prompt(one) for one in part]
            done += rollouts(texts, prompts, self._spelling, self._generated, look_up, self._limits)
            told(len(done))
        return done

    def closed_book(self, questions: Sequence[Question], told: Told = _nobody) -> list[Rollout]:
        """Answer from memory, at once: a baseline."""
        return self._at_once(questions, [closed_book_instructions(one.question) for one in questions], None, told)

    def one_shot(self, questions: Sequence[Question], look_up: LookUp, told: Told = _nobody) -> list[Rollout]:
        """Answer from one look-up of the question as it stands: a baseline."""
        limits = self._limits
        outcomes = look_up([Lookup(one.question, at_most=limits.facts) for one in questions])
        found = [outcome.facts if isinstance(outcome, Found) else () for outcome in outcomes]
        prompts = [
            one_shot_instructions(one.question, facts, limits.style)
            for one, facts in zip(questions, found, strict=True)
        ]
        return self._at_once(questions, prompts, found, told)

    def _at_once(
        self,
        questions: Sequence[Question],
        prompts: Sequence[str],
        found: Sequence[tuple[Fact, ...]] | None,
        told: Told,
    ) -> list[Rollout]:
        limits = msgspec.structs.replace(self._limits, turns=1)
        done: list[Rollout] = []
        for at in range(0, len(questions), self._rows):
            part = slice(at, at + self._rows)
            texts = [one.question for one in questions[part]]
            done += rollouts(texts, prompts[part], self._spelling, self._generated, _nothing, limits)
            told(len(done))
        if found is None:
            return done
        return [_shown(one, facts) for one, facts in zip(done, found, strict=True)]

    def scores(
        self,
        questions: Sequence[Question],
        look_up: LookUp,
        thresholds: Thresholds,
        prompt: Prompting = asked,
        told: Told = _nobody,
    ) -> list[Scored]:
        """Answer `questions` and score what came of each."""
        return marked(questions, self.answer(questions, look_up, prompt, told), thresholds)

    def _generated(self, contexts: list[list[int]], most: int) -> list[Turned]:
        eos = self._model.generation_config.eos_token_id
        ends = [eos] if isinstance(eos, int) else list(eos or [self._tokenizer.eos_token_id])
        turns = generated(
            self._model, contexts, self._tokenizer, self._closing, most, ends, do_sample=False, temperature=None, top_p=None,
            top_k=None,
        )  # fmt: skip
        return [Turned(ids, cut) for ids, cut in turns]


def _nothing(lookups: Sequence[Lookup]) -> list[Found | Failure]:
    """The search of who may not search: a baseline that asks for it gets one turn only, so nobody sees this."""
    return [Found() for _ in lookups]


def _shown(one: Rollout, facts: tuple[Fact, ...]) -> Rollout:
    """The rollout with the look-up that stood in its prompt."""
    done = one.trajectory
    first = Step("", Move("query", done.question, True), facts)
    return msgspec.structs.replace(one, trajectory=msgspec.structs.replace(done, steps=(first, *done.steps)))
