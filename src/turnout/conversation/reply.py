"""A model's finished answer and what it used."""

from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.conversation.parts import Extra, Format, Part, Text, ToolCall

Stop: TypeAlias = Literal["end", "stop_sequence", "length", "tool_calls", "refusal", "pause"]
"""Why the model stopped. `refusal`: moderation or content filter. `pause`: a server tool paused the turn."""


class Usage(Struct, frozen=True):
    """Tokens of one call; None = the provider did not say (never 0).

    `input_tokens` excludes cached reads and writes; the whole prompt is input + cache_read + cache_write.
    `cache_write_tokens` includes `cache_write_1h_tokens` (None where the split by lifetime is unknown).
    `reasoning_tokens` are part of `output_tokens`. `extra`: native fields no other format has.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    extra: Extra = {}

    @property
    def prompt_tokens(self) -> int | None:
        """The whole prompt, cached or not; None when unknown."""
        if self.input_tokens is None:
            return None
        return self.input_tokens + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)


class Reply(Struct, frozen=True):
    """A finished answer. `frames`: the upstream's bytes as received (JSON body or SSE stream), with `format` and `streamed`
    saying what they are; None when the reply did not come over a wire. `stop_detail`: the provider's own category or
    incomplete reason. `created`: Unix seconds."""

    parts: tuple[Part, ...]
    stop: Stop = "end"
    usage: Usage | None = None
    id: str = ""
    model: str = ""
    stop_sequence: str | None = None
    stop_detail: str | None = None
    created: int | None = None
    format: Format | None = None
    frames: bytes | None = None
    streamed: bool = False
    extra: Extra = {}

    @property
    def text(self) -> str:
        """The visible text."""
        return "".join(p.text for p in self.parts if isinstance(p, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(p for p in self.parts if isinstance(p, ToolCall))
