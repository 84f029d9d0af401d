"""How a judge is asked, and what its outcome amounts to."""

import json
from typing import Any, get_args

import msgspec
import pytest

from turnout.conversation import Reasoning, Refusal, Reply, Stop, Text, ToolCall
from turnout.errors import UpstreamFault
from turnout.routing import Failure, TargetName
from turnout.routing.core import Ask
from turnout.routing.judging import (
    FAIL_OPEN,
    Answered,
    FailOpen,
    Judging,
    Question,
    Unanswered,
    Verdict,
    consult,
    failed,
    read,
)
from turnout.steps import Run

JUDGE = TargetName("judge")
SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}, "escalate": {"type": "boolean"}}}
QUESTION = Question("verdict", "You judge.", SCHEMA, Verdict)


def asked(judging: Judging | None = None) -> Ask:
    run: Run[Ask, object, object] = Run(consult(JUDGE, QUESTION, "the work", judging))
    (only,) = run.pending
    return only


def test_the_judge_gets_the_question_and_nothing_of_the_clients() -> None:
    ask = asked()
    assert (ask.target, ask.purpose, ask.within_s, ask.edits) == (JUDGE, "judge", 30.0, ())
    assert ask.conversation.messages[0].text == "the work"
    assert not ask.conversation.tools
    (system,) = ask.conversation.system
    assert isinstance(system, Text)
    assert system.text.startswith("You judge.")
    assert json.loads(system.text.splitlines()[-1]) == SCHEMA
    assert ask.settings is not None
    assert (ask.settings.max_tokens, ask.settings.temperature, ask.settings.tool_choice) == (4096, None, None)


@pytest.mark.parametrize("output", ["json_schema", "json_object", "text"])
def test_structured_output_is_asked_for_as_configured(output: str) -> None:
    how = msgspec.convert(
        {"output": output, "temperature": 0.0, "within_s": 5, "max_output_tokens": 100, "effort": "low"}, Judging
    )
    ask = asked(how)
    settings = ask.settings
    assert settings is not None
    assert (settings.temperature, settings.max_tokens, ask.within_s) == (0.0, 100, 5.0)
    assert settings.effort is not None
    assert settings.effort.level == "low"
    if output == "text":
        assert settings.output is None
    else:
        assert settings.output is not None
        assert settings.output.kind == output
        assert settings.output.schema == (SCHEMA if output == "json_schema" else None)


def test_an_operators_prompt_replaces_the_instructions_but_not_the_shape() -> None:
    (system,) = asked(Judging(prompt="Be strict.")).conversation.system
    assert isinstance(system, Text)
    assert system.text.startswith("Be strict.")
    assert json.loads(system.text.splitlines()[-1]) == SCHEMA


def test_an_answer_that_fits_counts() -> None:
    reply = Reply((Reasoning("hm"), Text('{"reason":"a loop","escalate":true}')))
    assert read(reply, QUESTION) == Answered(Verdict(True, "a loop"))
    assert read(Reply((Text('{"escalate":false}'),)), QUESTION) == Answered(Verdict(False))


@pytest.mark.parametrize(
    ("parts", "stop", "reason", "says"),
    [
        ((), "end", "invalid_response", "no text"),
        ((Reasoning("hm"),), "end", "invalid_response", "reasoning only"),
        ((ToolCall("c", "f"),), "tool_calls", "invalid_response", "called a tool"),
        ((Text('{"escalate":true}'),), "length", "invalid_response", "cut"),
        ((Refusal("no"),), "end", "invalid_response", "declined"),
        ((Text("no"),), "refusal", "invalid_response", "declined"),
        ((Text("Let me think about this at length."),), "end", "parse_error", "prose"),
        ((Text('{"escalate":"true"}'),), "end", "invalid_response", "fit"),
        ((Text('{"reason":"x"}'),), "end", "invalid_response", "escalate"),
        ((Text('{"escalate":1}'),), "end", "invalid_response", "fit"),
    ],
)
def test_an_answer_that_does_not_count_says_why(
    parts: tuple[Text, ...], stop: Stop, reason: FailOpen, says: str
) -> None:
    found = read(Reply(parts, stop), QUESTION)
    assert isinstance(found, Unanswered)
    assert found.reason == reason
    assert says in found.message


def test_the_host_is_told_what_counts_as_an_answer() -> None:
    run: Run[Ask, Any, Any] = Run(consult(TargetName("judge"), QUESTION, "text"))
    (asked,) = run.pending
    run.close()
    assert asked.expects is not None
    assert asked.expects.missed(Reply((Text('{"escalate": true, "reason": "lost"}'),))) == ""
    assert asked.expects.missed(Reply((Text("I would say yes"),))) == "parse_error"
    assert asked.expects.missed(Reply((Text('{"escalate": true}'),), "length")) == "invalid_response"


def test_what_the_judge_wrote_is_not_repeated() -> None:
    found = read(Reply((Text("the secret of the transcript"),)), QUESTION)
    assert isinstance(found, Unanswered)
    assert "secret" not in found.message


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Failure("timeout"), "timeout"),
        (Failure("rate_limit", status=429), "rate_limit"),
        (Failure("malformed"), "invalid_response"),
        (Failure("unavailable"), "transport"),
        (Failure("unavailable", status=503), "upstream_5xx"),
        (Failure("unavailable", status=529), "upstream_5xx"),
        (Failure("auth", status=401), "upstream_non_5xx"),
        (Failure("overflow", status=400), "upstream_non_5xx"),
        (Failure("refused", status=400), "upstream_non_5xx"),
        (Failure("request", status=422), "upstream_non_5xx"),
        (Failure("request"), "client_error"),
        (Failure("rate_limit", status=429, reason="breaker"), "breaker"),
        (Failure("unavailable", reason="budget"), "budget"),
    ],
)
def test_a_failed_call_is_one_of_the_closed_set(failure: Failure, reason: FailOpen) -> None:
    assert failed(failure).reason == reason


def test_every_fault_has_a_reason() -> None:
    for kind in get_args(UpstreamFault):
        for status in (None, 400, 500):
            assert failed(Failure(kind, status=status)).reason in FAIL_OPEN


@pytest.mark.parametrize(
    "fields", [{"within_s": 0}, {"max_output_tokens": 1}, {"temperature": 3}, {"output": "xml"}, {"tools": []}]
)
def test_impossible_settings_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, Judging)
