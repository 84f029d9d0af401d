"""The contract of a wire format: bytes <-> conversation, as pure functions and small push machines.

To add a format: one module (or folder) that implements `Codec`, one line in `turnout.wire.CODECS`, one corpus folder.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from turnout.conversation import Conversation, Delta, Edit, Format, Reply, Settings, Stop, Usage
from turnout.errors import ClientError, TurnoutError, UpstreamError
from turnout.wire.drops import Drop


class Request(Struct, frozen=True):
    """A request as read: its conversation and settings, and the body it came in, untouched."""

    format: Format
    conversation: Conversation
    settings: Settings
    body: bytes = b""


class Written(Struct, frozen=True):
    """Bytes for another side, and what they could not carry."""

    body: bytes
    drops: tuple[Drop, ...] = ()


class Counted(NamedTuple):
    """What an account of a reply needs: its id, usage and stop."""

    id: str
    usage: Usage | None
    stop: Stop


class ErrorReply(Struct, frozen=True):
    """An error in a format's envelope. `headers` include content-type and, where known, retry-after."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Reader(Protocol):
    """Turns the bytes of a streamed reply into deltas. Feeding is incremental: chunk borders never matter."""

    def feed(self, chunk: bytes) -> list[Delta]:
        """The deltas that `chunk` completes. After the terminal (`End` or `Fault`) nothing more comes."""
        ...

    def close(self) -> list[Delta]:
        """The upstream closed. Gives what was held back; a `Fault` when no terminal had been seen."""
        ...


class Writer(Protocol):
    """Turns deltas into the bytes of a streamed reply in a client's format, with exactly one terminal.

    `refusal`: why the reply cannot be said in this format; `feed` has returned the failure terminal that says so.
    """

    refusal: ClientError | None

    def feed(self, delta: Delta) -> bytes:
        """The bytes to send now (may be empty). After a terminal every further delta gives b""."""
        ...

    def ping(self) -> bytes:
        """Bytes that keep an idle stream alive without meaning anything, legal at this point of the stream."""
        ...


class Tally(Protocol):
    """Watches a streamed reply that is relayed as it is, at the least cost that still accounts for it.

    `feed` returns the bytes to relay: `chunk` itself, except that an event holding only usage that the client did not ask
    for is taken out. A held-back incomplete event is returned once it is whole; so join what `feed` and `close` return.
    """

    id: str
    model: str
    usage: Usage | None
    stop: Stop | None
    error: UpstreamError | None  # an in-stream error event
    started: bool  # a first content byte has been seen (text, reasoning, call, refusal)
    ended: bool  # the terminal (success or failure) has been seen

    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes:
        """The upstream closed. `error` is set to a malformed fault when no terminal had been seen."""
        ...

    def ping(self) -> bytes:
        """Bytes that keep the idle stream alive, legal after what `feed` has returned so far."""
        ...

    def fault(self, error: UpstreamError) -> bytes:
        """The stream's one failure terminal, in this format, continuing what `feed` has returned so far (ids and sequence
        numbers included); b"" when a terminal has been relayed already."""
        ...


class Codec(Protocol):
    """One wire format. Methods are pure; machines hold only their own stream's state.

    `asked` is the client's request, in its own format: replies need it to restore tool names and styles, to stamp what the
    format echoes, and to know whether stream usage was asked for. `model` is the name to state as the served model.
    """

    format: Format
    opens_again: bool
    """Whether a stream that has said no more than that it began may be followed by another one from its beginning. Where it
    may, the beginning goes out at once; elsewhere it is held until the first content, since until then another model may
    have to answer."""

    def read_request(self, body: bytes) -> Request:
        """Raises ClientError naming the path at fault. Indexes only; messages decode on access, so a malformed message may
        raise ClientError on access."""
        ...

    def write_request(self, request: Request, *, default_max_tokens: int | None = None) -> Written:
        """`request` (read from any format) in this format. Raises ClientError for what must not be silently lost.
        `default_max_tokens`: used where this format demands a limit and the client gave none."""
        ...

    def patch(self, body: bytes, edits: Sequence[Edit]) -> bytes:
        """The native body with `edits` applied in place, idempotent; all other bytes stay."""
        ...

    def ask_usage(self, request: Request, body: bytes) -> bytes:
        """`body` of a streamed request, changed if needed so that the stream reports usage."""
        ...

    def read_reply(self, body: bytes, asked: Request | None = None) -> Reply:
        """A buffered reply. Raises UpstreamError: malformed, or the failure that a 200 carries in its body."""
        ...

    def count_reply(self, body: bytes, asked: Request | None = None) -> "Counted":
        """What is kept of a buffered reply that is relayed as it is. Raises like `read_reply`."""
        ...

    def write_reply(self, reply: Reply, asked: Request, model: str) -> Written: ...

    def read_error(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> UpstreamError:
        """A non-2xx answer, classified (see UpstreamFault), whatever the body is (JSON, HTML, nothing)."""
        ...

    def write_error(self, error: TurnoutError) -> ErrorReply: ...

    def reader(self, asked: Request | None = None) -> Reader: ...

    def writer(self, asked: Request, model: str) -> Writer: ...

    def tally(self, asked: Request) -> Tally: ...
