"""A local model answering questions as the agent, for evaluation: greedy, in batches. Needs the extra `train`."""

from collections.abc import Callable, Sequence
from typing import Any

from turnout.train.credit import Thresholds
from turnout.train.data.question import Question
from turnout.train.evaluation import Scored, scored
from turnout.train.generation import closers, generated
from turnout.train.rollout import Limits, LookUp, Rollout, Turned, rollouts
from turnout.train.spelling import spelling_of
from turnout.train.trainer import Prompting, asked, episode


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
        told: Callable[[int], None] = lambda done: None,
    ) -> list[Rollout]:
        """Answer `questions`, in order. `told` hears how many are done."""
        done: list[Rollout] = []
        for at in range(0, len(questions), self._rows):
            part = questions[at : at + self._rows]
            texts, prompts = [one.question for one in part], [prompt(one) for one in part]
            done += rollouts(texts, prompts, self._spelling, self._generated, look_up, self._limits)
            told(len(done))
        return done

    def scores(
        self,
        questions: Sequence[Question],
        look_up: LookUp,
        thresholds: Thresholds,
        prompt: Prompting = asked,
        told: Callable[[int], None] = lambda done: None,
    ) -> list[Scored]:
        """Answer `questions` and score what came of each."""
        done = self.answer(questions, look_up, prompt, told)
        return [scored(question, one, thresholds, episode) for question, one in zip(questions, done, strict=True)]

    def _generated(self, contexts: list[list[int]], most: int) -> list[Turned]:
        eos = self._model.generation_config.eos_token_id
        ends = [eos] if isinstance(eos, int) else list(eos or [self._tokenizer.eos_token_id])
        turns = generated(
            self._model, contexts, self._tokenizer, self._closing, most, ends, do_sample=False, temperature=None, top_p=None,
            top_k=None,
        )  # fmt: skip
        return [Turned(ids, cut) for ids, cut in turns]
