"""A reply as it comes in: a closed union of events, and the two conversions between events and a whole reply.

Order, kept by every reader and relied on by every writer: `Begin`; then for each part `PartBegin`, any number of growths
(`TextDelta` for the text of Text, Reasoning and Refusal, `ArgumentsDelta` for ToolCall), `PartEnd`; then `End`. Parts never
overlap: part i+1 begins after part i has ended (a reader of a format that interleaves parts holds the later one back).
A `Fault` may come at any point and is the last event. `Usage` may come early (Messages) in `Begin` and finally in `End`.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from turnout.conversation.parts import Extra, Format, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from turnout.conversation.reply import Reply, Stop, Usage
from turnout.errors import UpstreamError, afresh


class Begin(Struct, frozen=True):
    """The reply has begun. `usage`: what is known so far. `format`: the format it was read from: only a writer of the same
    one repeats the extras of the events that follow."""

    id: str = ""
    model: str = ""
    created: int | None = None
    usage: Usage | None = None
    extra: Extra = {}
    format: Format | None = None


class PartBegin(Struct, frozen=True):
    """Part `index` begins; `part` holds what is known (usually empty text, or a call's id and name)."""

    index: int
    part: Part


class TextDelta(Struct, frozen=True):
    """More text of part `index` (Text, Reasoning or Refusal)."""

    index: int
    text: str


class ArgumentsDelta(Struct, frozen=True):
    """More argument text of the ToolCall `index`: JSON text for functions, raw input for custom tools."""

    index: int
    text: str


class PartEnd(Struct, frozen=True):
    """Part `index` is complete. `part`: the final value where the source states it or adds to it (signature, encrypted
    payload, citations, item status); None when the growths say it all."""

    index: int
    part: Part | None = None


class End(Struct, frozen=True):
    """The reply is complete: the one success terminal. `usage` is final and replaces earlier values."""

    stop: Stop
    usage: Usage | None = None
    stop_sequence: str | None = None
    stop_detail: str | None = None
    extra: Extra = {}


class Fault(Struct, frozen=True):
    """The stream broke: the one failure terminal. Nothing follows."""

    error: UpstreamError


Delta = Begin | PartBegin | TextDelta | ArgumentsDelta | PartEnd | End | Fault


def grown(part: Part, text: str) -> Part:
    """`part` with `text` put after what it holds."""
    if isinstance(part, ToolCall):
        return msgspec.structs.replace(part, arguments=part.arguments + text)
    if isinstance(part, Text | Reasoning | Refusal):
        return msgspec.structs.replace(part, text=part.text + text)
    return part


class Folding:
    """Folds events into a `Reply`: `feed` events, then read `reply`. Raises the fault's UpstreamError on a Fault."""

    __slots__ = ("_begin", "_end", "_open", "_parts", "_pieces")

    def __init__(self) -> None:
        self._begin = Begin()
        self._end: End | None = None
        self._parts: list[Part] = []
        self._open: Part | None = None
        self._pieces: list[str] = []

    def feed(self, delta: Delta) -> None:
        match delta:
            case TextDelta() | ArgumentsDelta():
                self._pieces.append(delta.text)
            case PartBegin():
                self._close()
                self._open = delta.part
            case PartEnd():
                if delta.part is not None:
                    self._open = delta.part
                    self._pieces.clear()
                self._close()
            case Begin():
                self._begin = delta
            case End():
                self._close()
                self._end = delta
            case Fault():
                # The delta keeps it, and the frame that raises it keeps the delta.
                raise afresh(delta.error)

    def _close(self) -> None:
        if self._open is not None:
            self._parts.append(self._grown(self._open))
            self._open = None
        self._pieces.clear()

    def _grown(self, part: Part) -> Part:
        return grown(part, "".join(self._pieces)) if self._pieces else part

    @property
    def complete(self) -> bool:
        """Whether the success terminal has been seen."""
        return self._end is not None

    @property
    def reply(self) -> Reply:
        """The reply so far, whole once `complete`. Reading it early changes nothing."""
        begin, end = self._begin, self._end or End("end", begin_usage(self._begin))
        return Reply(
            parts=(*self._parts, self._grown(self._open)) if self._open is not None else tuple(self._parts),
            stop=end.stop,
            usage=end.usage if end.usage is not None else begin.usage,
            id=begin.id,
            model=begin.model,
            stop_sequence=end.stop_sequence,
            stop_detail=end.stop_detail,
            created=begin.created,
            format=begin.format,
            extra={**begin.extra, **end.extra},
        )


def begin_usage(begin: Begin) -> Usage | None:
    """Usage known at the start of a reply."""
    return begin.usage


def fold(deltas: Iterable[Delta]) -> Reply:
    """The reply a whole stream of events amounts to. Raises UpstreamError on a fault or when no terminal came."""
    folding = Folding()
    for delta in deltas:
        folding.feed(delta)
    if not folding.complete:
        raise UpstreamError("malformed", "the reply ended without a terminal event")
    return folding.reply


def unfold(reply: Reply) -> Iterator[Delta]:
    """The events of a finished reply, one growth per part: `fold(unfold(r))` equals `r` but for its frames."""
    yield Begin(reply.id, reply.model, reply.created, reply.usage, reply.extra, reply.format)
    for index, part in enumerate(reply.parts):
        if isinstance(part, ToolCall):
            yield PartBegin(index, msgspec.structs.replace(part, arguments=""))
            if part.arguments:
                yield ArgumentsDelta(index, part.arguments)
        elif isinstance(part, Text | Reasoning | Refusal) and part.text:
            yield PartBegin(index, bare(part))
            yield TextDelta(index, part.text)
        else:
            yield PartBegin(index, part)
        yield PartEnd(index, part if not isinstance(part, Opaque) else None)
    yield End(reply.stop, reply.usage, reply.stop_sequence, reply.stop_detail)


def bare(part: Text | Reasoning | Refusal) -> Part:
    """What can be said of a part before any of it has come."""
    if isinstance(part, Text):
        return Text("")
    if isinstance(part, Refusal):
        return Refusal("")
    return Reasoning(id=part.id, origin=part.origin)
