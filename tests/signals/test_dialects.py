"""The same conversation gives the same signals and the same decision whatever the wire format.

What is compared: every signal, every observation, the course of the task, and the whole decision. Left out is what a format
decides by itself: the places (which message and part a result stands in), and by which evidence a failed call is known: a
flag where the format has one, else the tag it is told in (`structure`). A flag that says success has a place in
Messages only; without it nothing becomes a failure. The number of results in the whole conversation counts what stands in
for results that were never recorded, as two formats demand.
"""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recorded import needs_recordings
from tests.signals.recorded_conversations import recorded
from tests.story import Story

from turnout.conversation import (
    Conversation,
    Format,
    Image,
    Lazy,
    Media,
    Message,
    Part,
    Settings,
    Text,
    ToolCall,
    ToolResult,
)
from turnout.routing import Forward, Lane, Stage, TargetName, Turn
from turnout.routing.stage.router import StageMemory
from turnout.signals import Signals, observe, progress
from turnout.wire import CODECS
from turnout.wire.codec import Request

TRACEBACK = "Traceback (most recent call last):\nValueError: x"
STEPS = [
    "ok", "fail", "edit", "edit_failed", "test", "red", "user", "complaint", "reminder", "say", "flagged", "flagged_silent",
    "flagged_code", "declined", "parallel", "parallel_swapped", "picture", "other_picture", "custom", "interrupted", "rule",
    "flagged_picture", "text_between",
]  # fmt: skip
every_format = pytest.mark.parametrize("wire", sorted(CODECS))


def picture(data: str) -> Image:
    return Image(Media("base64", data, "image/png"))


class Told(Story):
    """A story with everything that formats carry in different ways."""

    def turn(self, *results: tuple[str, dict[str, Any] | str, tuple[Part, ...], bool | None], order: int = 1) -> None:
        """One assistant turn of parallel calls, answered in order (1) or backwards (-1)."""
        calls, answers = [], []
        for tool, arguments, parts, flag in results:
            self.calls += 1
            custom = isinstance(arguments, str)
            raw = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            calls.append(ToolCall(f"call_{self.calls}", tool, raw, "custom" if custom else "function"))
            text_only = len(parts) == 1 and isinstance(parts[0], Text)
            style: Any = "custom" if custom else "function"
            answers.append(ToolResult(f"call_{self.calls}", parts, flag, style, text_only=text_only))
        self.messages.append(Message("assistant", tuple(calls)))
        self.messages += [Message("tool", (answer,)) for answer in answers[::order]]

    def step(self, step: str) -> None:
        patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
        match step:
            case "ok":
                self.bash("ls", "a", 0)
            case "fail":
                self.bash("python x.py", TRACEBACK, 1)
            case "edit":
                self.call("str_replace_editor", {"command": "create", "path": "/a"}, "File created successfully at: /a")
            case "edit_failed":
                self.call(
                    "str_replace_editor", {"command": "str_replace", "path": "/a"}, "No replacement was performed, x"
                )
            case "test":
                self.bash("pytest", "2 passed in 0.1s", 0)
            case "red":
                self.bash("pytest", "1 failed, 2 passed in 0.1s", 1)
            case "user":
                self.say("Go on.")
            case "complaint":
                self.say("It still does not work.")
            case "reminder":
                self.say("<system-reminder>x</system-reminder>")
            case "rule":
                self.say("Be brief from now on.", "system")
            case "flagged":
                self.call("Edit", {"file_path": "/a"}, "String to replace not found in file.", is_error=True)
            case "flagged_silent":
                self.call("deploy", {"to": "b"}, "", is_error=True)
            case "flagged_code":
                self.call("Bash", {"command": "grep x a"}, "Exit code 1", is_error=True)
                self.call("Bash", {"command": "make"}, "Exit code 2\na.c:3:1: error: expected ';'", is_error=True)
            case "declined":
                self.call(
                    "Bash", {"command": "rm a"}, "The user doesn't want to proceed with this tool use.", is_error=True
                )
            case "parallel" | "parallel_swapped":
                self.turn(
                    ("Read", {"file_path": "/a"}, (Text("x = 1"),), None),
                    ("Bash", {"command": "pytest"}, (Text("Exit code 1\n1 failed in 0.1s"),), True),
                    ("Grep", {"pattern": "q"}, (Text("No matches found"),), None),
                    order=1 if step == "parallel" else -1,
                )
            case "picture" | "other_picture":
                self.turn(
                    ("take_screenshot", {"of": "page"}, (picture("AAAA" if step == "picture" else "BBBB"),), None)
                )
            case "flagged_picture":
                self.turn(("take_screenshot", {"of": "b"}, (Text("The page crashed."), picture("CCCC")), True))
            case "custom":
                self.turn(
                    ("apply_patch", patch, (Text("Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."),), None)
                )
            case "interrupted":
                self.calls += 1
                self.messages.append(
                    Message("assistant", (ToolCall(f"call_{self.calls}", "Bash", '{"command": "sleep"}'),))
                )
                self.say("Stop. Do this instead.")
            case "text_between":
                self.turn(
                    ("Read", {"file_path": "/b"}, (Text("y"),), None), ("Read", {"file_path": "/c"}, (Text("z"),), None)
                )
                self.messages.insert(-1, Message("assistant", (Text("Meanwhile."),)))
                self.bash("pwd", "/", 0)
            case _:
                self.say("I go on.", "assistant")


