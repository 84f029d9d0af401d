"""The Anthropic Messages codec."""

from collections.abc import Sequence

from turnout.conversation import Edit, Format, Reply
from turnout.errors import TurnoutError, UpstreamError
from turnout.wire.anthropic.failure import write_error
from turnout.wire.anthropic.patch import patch
from turnout.wire.anthropic.read_request import read_request
from turnout.wire.anthropic.reader import MessagesReader
from turnout.wire.anthropic.reply import count_reply, read_reply, write_reply
from turnout.wire.anthropic.tally import MessagesTally
from turnout.wire.anthropic.write_request import write_request
from turnout.wire.anthropic.writer import MessagesWriter
from turnout.wire.codec import Counted, ErrorReply, Request, Written
from turnout.wire.faults import upstream_error


class Messages:
    """Anthropic Messages (`POST /v1/messages`), both directions. See `turnout.wire.codec.Codec`."""

    format: Format = "anthropic_messages"
    opens_again = False

    def read_request(self, body: bytes) -> Request:
        return read_request(body)

    def write_request(
        self, request: Request, *, default_max_tokens: int | None = None, cache_marks: bool = False
    ) -> Written:
        """`cache_marks`: see `write_request.write_request`."""
        return write_request(request, default_max_tokens, cache_marks)

    def patch(self, body: bytes, edits: Sequence[Edit]) -> bytes:
        return patch(body, edits)

    def ask_usage(self, request: Request, body: bytes) -> bytes:
        return body  # Messages streams always report usage

    def read_reply(self, body: bytes, asked: Request | None = None) -> Reply:
        return read_reply(body, asked)

    def count_reply(self, body: bytes, asked: Request | None = None) -> Counted:
        return count_reply(body)

    def write_reply(self, reply: Reply, asked: Request, model: str) -> Written:
        return write_reply(reply, model)

    def read_error(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> UpstreamError:
        return upstream_error(status, headers, body)

    def write_error(self, error: TurnoutError) -> ErrorReply:
        return write_error(error)

    def reader(self, asked: Request | None = None) -> MessagesReader:
        return MessagesReader(asked)

    def writer(self, asked: Request, model: str) -> MessagesWriter:
        return MessagesWriter(model)

    def tally(self, asked: Request) -> MessagesTally:
        return MessagesTally()
