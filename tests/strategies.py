"""Hypothesis strategies for the neutral model: parts, messages, conversations with valid tool pairing, settings, replies,
streams of deltas."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from turnout.conversation import (
    ArgumentsDelta,
    Audio,
    Begin,
    Conversation,
    Delta,
    Document,
    End,
    Image,
    Media,
    Message,
    Opaque,
    Part,
    PartBegin,
    PartEnd,
    Reasoning,
    Refusal,
    Reply,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=16)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=16).map(str.strip).filter(bool)
"""Text that begins and ends with something to see: Messages takes no trailing space at the end of an answer begun."""

names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_-]{0,20}", fullmatch=True)
counts = st.integers(0, 10**7)
json_scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e6, 1e6), text)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
    max_leaves=6,
)
json_objects = st.dictionaries(text, json_values, max_size=3)
argument_texts = st.one_of(
    json_objects.map(lambda value: msgspec.json.encode(value).decode()),
    st.sampled_from(["", "{}", '{"a": 1}', '{ "b":"é" }', '{"z":1,"a":[true,null]}']),
)

usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=st.one_of(st.none(), counts),
    reasoning_tokens=st.one_of(st.none(), counts),
)

texts = st.builds(Text, words)
reasonings = st.builds(Reasoning, words)
images = st.builds(
    Image,
    st.one_of(
        st.builds(
            Media, st.just("base64"), st.sampled_from(["aGk=", "AAAA"]), st.sampled_from(["image/png", "image/jpeg"])
        ),
        st.builds(Media, st.just("url"), st.just("https://example.com/a.png")),
    ),
)
documents = st.builds(
    Document,
    st.builds(Media, st.just("base64"), st.just("aGk="), st.just("application/pdf")),
    name=st.one_of(st.none(), names),
)
audios = st.builds(Audio, st.builds(Media, st.just("base64"), st.just("aGk="), st.just("audio/wav")))
functions = st.builds(
    Tool,
    names,
    description=st.one_of(st.none(), words),
    parameters=st.just({"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}),
    strict=st.one_of(st.none(), st.booleans()),
)


def tools(*, style: st.SearchStrategy[Tool] = functions) -> st.SearchStrategy[list[Tool]]:
    """Tools with different names."""
    return st.lists(style, max_size=4, unique_by=lambda tool: tool.name)


@st.composite
def calls(draw: st.DrawFn, known: list[Tool] | None = None, ids: st.SearchStrategy[str] | None = None) -> ToolCall:
    """A call of one of the `known` functions (of any when there is none)."""
    name = draw(st.sampled_from([tool.name for tool in known])) if known else draw(names)
    call_id = draw(ids if ids is not None else st.integers(0, 10**9).map(lambda n: f"call_{n:09d}"))
    return ToolCall(call_id, name, draw(argument_texts))


@st.composite
def results(draw: st.DrawFn, call: ToolCall, *, media: bool = False) -> ToolResult:
    """What `call` returned: a string, or (`media`) text and images."""
    if media and draw(st.booleans()):
        return ToolResult(
            call.id, tuple(draw(st.lists(st.one_of(texts, images), min_size=1, max_size=3))), text_only=False
        )
    return ToolResult(call.id, (Text(draw(words)),))


@st.composite
def conversations(draw: st.DrawFn, *, media: bool = False) -> Conversation:
    """A legal conversation: user turns and assistant turns in alternation, every call answered directly after its turn."""
    offered = draw(tools())
    messages: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        content = texts if not media else st.one_of(texts, texts, images, documents)
        messages.append(Message("user", tuple(draw(st.lists(content, min_size=1, max_size=2)))))
        for _ in range(draw(st.integers(0, 2)) if offered else 0):
            made = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                made.append(draw(calls(offered, st.just(f"call_{number:04d}"))))
            said: list[Part] = draw(st.lists(texts, max_size=1))
            messages.append(Message("assistant", (*said, *made)))
            messages += [Message("tool", (draw(results(call, media=media)),)) for call in made]
        messages.append(Message("assistant", (draw(texts),)))
    if draw(st.booleans()):
        messages.append(Message("user", (draw(texts),)))
    system = draw(st.lists(texts, max_size=2))
    return Conversation(tuple(messages), tuple(system), tuple(offered), system_flat=len(system) < 2)


def reply_parts(*, rich: bool = False) -> st.SearchStrategy[tuple[Part, ...]]:
    """Reasoning before text before calls, as every format can carry it; `rich` adds every kind, in any order."""
    if rich:
        signed = st.builds(Reasoning, text, signature=words, origin=st.just("anthropic_messages"))
        opaque = st.builds(Opaque, st.just("openai_responses"), names, json_objects)
        other = st.builds(Refusal, words)
        return st.lists(
            st.one_of(texts, st.just(Text("")), reasonings, signed, opaque, other, calls()), max_size=5
        ).map(tuple)
    return st.tuples(
        st.lists(reasonings, max_size=1),
        st.lists(texts, max_size=1),
        st.lists(calls(), max_size=3, unique_by=lambda c: c.id),
    ).map(lambda groups: tuple(part for group in groups for part in group))


@st.composite
def replies(draw: st.DrawFn, *, rich: bool = False) -> Reply:
    """A finished answer whose stop reason fits its parts."""
    parts = draw(reply_parts(rich=rich))
    called = any(isinstance(part, ToolCall) for part in parts)
    stop: Any = "tool_calls" if called else draw(st.sampled_from(["end", "length"]))
    return Reply(
        parts,
        stop,
        draw(usages),
        id=draw(names),
        model=draw(names),
        created=draw(st.integers(1, 2**31)),
        extra=draw(json_objects) if rich else {},
        stop_sequence=draw(st.one_of(st.none(), words)) if rich else None,
        stop_detail=draw(st.one_of(st.none(), words)) if rich else None,
    )


def cuts(value: str) -> st.SearchStrategy[list[str]]:
    """`value` in pieces, none of them empty."""
    return st.lists(st.integers(0, len(value)), max_size=4, unique=True).map(
        lambda at: [value[a:b] for a, b in zip([0, *sorted(at)], [*sorted(at), len(value)], strict=True) if a < b]
    )


@st.composite
def streams(draw: st.DrawFn, reply: Reply) -> list[Delta]:
    """`reply` as it could have come in: growths cut anywhere, final values stated or left unsaid."""
    deltas: list[Delta] = [Begin(reply.id, reply.model, reply.created, None, reply.extra)]
    for index, part in enumerate(reply.parts):
        grows = isinstance(part, Text | Reasoning | Refusal | ToolCall)
        if isinstance(part, ToolCall):
            start: Part = msgspec.structs.replace(part, arguments="")
            growths: list[Delta] = [ArgumentsDelta(index, piece) for piece in draw(cuts(part.arguments))]
        elif isinstance(part, Text | Reasoning | Refusal):
            start = msgspec.structs.replace(part, text="")
            growths = [TextDelta(index, piece) for piece in draw(cuts(part.text))]
        else:
            start, growths = part, []
        stated = part if grows and draw(st.booleans()) else None
        deltas += [PartBegin(index, start), *growths, PartEnd(index, stated)]
    deltas.append(End(reply.stop, reply.usage, reply.stop_sequence, reply.stop_detail))
    return deltas


@st.composite
def chunked(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """`stream` in chunks, cut anywhere."""
    at = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    return [stream[a:b] for a, b in zip([0, *at], [*at, len(stream)], strict=True)]