def told(steps: list[str]) -> Conversation:
    story = Told("Begin.")
    for step in steps:
        story.step(step)
    if story.messages[-1].role == "assistant":
        story.say("<system-reminder>x</system-reminder>")
    return story.conversation


def on_wire(conversation: Conversation, wire: Format) -> Conversation:
    """The conversation as a client of this format would send it, read from its bytes."""
    codec = CODECS[wire]
    made = Request(
        "openai_chat", msgspec.structs.replace(conversation, format=None), Settings(model="m", max_tokens=10)
    )
    return codec.read_request(codec.write_request(made, default_max_tokens=10).body).conversation


PLACES = frozenset({"message", "part", "said_at", "compacted_at"})


def placeless(value: Any) -> Any:
    """A struct as plain data, without what a format decides by itself."""
    plain = _placeless(msgspec.to_builtins(value))
    if isinstance(value, Signals):
        plain.pop("results", None)
    return plain


def _placeless(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_placeless(v) for v in value]
    if not isinstance(value, dict):
        return value
    kept = {k: _placeless(v) for k, v in value.items() if k not in PLACES}
    if kept.get("status") == "failed" and kept.get("evidence") == "structure":
        kept["evidence"] = "flag"
    return kept


class Session:
    """A stage router that meets a conversation's turns one after the other; `remembers`: with its lane's memory."""

    def __init__(self, remembers: bool) -> None:
        self.router = Stage(
            TargetName("small"), TargetName("large"), escalation_note="Look again.", deescalation_note="On."
        )
        self.lane = Lane("", "s", "", "header") if remembers else Lane()
        self.memory = StageMemory()

    def decide(self, conversation: Conversation) -> Forward:
        memory = {"/StageMemory": self.memory}
        decision = self.router.route(
            Turn("t", self.lane, conversation, Settings(), observe(conversation), {}, memory=memory)
        )
        for event in decision.remember:
            self.memory = self.memory.after(event)
        return decision


def requests(conversation: Conversation) -> list[int]:
    """Lengths of its beginnings that a client would send: up to a user's text, or to the last result of a turn."""
    messages = conversation.messages
    waiting: set[str] = set()
    found = []
    for at, message in enumerate(messages, 1):
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.add(part.id)
            elif isinstance(part, ToolResult):
                waiting.discard(part.call_id)
        if message.role == "user" or (message.role == "tool" and not waiting):
            found.append(at)
            waiting.clear()
    return found


def beginning(conversation: Conversation, length: int) -> Conversation:
    return Conversation(tuple(conversation.messages[:length]))


def without_flags_of_success(conversation: Conversation) -> Conversation:
    def plain(part: Part) -> Part:
        unneeded = isinstance(part, ToolResult) and part.is_error is False
        return msgspec.structs.replace(part, is_error=None) if unneeded else part

    return Conversation(
        tuple(msgspec.structs.replace(m, parts=tuple(map(plain, m.parts))) for m in conversation.messages)
    )


@needs_recordings
@pytest.mark.parametrize("seed", range(3))
def test_recorded_conversations_read_the_same_in_every_format(seed: int) -> None:
    draw, seen = random.Random(seed), 0
    for name, whole in recorded(8, seed):
        conversation = without_flags_of_success(whole)
        ends = requests(conversation)
        for length in draw.sample(ends, min(2, len(ends))):
            expected = placeless(observe(beginning(conversation, length)))
            seen += len(expected.get("observations", ()))
            for wire in CODECS:
                assert placeless(observe(on_wire(beginning(conversation, length), wire))) == expected, (
                    name,
                    length,
                    wire,
                )
    assert seen > 500


