"""The collaboration router: models that vote on an answer and improve it until they agree."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from turnout.errors import ConfigError
from turnout.routing.collaboration import words
from turnout.routing.collaboration.account import account, consensus, sentence
from turnout.routing.collaboration.caps import Caps
from turnout.routing.collaboration.chain import DEFAULT, PAPER, Ended, Exit, Picker, Polling, Rules, chain
from turnout.routing.collaboration.conduct import Conduct, How
from turnout.routing.collaboration.electorate import Electorate
from turnout.routing.collaboration.first import Prior, order
from turnout.routing.collaboration.graph import Graph, read
from turnout.routing.core import Answer, Asking, Decision, Failure, Forward, Routed, TargetFacts, TargetName, Turn, Why
from turnout.routing.judging import Excerpt, Judging
from turnout.signals import real_user_text

Share = Annotated[float, Meta(gt=0, le=1)]


class Collaboration(Struct, frozen=True, dict=True, tag="collaboration", tag_field="type", forbid_unknown_fields=True):
    """Has a model answer, those who see something to improve in its work vote on the answer, and one who disapproves improve it,
    until all who vote approve or `alpha` hops are made.

    `graph`: file that `turnout peers graph --out` wrote: who scores whom how, and so who votes on whose answers; the path starts
    at the configuration's folder. `models`: the target of each model of the graph, by its name there. A model that the graph
    does not know may answer first and never votes.
    `mode`: `default`, or `paper` for the published method to the letter: no quorum but its own, revisits, the last answer, no
    reason passed on, and an author for whom the graph names no voter has agreement at once; the settings from `approval` to
    `polling` are then fixed.
    `alpha` (default 3): the most improvements.
    `first` (default `max_received`): who answers first: the best scored, the `cheapest`, the `cheapest_anchor` (of the set C),
    the `fastest` by `speeds`, or one drawn at `random`. `prefer`: models that come before all others, in order.
    `first_by_task`: who answers first by type of task. `speeds`: output tokens per second by model.
    `task_type` (default none): the type of all tasks of this route, whose own relations the graph is asked for. `task_words`:
    else, words by type of task: the first type that has one of its words in what the user said last.
    `approval` (default 1): share of the votes that must approve. `quorum` (default 0.5): share of the voters whose votes must
    have come for an answer to count as agreed on.
    `picker` (default `random`): who of those who disapprove improves the answer: one drawn, the best scored (`max_received`), the
    `cheapest`, or one drawn by score (`weighted`). `seed` (default 0): of the draws, which depend on nothing else but the turn.
    `exit` (default `best_supported`): what is returned without agreement: the answer with the most authors and approvers, or the
    `last`. `max_voters` (default 8): the most asked about one answer at once, the best scored. `supplement` (default false):
    whether models that are scored low themselves may stand in for missing voters. `pass_reason` (default true): whether a
    refiner is reminded of why it disapproved. `final_vote` (default true): whether the answer of the last hop is voted on too.
    `polling` (default `parallel`): all voters at once, or the `cheapest_first` until one disapproves, with `exit = "last"`.
    `judging`: how voters are asked (30 s, 4096 tokens). `transcript`: how much of the work they are shown. `refine_prompt`:
    replaces the built-in one; {draft}, {mark} and {reason} stand for what they say.
    `draft_within_s` (default 120): seconds after which an answer or improvement has failed; a first answer has two thirds of the
    seconds in `caps` at most, so that another model can answer when it hangs. `caps`: the most that a request may
    take in calls, tokens, USD and seconds.
    `progress` (default true): streaming clients are told in comments who answers and votes; the response's head is then out
    before it is known who serves, so its headers do not say.

    A voter that fails abstains, which is no approval; one whose answer cannot be read is asked once more. Titles and other
    upkeep, and requests whose reply the provider is told to store, are answered by the first model without a vote.
    """

    graph: Annotated[str, Meta(min_length=1)]
    models: dict[str, TargetName]
    mode: Literal["default", "paper"] = "default"
    alpha: Annotated[int, Meta(ge=0, le=16)] = 3
    first: Prior = "max_received"
    prefer: tuple[str, ...] = ()
    first_by_task: dict[str, str] = {}
    speeds: dict[str, Annotated[float, Meta(gt=0)]] = {}
    task_type: str = ""
    task_words: dict[str, tuple[Annotated[str, Meta(min_length=1)], ...]] = {}
    approval: Share = 1.0
    quorum: Share = 0.5
    picker: Picker = "random"
    seed: int = 0
    exit: Exit = "best_supported"
    max_voters: Annotated[int, Meta(ge=1, le=64)] = 8
    supplement: bool = False
    pass_reason: bool = True
    final_vote: bool = True
    polling: Polling = "parallel"
    judging: Judging = Judging()
    transcript: Excerpt = Excerpt(chars=4_000, anchor_chars=16_000, total_chars=48_000)
    refine_prompt: str = ""
    draft_within_s: Annotated[float, Meta(gt=0, le=3600)] = 120.0
    caps: Caps = Caps()
    progress: bool = True

    def __post_init__(self) -> None:
        if len(self.models) < 2:
            raise ValueError("models: it takes two models at least, one to answer and one to vote")
        for field in ("prefer", "first_by_task", "speeds"):
            given = getattr(self, field)
            for name in given.values() if field == "first_by_task" else given:
                if name not in self.models:
                    raise ValueError(f"{field}: {name} is not among `models`")
        if self.mode == "paper":
            for field in _FIXED:
                if getattr(self, field) != _DEFAULTS[field]:
                    raise ValueError(f'{field}: mode = "paper" fixes it; leave it out, or use mode = "default"')
        if self.polling == "cheapest_first" and self.exit != "last":
            raise ValueError(
                'polling: cheapest_first leaves votes out that exit = "best_supported" counts; set exit = "last"'
            )
        if self.refine_prompt and "{draft}" not in self.refine_prompt:
            raise ValueError("refine_prompt: it must say where the {draft} goes")

    def bind(self, graph: Graph) -> None:
        """Use `graph`, which has been read from the file. Whoever knows the configuration's folder does this."""
        self.__dict__["relations"] = graph

    @cached_property
    def relations(self) -> Graph:
        """The graph. Raises ConfigError when the file cannot be read."""
        try:
            return read(Path(self.graph).read_bytes(), self.graph)
        except OSError as error:
            raise ConfigError(f"the graph cannot be read: {error.strerror}", file=self.graph) from None

    @property
    def rests_on(self) -> str:
        """What the decisions rest on beside these settings: the graph's id."""
        return self.relations.id

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails: to the best scored model."""
        received = self.relations.known_received
        return self.models[max(self.models, key=lambda model: received.get(model, float("-inf")))]

    @property
    def voters(self) -> tuple[TargetName, ...]:
        """The targets that may be asked for votes."""
        graph = self.relations
        return tuple(t for model, t in self.models.items() if model in graph.models and model not in graph.excluded)

    @cached_property
    def rules(self) -> Rules:
        """What the mode and the settings amount to."""
        if self.mode == "paper":
            return msgspec.structs.replace(PAPER, alpha=self.alpha)
        return msgspec.structs.replace(
            DEFAULT,
            alpha=self.alpha,
            approval=self.approval,
            quorum=self.quorum,
            picker=self.picker,
            exit=self.exit,
            supplement=self.supplement,
            max_voters=self.max_voters,
            final_vote=self.final_vote,
            polling=self.polling,
        )

    @cached_property
    def _how(self) -> How:
        return How(
            targets=dict(self.models),
            judging=self.judging,
            excerpt=self.transcript,
            caps=self.caps,
            draft_within_s=self.draft_within_s,
            pass_reason=self.pass_reason and self.mode != "paper",
            refine_prompt=self.refine_prompt,
            progress=self.progress,
        )

    def concerns(self) -> list[tuple[str, str]]:
        """What will surprise an operator: field and message."""
        found, graph = [], self.relations
        if strangers := sorted(set(self.models) - set(graph.models)):
            found.append(("models", f"the graph does not know {', '.join(strangers)}: never asked for a vote"))
        if missing := [model for model in graph.models if model not in self.models]:
            found.append(("models", f"no target for {', '.join(missing)} of the graph: neither asked nor counted"))
        for judge, reason in graph.excluded.items():
            if judge in self.models:
                found.append(("models", f"{judge} does not vote: {reason}"))
        if flags := [flag for flag in graph.flags if flag in _WARN]:
            found.append(("graph", f"the graph is {', '.join(flags)}: who votes rests on little"))
        for name in {self.task_type, *self.task_words, *self.first_by_task} - {""}:
            relations = graph.by_type.get(name)
            if relations is None or relations.falls_back:
                found.append(
                    ("graph", f"the graph has no relations of its own for `{name}`: those for all tasks are used")
                )
        if self.first == "fastest" and (slow := sorted(set(self.models) - set(self.speeds))):
            found.append(("speeds", f"no speed is given for {', '.join(slow)}: tried last"))
        if self.mode == "paper" and any(not graph.of(self.task_type).voters.get(model) for model in self.models):
            found.append(
                ("mode", "where the graph names nobody to vote, the paper's rule counts the first answer as agreed on")
            )
        if self.caps.calls < 2 * (self.alpha + 1):
            found.append(("caps", f"{self.caps.calls} calls are not enough for {self.alpha} hops with a vote each"))
        return found

    def route(self, turn: Turn) -> Routed:
        """An answer with the votes on it; at once a target where nothing is to be voted on."""
        task = self._task(turn)
        electorate = self._electorate(turn, task)
        first = self._first(turn, task, electorate)
        age = self.relations.staleness(datetime.fromtimestamp(turn.now, UTC))
        if turn.agent.kind == "background":
            return self._unvoted(first, "background", "a background call of the agent, which is not voted on")
        if turn.settings.store is True or turn.settings.background:
            return self._unvoted(first, "stored", "the provider is to store the reply, so that it cannot be replaced")
        if age == "expired":
            return self._unvoted(first, "expired", "the graph is older than it may be, so nobody was asked to vote")
        return self._conducted(turn, task, electorate, first, {"graph_age": age} if age == "stale" else {})

    def _conducted(
        self, turn: Turn, task: str, electorate: Electorate, first: tuple[str, ...], age: dict[str, str]
    ) -> Asking[Decision]:
        graph, targets = self.relations, turn.targets
        conduct = Conduct(self._how, turn)
        needed = {words.ABILITY[type(part)] for part in conduct.shown}
        able = {m for m, target in self.models.items() if target not in targets or _able(targets[target], needed)}
        out = frozenset(model for model in graph.models if model not in able or model in graph.excluded)
        steps = chain(self.rules, electorate, first, self._dice(turn), out)
        ended = yield from conduct.run(steps)
        values: dict[str, Any] = {"algorithm": "collaboration", "mode": self.mode, "graph": graph.id, **age}
        if task:
            values["task_type"] = task
        if ended is None:
            reply, target = conduct.replies[-1], conduct.written[-1].target
            told = "the answer holds work that the provider has done already, so that it was not voted on"
            return Answer(reply, target, Why("default", told, "done", values=values, consensus="not_voted"))
        values |= account(ended, conduct)
        if ended.chosen < 0:
            return self._failed(first, ended, conduct, values)
        why = Why("vote", sentence(ended, conduct), ended.status, values=values, consensus=consensus(ended))
        return Answer(conduct.replies[ended.chosen], conduct.written[ended.chosen].target, why)

    def _failed(self, first: tuple[str, ...], ended: Ended, conduct: Conduct, values: dict[str, Any]) -> Forward:
        """No answer came. The caps hold for the last call too, so none is made: the first model's failure is the client's."""
        failures = conduct.failures
        parts = [f"{model} ({one.kind})" for model, one in failures.items()]
        told = f"no model answered: {', '.join([*parts, *([f'cap on {conduct.halted}'] if conduct.halted else [])])}"
        why = Why("vote", told, ended.status, values=values, consensus=consensus(ended))
        waits = [one.retry_after_s for one in failures.values() if one.retry_after_s is not None]
        found = next(iter(failures.values()), Failure("unavailable", status=503))
        if ended.status == "deadline":
            found = Failure(
                "timeout", f"no model answered within {conduct.by_s:g} s, the most that this route takes", 504
            )
        elif not failures:
            found = Failure("unavailable", f"{told}; no call was made", 503)
        return Forward(
            self.models[first[0]], why, failure=msgspec.structs.replace(found, retry_after_s=min(waits, default=None))
        )

    def _unvoted(self, first: tuple[str, ...], rule: str, told: str) -> Forward:
        targets = list(dict.fromkeys(self.models[model] for model in first))
        why = Why("default", told, rule, values={"algorithm": "collaboration"}, consensus="not_voted")
        return Forward(targets[0], why, tuple(targets[1:]))

    def _dice(self, turn: Turn) -> Any:
        return lambda hop, attempt: turn.draw(f"collaboration/{self.seed}/{hop}/{attempt}")

    def _task(self, turn: Turn) -> str:
        """The type of the task: as set, or by the words of what the user said last."""
        if self.task_type or not self.task_words:
            return self.task_type
        messages, said_at = turn.conversation.messages, turn.signals.said_at
        text = real_user_text(messages[said_at]) if said_at is not None and said_at < len(messages) else ""
        lower = (text or "").lower()
        return next((kind for kind, words in self.task_words.items() if any(w.lower() in lower for w in words)), "")

    def _first(self, turn: Turn, task: str, electorate: Electorate) -> tuple[str, ...]:
        fixed = self.first_by_task.get(task)
        preferred = ((fixed,) if fixed else ()) + self.prefer
        found = order(self.first, electorate, self.models, self._dice(turn), self.speeds, preferred)
        targets = turn.targets
        return tuple(sorted(found, key=lambda m: not (t := targets.get(self.models[m])) or not t.healthy))

    def _electorate(self, turn: Turn, task: str) -> Electorate:
        """The relations for a type of task, with the prices of the hour."""
        prices = self._prices(turn)
        known: dict[str, Electorate] = self.__dict__.setdefault("electorates", {})
        found = known.get(task)
        if found is None or found.prices != prices:
            graph = self.relations
            of = graph.of(task)
            found = Electorate(graph.models, of.known_received, of.anchors, of.voters, of.others, prices)
            known[task] = found
        return found

    def _prices(self, turn: Turn) -> Mapping[str, float]:
        """USD of a million tokens, four read for one written, by model."""
        prices = {}
        for model, name in self.models.items():
            facts = turn.targets.get(name)
            if facts is not None and facts.input_price is not None and facts.output_price is not None:
                prices[model] = 0.8 * facts.input_price + 0.2 * facts.output_price
        return prices


def _able(facts: TargetFacts, needed: set[str]) -> bool:
    """Whether a target may be asked for a vote: it is up, and sees all that the answer is about."""
    return facts.healthy and (facts.capabilities is None or needed <= facts.capabilities)


_FIXED = (
    "approval", "quorum", "picker", "exit", "max_voters", "supplement", "pass_reason", "final_vote", "polling",
)  # fmt: skip
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Collaboration) if field.name in _FIXED}
_WARN = ("degenerate", "symmetric_scores", "fixed_given", "unstable", "few_questions", "missing_scores")
