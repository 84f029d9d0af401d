"""The retrieval router: an agent answers a question from a knowledge, in steps, and says by which facts."""

from collections.abc import Generator, Iterable
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from turnout.conversation import Conversation, Message, Reasoning, Reply, Settings, Text, Usage
from turnout.errors import ClientError, UpstreamError
from turnout.routing.core import Answer, Ask, Decision, Failure, Forward, Outcome, Routed, TargetName, Turn, Why
from turnout.routing.retrieval.agent import Said, Say, Trajectory, answering
from turnout.routing.retrieval.evidence import Evidence, evidence
from turnout.routing.retrieval.facts import Found, Lookup, LookupOutcome
from turnout.routing.retrieval.protocol import STOPS, Style, closed, instructions
from turnout.routing.retrieval.questions import Unsuited, asked_in
from turnout.routing.retrieval.spoken import UNANSWERED, Status, spoken, status_of

Steps: TypeAlias = Generator[tuple[Ask | Lookup, ...], tuple[Any, ...], Decision]
Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Retrieval(Struct, frozen=True, dict=True, tag="retrieval", tag_field="type", forbid_unknown_fields=True):
    """Has a model answer a question from a knowledge: it looks facts up, step by step, until they settle the question. The client
    gets the answer with the facts it rests on, or is told that there is none.

    `policy`: the model that searches and answers; one that `turnout train` made, or any that keeps to the protocol.
    `knowledge`: folder that `turnout knowledge build` wrote, whose path starts at the configuration's folder, or the URL of a
    `turnout knowledge serve`.
    `max_turns` (default 5): the most turns of the model for one question, its answer included. `facts` (default 10): the most
    that a look-up finds. `style` (default `json`): how facts are shown to the model, `json` or `lines`; as in its training.
    `turn_tokens` (default 1024): the most tokens of one turn. `temperature` (default none): the model's own when none.
    `earlier` (default 4): how many earlier questions of the conversation are put before this one, with their answers.
    `turn_within_s` (default 60): seconds after which a turn of the model has failed. `lookup_within_s` (default 10): those after
    which a look-up has; the model is shown that nothing was found. `within_s` (default 120): seconds for the whole question.
    `citations` (default `text`): footnotes after the answer, and citations as the client's format has them; `none`: the bare
    answer.
    `progress` (default true): streaming clients are told in comments what is looked up; the head of the response is then out
    before it is known how it ends, so its headers do not say.
    `otherwise` (default none): the target of what is no question to a knowledge (tools, images, structured output), and of
    questions whose model fails; without one the former is refused, and the latter an error. It answers without the knowledge.

    The client's instructions stay in force; its sampling settings are those of the route instead.
    """

    policy: TargetName
    knowledge: Annotated[str, Meta(min_length=1)]
    max_turns: Annotated[int, Meta(ge=1, le=64)] = 5
    facts: Annotated[int, Meta(ge=1, le=200)] = 10
    style: Style = "json"
    turn_tokens: Annotated[int, Meta(ge=16)] = 1024
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    earlier: Annotated[int, Meta(ge=0, le=64)] = 4
    turn_within_s: Seconds = 60.0
    lookup_within_s: Seconds = 10.0
    within_s: Seconds = 120.0
    citations: Literal["text", "none"] = "text"
    progress: bool = True
    otherwise: TargetName = TargetName("")

    def __post_init__(self) -> None:
        if not self.otherwise:
            force_setattr(self, "otherwise", self.policy)

    def bind(self, place: str, identity: str) -> None:
        """Note where the knowledge is, and what it held when the configuration was read. Whoever knows the configuration's
        folder does this."""
        self.__dict__["bound"] = (place, identity)

    @property
    def place(self) -> str:
        """The folder or URL of the knowledge."""
        place: str = self.__dict__.get("bound", (self.knowledge, ""))[0]
        return place

    @property
    def rests_on(self) -> str:
        """What the answers rest on beside these settings: the knowledge, by its digest where that is known."""
        identity: str = self.__dict__.get("bound", (self.knowledge, ""))[1]
        return identity

    @property
    def elsewhere(self) -> bool:
        """Whether there is another target for what this router does not answer."""
        return self.otherwise != self.policy

    def route(self, turn: Turn) -> Routed:
        """The steps to an answer; at once another target where there is no question to a knowledge. Raises ClientError where
        there is none either."""
        question = asked_in(turn, self.earlier)
        if not isinstance(question, Unsuited):
            return self._steps(turn, question)
        if not self.elsewhere:
            raise ClientError(
                f"this route answers questions from a knowledge, and {question.reason}; send it to another route",
                code="unsupported_capability",
                param=question.param,
            )
        why = Why(
            "default", f"{question.reason}, so {self.otherwise} serves it", question.rule, values=dict(_ALGORITHM)
        )
        return Forward(self.otherwise, why)

    def _steps(self, turn: Turn, asked: Conversation) -> Steps:
        question = asked.messages[-1].text
        agent = answering(question, self.max_turns, self.knowledge, self.facts, self.lookup_within_s, self.style)
        replies: list[Reply] = []
        told, sent = "", None
        while True:
            try:
                (call,) = next(agent) if sent is None else agent.send(sent)
            except StopIteration as stop:
                return self._decided(turn, stop.value, replies)
            if isinstance(call, Lookup):
                sent = yield (call,)
                told = _found(call, sent[0])
                continue
            (outcome,) = yield (self._ask(asked, question, call, told),)
            told = ""
            if isinstance(outcome, Reply):
                replies.append(outcome)
            sent = (_said(outcome),)

    def _ask(self, asked: Conversation, question: str, call: Say, told: str) -> Ask:
        messages = [*asked.messages[:-1], _message("user", instructions(question))]
        for step in call.steps:
            messages += (_message("assistant", step.said), _message("user", step.shown))
        settings = Settings(max_tokens=self.turn_tokens, temperature=self.temperature, stop=STOPS)
        return Ask(
            self.policy,
            Conversation(tuple(messages), asked.system),
            "step",
            self.turn_within_s,
            settings=settings,
            tells=told if self.progress else "",
            by_s=self.within_s,
        )

    def _decided(self, turn: Turn, trajectory: Trajectory, replies: list[Reply]) -> Decision:
        failure = trajectory.failure
        if failure is not None and failure.reason != "deadline":
            return self._failed(failure, trajectory)
        found = evidence(trajectory)
        status = status_of(trajectory, found)
        last = replies[-1] if replies else Reply(())
        reply = Reply(
            (spoken(trajectory, found, self.citations == "text", turn.conversation.format),),
            usage=_sum(reply.usage for reply in replies),
            id=last.id,
            model=last.model,
            created=last.created,
            format=turn.conversation.format,
        )
        why = Why("retrieval", _sentence(status, trajectory, found), status, values=_values(status, trajectory, found))
        return Answer(reply, self.policy, why)

    def _failed(self, failure: Failure, trajectory: Trajectory) -> Decision:
        where = f"in turn {len(trajectory.steps) + 1}"
        if not self.elsewhere:
            message = f"the model that searches failed {where}: {failure.message}"
            raise UpstreamError(
                failure.kind,
                message,
                status=failure.status,
                retry_after_s=failure.retry_after_s,
                target=self.policy,
            )
        sentence = f"{self.policy} failed {where} ({failure.kind}), so {self.otherwise} answers without the knowledge"
        values = {**_ALGORITHM, "failure": failure.kind, "turns": len(trajectory.steps)}
        return Forward(self.otherwise, Why("fallback", sentence, "policy_failed", values=values))


