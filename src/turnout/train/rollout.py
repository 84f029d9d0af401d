"""Rollouts of many agents in lockstep: one batched generation and one batched retrieval a turn. Needs no torch.

Token ids are kept as they were generated: an observation is encoded by itself and appended, and nothing that is in a
trajectory is ever encoded again, so the loss is taken on what was sampled.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from turnout.routing.core import Failure
from turnout.routing.retrieval.agent import Call, CallOutcome, Said, Say, Trajectory, answering
from turnout.routing.retrieval.facts import Found, Lookup
from turnout.routing.retrieval.protocol import Role, Style, write_knowledge
from turnout.steps import Run
from turnout.train.roles import token_roles


class Spelling(Protocol):
    """How texts are spelled in the ids of one model."""

    def prompt(self, text: str) -> list[int]:
        """A user's prompt, up to where the model's turn begins."""
        ...

    def shown(self, text: str) -> list[int]:
        """What comes between two turns of the model: the end of the one, what is shown, the beginning of the next."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a turn of the model, special tokens included where they are not of the template."""
        ...


class Turned(Struct, frozen=True):
    """One generated turn. `ids`: what was sampled, the end-of-text token included where it was. `cut`: it ended for want of
    tokens. `logprobs`: of each id, where the sampler gives them."""

    ids: list[int]
    cut: bool = False
    logprobs: list[float] | None = None


Generate = Callable[[list[list[int]], int], list[Turned]]
"""Contexts, and the most new tokens each may get -> one turn for each."""
LookUp = Callable[[Sequence[Lookup]], Sequence[Found | Failure]]


class Rollout(Struct, frozen=True):
    """One trajectory with its tokens. `completion`: everything after the prompt, observations too. `sampled`: 1 for a token
    of the model's, 0 for one it was shown. `roles`: of each token. `logprobs`: empty where the sampler gives none."""

    prompt: list[int]
    completion: list[int]
    sampled: list[int]
    roles: list[Role]
    logprobs: list[float]
    trajectory: Trajectory


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """`turns`: of the model, at most. `turn_tokens`: new tokens in one of them. `tokens`: in all of a completion.
    `shown_tokens`: in one observation; of a longer one, as many facts are shown as fit. `facts`: returned by one look-up.
    `style`: how they are shown."""

    turns: int = 5
    turn_tokens: int = 1024
    tokens: int = 4096
    shown_tokens: int = 2048
    facts: int = 10
    style: Style = "json"


def _always(active: int) -> bool:
    return active > 0


def rollouts(
    questions: Sequence[str],
    prompts: Sequence[str],
    spelling: Spelling,
    generate: Generate,
    look_up: LookUp,
    limits: Limits,
    go_on: Callable[[int], bool] = _always,
    knowledge: str = "",
) -> list[Rollout]:
    """Answer `questions`, each put as its prompt, all at once.

    `go_on` is told how many are still at work and says whether another turn is generated. Where generation is collective over
    processes, it asks all of them: a process with nothing left to do generates for a row of its own that is thrown away, so
    that all make the same number of calls.
    """
    rows = [
        _Row(question, spelling.prompt(prompt), limits, knowledge)
        for question, prompt in zip(questions, prompts, strict=True)
    ]
    while True:
        active = [row for row in rows if not row.run.done]
        if not go_on(len(active)):
            break
        contexts = [row.prompt + row.completion for row in active] or [rows[0].prompt]
        turned = generate(contexts, limits.turn_tokens)
        for row, turn in zip(active, turned, strict=False):
            row.said(turn, spelling)
        asking = [row for row in active if not row.run.done and isinstance(row.run.pending[0], Lookup)]
        lookups = [call for row in asking for call in row.run.pending if isinstance(call, Lookup)]
        for row, outcome in zip(asking, look_up(lookups) if lookups else (), strict=True):
            row.found(outcome, spelling)
        for row in active:
            row.show(spelling)
    return [row.rollout(spelling) for row in rows]


class _Row:
    """One agent at work."""

    def __init__(self, question: str, prompt: list[int], limits: Limits, knowledge: str) -> None:
        self.prompt = prompt
        self.completion: list[int] = []
        self._sampled: list[int] = []
        self._roles: list[Role] = []
        self._logprobs: list[float] = []
        self._shown = 0
        self._limits = limits
        self._left = limits.tokens
        self.run: Run[Call, CallOutcome, Trajectory] = Run(
            answering(question, limits.turns, knowledge, limits.facts, style=limits.style)
        )

    def said(self, turn: Turned, spelling: Spelling) -> None:
        ids, cut = turn.ids[: self._left], turn.cut or len(turn.ids) > self._left
        self._add(ids, 1, token_roles(ids, spelling.decode), turn.logprobs)
        # No room for another turn means that this was the last one, whatever it says.
        self.run.feed([Said(spelling.decode(ids), cut or self._left <= 0)])

    def found(self, outcome: Found | Failure, spelling: Spelling) -> None:
        """Take what was found, or as much of it as there is room for."""
        if isinstance(outcome, Found):
            facts = outcome.facts
            while facts and len(spelling.shown(write_knowledge(facts, self._limits.style))) > self._room:
                facts = facts[:-1]
            outcome = Found(facts)
        self.run.feed([outcome])

    @property
    def _room(self) -> int:
        """Tokens that an observation may have, so that one of the model's can follow."""
        return min(self._limits.shown_tokens, self._left - 1)

    def show(self, spelling: Spelling) -> None:
        """Append what the model is shown before its next turn."""
        if self.run.done:
            return
        (call,) = self.run.pending
        assert isinstance(call, Say)
        if len(call.steps) == self._shown:
            return
        self._shown = len(call.steps)
        ids = spelling.shown(call.steps[-1].shown)
        if len(ids) > self._room:
            self.run.feed([Failure("overflow", "no room is left for another turn")])
            return
        self._add(ids, 0, [Role.OBSERVATION] * len(ids), None)

    def _add(self, ids: list[int], sampled: int, roles: list[Role], logprobs: list[float] | None) -> None:
        self.completion += ids
        self._sampled += [sampled] * len(ids)
        self._roles += roles
        self._logprobs += (logprobs or [0.0] * len(ids))[: len(ids)]
        self._left -= len(ids)

    def rollout(self, spelling: Spelling) -> Rollout:
        return Rollout(self.prompt, self.completion, self._sampled, self._roles, self._logprobs, self.run.result)
