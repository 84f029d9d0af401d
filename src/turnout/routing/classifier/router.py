"""The classifier: a judge reads the request before anybody works on it, and says whose it is."""

from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from turnout.routing.classifier import capability, custom
from turnout.routing.core import Asking, Decision, Forward, State, TargetName, Turn, Why
from turnout.routing.judging import Answered, Excerpt, Judging, Question, Unanswered, consult, kept, transcript
from turnout.routing.tasks import same_task, task_of


class Classified(Struct, frozen=True, tag="classified", tag_field="event"):
    """A judge gave a verdict that counts: `target` serves; "" gives up an earlier one. `task`: the user's turn it was given in.
    `verdict`: in words."""

    target: TargetName
    task: str = ""
    verdict: str = ""


class ClassifierPin(State, frozen=True):
    """The newest verdict on an agent's work; `target` "" while there is none."""

    events: ClassVar[tuple[type[Struct], ...]] = (Classified,)

    target: TargetName = TargetName("")
    task: str = ""
    verdict: str = ""

    def after(self, event: Any) -> "ClassifierPin":
        """The newest verdict counts."""
        return ClassifierPin(event.target, event.task, event.verdict)


class Classifier(Struct, frozen=True, dict=True, tag="classifier", tag_field="type", forbid_unknown_fields=True):
    """Has a judge read the request before it is worked on, and sends it where the verdict says.

    `judge`: the target that is asked.
    `efficient`, `capable`: the two targets of a capability verdict: the efficient one serves when the judge gives it a
    sufficient probability of success.
    `base_threshold` 0..1 (default 0.5): the probability that is sufficient for what is within the efficient model's reach.
    `threshold_step` (default 0.15): how much more it takes when the verdict is uncertain or fits no rule, and twice that when it
    is beyond its reach. Two steps above the base may not exceed 1.
    `targets`: instead of the two, any number of targets by choice, for a question of your own; its text is `judging.prompt`.
    `schema`: JSON schema of the answer to that question, as a table or as JSON text (default: a reason and one of the choices).
    `choice`: JSON pointer to the choice in the answer (default `/choice`).
    `default`: who serves when there is no verdict that counts (default: the capable target; required with `targets`).
    `trigger`: `user_turn` asks when the user says something new, and keeps the verdict until then (default); `new_session` asks
    once for each agent of a session; `every_request` asks on every turn and keeps nothing.
    `fallbacks`: targets tried in order when the chosen one fails before the first content (default none).
    `judging`: how the judge is asked.
    `transcript`: how much of the work it is shown (default: the task alone, with `every_request` also the newest steps).

    A verdict is kept for an agent of a session, never for its children. What a harness puts into user messages is nothing new of
    the user's, and background calls (titles, summaries) ask nobody. Without a verdict (the judge failed, or its answer does not
    fit) the default serves this one turn, nothing is kept, and a router around this one uses its own default.
    """

    abstains: ClassVar[bool] = True

    judge: TargetName
    efficient: TargetName | None = None
    capable: TargetName | None = None
    base_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    threshold_step: Annotated[float, Meta(ge=0, le=0.5)] = 0.15
    targets: dict[str, TargetName] = {}
    schema: dict[str, Any] | str = {}
    choice: str = "/choice"
    default: TargetName | None = None
    trigger: Literal["user_turn", "new_session", "every_request"] = "user_turn"
    fallbacks: tuple[TargetName, ...] = ()
    judging: Judging = Judging()
    transcript: Excerpt | None = None

    def __post_init__(self) -> None:
        if self.targets:
            self._judge_custom()
        elif self.efficient is None or self.capable is None:
            raise ValueError("name `efficient` and `capable`, or `targets` for a question of your own")
        elif self.schema or self.choice != "/choice":
            raise ValueError("schema and choice are for a question of your own; name its `targets`")
        elif not self.base_threshold + 2 * self.threshold_step <= 1 + 1e-9:
            raise ValueError(
                f"threshold_step: two steps above base_threshold are {self.base_threshold + 2 * self.threshold_step:g}, more "
                "than any probability; lower one of them"
            )

    def _judge_custom(self) -> None:
        if self.efficient is not None or self.capable is not None:
            raise ValueError("targets: give either `targets`, or `efficient` and `capable`")
        if self.default is None:
            raise ValueError("default: name the target that serves when there is no verdict")
        if not self.judging.prompt.strip():
            raise ValueError("targets: the question is missing; write it as `prompt` under `judging`")
        schema = custom.schema_of(self.schema, self.targets)
        steps = custom.steps_of(self.choice)
        if not self.schema and self.choice != "/choice":
            raise ValueError("choice: the default schema has its choice at /choice; give a `schema` with yours")
        custom.checker(schema)
        unknown = [one for one in custom.offered(schema, steps) if one not in self.targets]
        if unknown and len(unknown) == len(custom.offered(schema, steps)):
            raise ValueError(f"targets: the schema offers none of these choices, but {', '.join(unknown)}")

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails, or there is no verdict."""
        target = self.default or self.capable
        assert target is not None  # checked at construction
        return target

    @property
    def pins(self) -> bool:
        """Whether verdicts are kept."""
        return self.trigger != "every_request"

    def concerns(self) -> list[tuple[str, str]]:
        """What an operator may not expect of these settings: (field, message)."""
        found = []
        if self.targets:
            offered = custom.offered(self._schema, custom.steps_of(self.choice))
            if left := [choice for choice in offered if choice not in self.targets]:
                found.append(("targets", f"no target for {', '.join(left)}: `{self.default}` serves"))
            if idle := [choice for choice in self.targets if offered and choice not in offered]:
                found.append(("targets", f"the schema never offers {', '.join(idle)}"))
            if self.judging.output == "json_schema" and not custom.strict(self._schema):
                found.append(
                    (
                        "schema",
                        "some servers enforce only schemas whose properties are all `required` and that set "
                        "additionalProperties = false, and refuse others; add both, or set judging.output",
                    )
                )
        if self.trigger == "every_request" and self.transcript is not None and not self.transcript.window:
            found.append(
                ("trigger", "the judge is shown the task alone, so every_request asks the same question again")
            )
        return found

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return custom.schema_of(self.schema, self.targets)

    @cached_property
    def _checked(self) -> Callable[[Any], Any]:
        return custom.checker(self._schema)

    @cached_property
    def _question(self) -> Question[Any]:
        if not self.targets:
            return capability.QUESTION
        return Question("classification", "", self._schema, dict[str, Any])

    @cached_property
    def _excerpt(self) -> Excerpt:
        # Nothing has been done yet when the user has just spoken: the task tells, not the steps before it.
        return self.transcript or (Excerpt(window=0) if self.pins else Excerpt())

    def route(self, turn: Turn) -> Asking[Decision]:
        """The target that a verdict names, kept from before or asked for now."""
        pin = self._pin(turn)
        if pin is not None:
            since = "this session" if self.trigger == "new_session" else "this task"
            sentence = f"the verdict on {since} stands: {pin.verdict}"
            return self._forward(pin.target, Why("pin", sentence))
        if turn.agent.kind == "background":
            return self._background(turn)
        text = transcript(turn.conversation, turn.signals, None, self._excerpt)
        found = yield from consult(self.judge, self._question, text, self.judging)
        target, why = self._read(found)
        if target is None:
            # Else a summary of the history, by which tasks cannot be told apart, would bring an earlier task's verdict back.
            stale = self.pins and turn.lane.identified and turn.recall(ClassifierPin).target
            return self._forward(self.otherwise, why, (Classified(TargetName("")),) if stale else ())
        if not self.pins:
            return self._forward(target, why)
        if not turn.lane.identified:
            sentence = f"{why.sentence}; the turn names no session, so the verdict is not kept"
            return self._forward(target, msgspec.structs.replace(why, sentence=sentence))
        return self._forward(target, why, (Classified(target, task_of(turn), why.sentence),))

    def _pin(self, turn: Turn) -> ClassifierPin | None:
        """The verdict that still holds for this turn."""
        if not self.pins or not turn.lane.identified:
            return None
        pin = turn.recall(ClassifierPin)
        if not pin.target or (turn.targets and pin.target not in turn.targets):
            return None
        return pin if self.trigger == "new_session" or same_task(turn, pin.task) else None

    def _background(self, turn: Turn) -> Forward:
        """Where a title, a summary or the upkeep of a conversation goes: to whom the work went, if it has the work's lane, else
        to the cheapest that is named; no judge is worth asking."""
        kept = turn.recall(ClassifierPin).target if self.pins and turn.lane.identified else None
        target = kept or self.efficient or self.otherwise
        return self._forward(target, Why("background", f"a background call goes to {target}, without asking the judge"))

    def _forward(self, target: TargetName, why: Why, events: tuple[Struct, ...] = ()) -> Forward:
        return Forward(target, why, tuple(t for t in self.fallbacks if t != target), remember=events)

    def _read(self, found: Answered[Any] | Unanswered) -> tuple[TargetName | None, Why]:
        """The target that an answer names, None when none counts, and the explanation."""
        if isinstance(found, Unanswered):
            return self._without(found.reason, f"no verdict: {found.message}", judge_failure=found.reason)
        return self._chosen(found.value) if self.targets else self._capability(found.value)

    def _capability(self, verdict: capability.Capability) -> tuple[TargetName | None, Why]:
        least = capability.needed(verdict.capability_boundary, self.base_threshold, self.threshold_step)
        enough = verdict.p_solve >= least - 1e-9
        sentence = (
            f"the judge gives {self.efficient} a probability of {verdict.p_solve:.2f} ({verdict.primary_rule}, "
            f"{verdict.capability_boundary}), {'at least' if enough else 'less than'} the {least:.2f} it takes"
        )
        why = Why(
            "classifier", sentence, verdict.primary_rule, confidence=verdict.p_solve, threshold=least,
            values=kept(msgspec.structs.asdict(verdict)),
        )  # fmt: skip
        return (self.efficient if enough else self.capable), why

    def _chosen(self, answer: dict[str, Any]) -> tuple[TargetName | None, Why]:
        try:
            self._checked(answer)
        except ValueError as error:
            message = f"no verdict: {error}"
            return self._without("invalid_response", message, judge_failure="invalid_response")
        choice = custom.at(answer, custom.steps_of(self.choice))
        key = "" if choice is custom.MISSING else custom.key_of(choice)
        target = self.targets.get(key)
        if target is None:
            what = (
                f"{kept(key[:80])!r} is no choice that has a target" if key else f"there is no choice at {self.choice}"
            )
            return self._without("unknown_choice", f"the judge abstained: {what}")
        return target, Why(
            "classifier", f"the judge chose {key!r}, which is {target}'s", key, values={"verdict": kept(answer)}
        )

    def _without(self, rule: str, sentence: str, **values: Any) -> tuple[None, Why]:
        sentence = f"{sentence}; {self.otherwise} serves this turn by default"
        return None, Why("default", sentence, rule, values=values, abstained=True)