_ALGORITHM = {"algorithm": "retrieval"}


def _message(role: Literal["user", "assistant"], text: str) -> Message:
    return Message(role, (Text(text),))


def _said(outcome: Outcome) -> Said | Failure:
    """A turn of the model as it was written, up to where it was told to stop. Not all servers stop there, or say the tag at which
    they did, and some take what it thought out of the text."""
    if isinstance(outcome, Failure):
        return outcome
    text = outcome.text
    thought = "".join(part.text for part in outcome.parts if isinstance(part, Reasoning))
    if thought and "</think>" not in text:
        text = f"<think>{thought}</think>{text}"
    ends = [at + len(stop) for stop in STOPS if (at := text.find(stop)) >= 0]
    if ends:
        return Said(text[: min(ends)])
    cut = outcome.stop == "length"
    return Said(text if cut else closed(text), cut)


def _found(lookup: Lookup, outcome: LookupOutcome) -> str:
    """What a client that waits is told of a look-up."""
    if isinstance(outcome, Found):
        count = len(outcome.facts)
        return f"looked up: {lookup.query} ({count} {'fact' if count == 1 else 'facts'})"
    return f"looked up: {lookup.query} (failed: {outcome.kind})"


def _sentence(status: Status, trajectory: Trajectory, found: Evidence) -> str:
    turns = f"{len(trajectory.steps)} {'turn' if len(trajectory.steps) == 1 else 'turns'}"
    match status:
        case "answered":
            return f"answered in {turns} by {len(found.facts)} of the {len(trajectory.facts)} facts found"
        case "unsupported":
            return f"answered in {turns}; none of the {len(trajectory.facts)} facts found names the answer"
        case "unsearched":
            return f"answered in {turns} before any fact was found"
    return f"not answered: {UNANSWERED[status].format(turns=len(trajectory.steps))}"


def _values(status: Status, trajectory: Trajectory, found: Evidence) -> dict[str, Any]:
    values: dict[str, Any] = {
        **_ALGORITHM,
        "status": status,
        "turns": len(trajectory.steps),
        "lookups": sum(step.facts is not None for step in trajectory.steps),
        "failed_lookups": sum(step.failure is not None for step in trajectory.steps),
        "facts": len(trajectory.facts),
    }
    if status not in UNANSWERED:
        values["support"] = found.support
        values["cited"] = [fact.id for fact in found.facts]
        values["sources"] = list(dict.fromkeys(source for fact in found.facts for source in fact.sources))
    return values


def _sum(usages: Iterable[Usage | None]) -> Usage | None:
    """What all turns together used; a count that any of them did not say is not known."""
    total: Usage | None = None
    for usage in usages:
        if usage is None:
            return None
        total = usage if total is None else _added(total, usage)
    return total


def _added(one: Usage, other: Usage) -> Usage:
    def of(name: str) -> Any:
        a, b = getattr(one, name), getattr(other, name)
        return None if a is None or b is None else a + b

    return Usage(**{name: of(name) for name in Usage.__struct_fields__ if name != "extra"})