@needs_recordings
@pytest.mark.parametrize("remembers", [True, False], ids=["with memory", "without memory"])
def test_recorded_conversations_are_decided_the_same_in_every_format(remembers: bool) -> None:
    draw = random.Random(7)
    sources = set()
    for name, whole in recorded(6, 7):
        conversation = without_flags_of_success(whole)
        ends = requests(conversation)
        lengths = sorted(draw.sample(ends, min(6, len(ends))))
        sessions = {wire: Session(remembers) for wire in [None, *CODECS]}
        for length in lengths:
            expected = sessions[None].decide(beginning(conversation, length))
            sources.add(expected.why.source)
            for wire in CODECS:
                decision = sessions[wire].decide(on_wire(beginning(conversation, length), wire))
                assert placeless(decision) == placeless(expected), (name, length, wire)
    assert {"default", "signals"} <= sources


@needs_recordings
def test_a_flag_of_success_that_a_format_cannot_carry_makes_no_failure() -> None:
    told_so = 0
    for name, conversation in recorded(40, 0):
        flags = [p.is_error for m in conversation.messages for p in m.parts if isinstance(p, ToolResult)]
        if False not in flags:
            continue
        expected = observe(conversation).observations
        told_so += flags.count(False)
        for wire in CODECS:
            found = observe(on_wire(conversation, wire)).observations
            for with_flag, without in zip(expected, found, strict=True):
                assert (without.error_class, without.fingerprint) == (with_flag.error_class, with_flag.fingerprint), (
                    name
                )
                assert without.tests_passed == with_flag.tests_passed
    assert told_so > 100


@every_format
@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=10))
def test_signals_do_not_depend_on_the_wire_format(wire: Format, steps: list[str]) -> None:
    conversation = told(steps)
    assert placeless(observe(on_wire(conversation, wire))) == placeless(observe(conversation))


@every_format
@pytest.mark.parametrize("remembers", [True, False], ids=["with memory", "without memory"])
@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=10))
def test_decisions_do_not_depend_on_the_wire_format(wire: Format, remembers: bool, steps: list[str]) -> None:
    conversation = told(steps)
    plain, carried = Session(remembers), Session(remembers)
    for length in requests(conversation):
        decision = carried.decide(on_wire(beginning(conversation, length), wire))
        assert placeless(decision) == placeless(plain.decide(beginning(conversation, length)))


@every_format
@pytest.mark.parametrize(
    ("tool", "text", "kind"),
    [
        ("Read", "all good", "tool_error"), ("Edit", "String to replace not found in file.", "edit_failed"),
        ("Bash", "Exit code 127\nbash: foo: command not found", "command_not_found"), ("whatever", "", "tool_error"),
        ("Task", "Error: no such agent", "tool_error"), ("mcp__db__query", "5 passed in 0.1s", "tool_error"),
    ],
)  # fmt: skip
def test_a_failure_flag_survives_every_format(wire: Format, tool: str, text: str, kind: str) -> None:
    conversation = Story().call(tool, {"command": "foo"}, text, is_error=True).conversation
    (seen,) = observe(on_wire(conversation, wire)).observations
    assert (seen.status, seen.error_class, seen.error_kind) == ("failed", "capability", kind)
    assert seen.evidence in ("flag", "structure")


@every_format
def test_pictures_of_results_are_neither_user_turns_nor_the_same_again(wire: Format) -> None:
    story = Told()
    story.step("fail")
    for step in ("picture", "other_picture") * 6:
        story.step(step)
    signals = observe(on_wire(story.conversation, wire))
    assert (len(signals.observations), signals.user_turn, signals.depth) == (13, False, 13)
    found = progress(signals, 3)
    assert (found.severity, found.spinning, found.repeated) == (0, 0, 0)


@every_format
def test_an_interrupted_call_is_no_result(wire: Format) -> None:
    story = Told()
    story.step("interrupted")
    signals = observe(on_wire(story.conversation, wire))
    assert (signals.observations, signals.user_turn) == ((), True)


@every_format
def test_a_result_without_its_call_is_not_the_user(wire: Format) -> None:
    story = Story().bash("python x.py", TRACEBACK, 1)
    story.messages.append(Message("tool", (ToolResult("gone", (Text("found it"),)),)))
    signals = observe(on_wire(story.conversation, wire))
    assert not signals.user_turn
    assert [o.error_kind for o in signals.observations] == ["exception", ""]


@every_format
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=10))
def test_a_history_seen_before_is_not_decoded_in_any_format(wire: Format, steps: list[str]) -> None:
    codec = CODECS[wire]
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
