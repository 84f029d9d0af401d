"""The same trajectory gives the same signals whatever the wire format."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.story import Story

from turnout.conversation import Conversation, Lazy, Message, Settings
from turnout.signals import Course, Signals, observe
from turnout.wire import CODECS
from turnout.wire.codec import Request

STEPS = ["ok", "fail", "edit", "edit_failed", "test", "red", "user", "reminder", "say"]


def told(steps: list[str]) -> Conversation:
    story = Story("Begin.")
    for step in steps:
        match step:
            case "ok":
                story.bash("ls", "a", 0)
            case "fail":
                story.bash("python x.py", "Traceback (most recent call last):\nValueError: x", 1)
            case "edit":
                story.call(
                    "str_replace_editor", {"command": "create", "path": "/a"}, "File created successfully at: /a"
                )
            case "edit_failed":
                story.call(
                    "str_replace_editor", {"command": "str_replace", "path": "/a"}, "No replacement was performed, x"
                )
            case "test":
                story.bash("pytest", "2 passed in 0.1s", 0)
            case "red":
                story.bash("pytest", "1 failed, 2 passed in 0.1s", 1)
            case "user":
                story.say("Go on.")
            case "reminder":
                story.say("<system-reminder>x</system-reminder>")
            case _:
                story.say("I go on.", "assistant")
    return story.conversation


def placeless(signals: Signals) -> Signals:
    """Without the places, which differ with how a format divides messages."""
    observations = tuple(msgspec.structs.replace(o, message=0, part=0) for o in signals.observations)
    course = msgspec.convert(nowhere(msgspec.to_builtins(signals.course)), type=Course | None)
    return msgspec.structs.replace(signals, observations=observations, course=course, said_at=None, compacted_at=None)


def nowhere(value: Any) -> Any:
    """`value` with every place in it at the beginning."""
    if isinstance(value, dict):
        return {key: 0 if key in ("message", "part") else nowhere(one) for key, one in value.items()}
    return [nowhere(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("wire", sorted(CODECS))
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=10))
def test_signals_do_not_depend_on_the_wire_format(wire: str, steps: list[str]) -> None:
    conversation = told(steps)
    codec = CODECS[wire]  # type: ignore[index]
    made = Request(
        "openai_chat", msgspec.structs.replace(conversation, format=None), Settings(model="m", max_tokens=10)
    )
    read = codec.read_request(codec.write_request(made, default_max_tokens=10).body).conversation
    assert placeless(observe(read)) == placeless(observe(conversation))


@pytest.mark.parametrize("wire", sorted(CODECS))
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=10))
def test_a_history_seen_before_is_not_decoded_in_any_format(wire: str, steps: list[str]) -> None:
    codec = CODECS[wire]  # type: ignore[index]
    made = Request("openai_chat", msgspec.structs.replace(told(steps), format=None), Settings(model="m", max_tokens=10))
    body = codec.write_request(made).body
    plain = codec.read_request(body).conversation
    decoded = observe(msgspec.structs.replace(plain, messages=tuple(plain.messages)))
    assert observe(plain) == decoded
    again = codec.read_request(body).conversation
    assert isinstance(again.messages, Lazy)
    again.messages._decode = untouched
    assert observe(again) == decoded


def untouched(raw: object, index: int) -> Message:
    raise AssertionError(f"message {index} was decoded")


def test_a_text_that_names_the_key_of_results_is_no_result() -> None:
    body = b"""{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "tool_result",
        "tool_use_id": "a", "content": "\\"tool_use_id\\": x"}, {"type": "text", "text": "tool_use_id"}]},
        {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}]}"""
    assert observe(CODECS["anthropic_messages"].read_request(body).conversation).results == 1
