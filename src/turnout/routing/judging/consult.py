"""One question to a model, and its checked answer or the reason why there is none."""

from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from turnout.conversation import Conversation, Message, OutputFormat, Refusal, Reply, Settings, Text
from turnout.conversation.settings import Effort
from turnout.routing.core import Ask, Asking, Failure, Outcome, TargetName
from turnout.routing.judging.structured import NotStructured, read_object

FailOpen: TypeAlias = Literal[
    "timeout",
    "transport",
    "upstream_5xx",
    "upstream_non_5xx",
    "rate_limit",
    "invalid_response",
    "parse_error",
    "client_error",
    "breaker",
    "budget",
]
"""Why a judge's answer does not count. `timeout`: none in time. `transport`: no connection, or one that broke. `upstream_5xx`,
`upstream_non_5xx`, `rate_limit`: its server refused. `invalid_response`: an answer that is cut, empty, declined, or does not
fit the schema. `parse_error`: not the JSON that was asked for. `client_error`: the question could not be put to this target.
`breaker`, `budget`: it was not put, because the judge failed too often of late, or the route's judges have had their share."""
FAIL_OPEN: tuple[FailOpen, ...] = get_args(FailOpen)

V = TypeVar("V")


class Judging(Struct, frozen=True, forbid_unknown_fields=True):
    """How a judge is asked.

    `within_s` (default 30): seconds after which its answer no longer counts. `max_output_tokens` (default 4096): the most it may
    write, its reasoning included. `temperature` (default none): the model's own when none; some models refuse any. `effort`
    (default none): how much it shall reason, in the model's own words; the model's own when none.
    `output`: `json_schema` asks for structured output (default), `json_object` for any JSON object, `text` relies on the prompt
    alone, for servers that know neither; the answer is checked here all the same. `prompt`: replaces the built-in instructions;
    the shape of the answer is added to it.
    """

    within_s: Annotated[float, Meta(gt=0, le=600)] = 30.0
    max_output_tokens: Annotated[int, Meta(ge=16)] = 4096
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    effort: str = ""
    output: Literal["json_schema", "json_object", "text"] = "json_schema"
    prompt: str = ""


class Question(Struct, Generic[V], frozen=True):
    """What a judge is asked. `name`: of the answer's schema, a word. `instructions`: its system prompt, without the shape of the
    answer. `schema`: JSON schema of the answer, whose key order the model follows. `answer`: the type it is checked against.
    `purpose`: the call's, for ledger and prices."""

    name: str
    instructions: str
    schema: dict[str, Any]
    answer: type[V]
    purpose: str = "judge"

    def missed(self, reply: Reply) -> str:
        """The reason of the closed set for which `reply` is no answer to this question, "" when it is one."""
        found = read(reply, self)
        return found.reason if isinstance(found, Unanswered) else ""


class Answered(Struct, Generic[V], frozen=True):
    """A judge's answer, checked."""

    value: V


class Unanswered(Struct, frozen=True):
    """No answer that counts. `reason`: of the closed set; `message`: for people, without what the judge wrote."""

    reason: FailOpen
    message: str


class Verdict(Struct, frozen=True):
    """A judge's yes or no on moving up."""

    escalate: bool
    reason: str = ""


def consult(
    target: TargetName, question: Question[V], text: str, judging: Judging | None = None
) -> Asking[Answered[V] | Unanswered]:
    """`found = yield from consult(...)`: asks `target` the question about `text`, with nothing of the client's settings or
    tools."""
    (outcome,) = yield (question_of(target, question, text, judging),)
    return read(outcome, question)


def question_of(target: TargetName, question: Question[V], text: str, judging: Judging | None = None) -> Ask:
    """The call that asks `target` the question about `text`."""
    how = judging or _DEFAULT
    conversation = Conversation(
        messages=(Message("user", (Text(text),)),), system=(Text(_instructions(question, how)),), roles=("user",)
    )
    return Ask(
        target, conversation, question.purpose, how.within_s, settings=_settings(question, how), expects=question
    )


_DEFAULT = Judging()


def _instructions(question: Question[Any], how: Judging) -> str:
    schema = msgspec.json.encode(question.schema).decode()
    prompt = (how.prompt or question.instructions).strip()
    return f"{prompt}\n\nAnswer with one JSON object that fits this schema, and with nothing else:\n{schema}"


def _settings(question: Question[Any], how: Judging) -> Settings:
    output = None
    if how.output == "json_schema":
        output = OutputFormat("json_schema", name=question.name, schema=question.schema, strict=True)
    elif how.output == "json_object":
        output = OutputFormat("json_object")
    return Settings(
        max_tokens=how.max_output_tokens,
        temperature=how.temperature,
        output=output,
        effort=Effort(how.effort) if how.effort else None,
    )


def read(outcome: Outcome, question: Question[V]) -> Answered[V] | Unanswered:
    """What an outcome amounts to as an answer to `question`."""
    if isinstance(outcome, Failure):
        return failed(outcome)
    text = outcome.text
    if outcome.stop == "length":
        return Unanswered("invalid_response", "the judge's answer was cut at max_output_tokens")
    if outcome.stop == "refusal" or any(isinstance(part, Refusal) for part in outcome.parts):
        return Unanswered("invalid_response", "the judge declined to answer")
    if not text.strip():
        return Unanswered("invalid_response", f"the judge wrote no text ({_instead(outcome)})")
    try:
        return Answered(msgspec.convert(read_object(text), question.answer))
    except NotStructured as error:
        return Unanswered("parse_error", f"the judge's answer cannot be read: {error}")
    except msgspec.ValidationError as error:
        return Unanswered("invalid_response", f"the judge's answer does not fit: {_unfit(error)}")


def _unfit(error: msgspec.ValidationError) -> str:
    """Where and how an answer does not fit, without the value that stands there."""
    problem, at, where = str(error).rpartition(" - at ")
    return f"Invalid enum value{at}{where}" if problem.startswith("Invalid enum value") else str(error)


def _instead(reply: Reply) -> str:
    return "it called a tool" if reply.calls else "nothing at all" if not reply.parts else "reasoning only"


def failed(failure: Failure) -> Unanswered:
    """A failed call as a reason of the closed set."""
    if failure.reason and failure.reason != "deadline":
        return Unanswered(failure.reason, f"the judge was not asked: {failure.message}"[:500])
    return Unanswered(_reason(failure), f"the judge could not be asked ({failure.kind}): {failure.message}"[:500])


def _reason(failure: Failure) -> FailOpen:
    status = failure.status
    match failure.kind:
        case "timeout":
            return "timeout"
        case "rate_limit":
            return "rate_limit"
        case "malformed":
            return "invalid_response"
        case "unavailable":
            return "transport" if status is None or status < 500 else "upstream_5xx"
        case "request":
            return "client_error" if status is None else "upstream_non_5xx"
        case "cancelled":
            return "transport"
        case "overflow" | "refused" | "auth":
            return "upstream_non_5xx"
