"""The codec of OpenAI Responses."""

from collections.abc import Sequence

from turnout.conversation import Edit, Format, Reply
from turnout.errors import TurnoutError, UpstreamError
from turnout.wire.codec import Counted, ErrorReply, Reader, Request, Tally, Writer, Written
from turnout.wire.responses.content import FORMAT
from turnout.wire.responses.errors import read_error, write_error
from turnout.wire.responses.patch import patch
from turnout.wire.responses.reader import ResponsesReader
from turnout.wire.responses.reply import count_reply, read_reply
from turnout.wire.responses.request import read_request
from turnout.wire.responses.tally import ResponsesTally
from turnout.wire.responses.write_reply import write_reply
from turnout.wire.responses.write_request import write_request
from turnout.wire.responses.writer import ResponsesWriter


class Responses:
    """See `Codec`."""

    format: Format = FORMAT
    opens_again = False

    def read_request(self, body: bytes) -> Request:
        return read_request(body)

    def write_request(self, request: Request, *, default_max_tokens: int | None = None) -> Written:
        return write_request(request)

    def patch(self, body: bytes, edits: Sequence[Edit]) -> bytes:
        return patch(body, edits)

    def ask_usage(self, request: Request, body: bytes) -> bytes:
        return body

    def read_reply(self, body: bytes, asked: Request | None = None) -> Reply:
        return read_reply(body, asked)

    def count_reply(self, body: bytes, asked: Request | None = None) -> Counted:
        return count_reply(body)

    def write_reply(self, reply: Reply, asked: Request, model: str) -> Written:
        return write_reply(reply, asked, model)

    def read_error(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> UpstreamError:
        return read_error(status, headers, body)

    def write_error(self, error: TurnoutError) -> ErrorReply:
        return write_error(error)

    def reader(self, asked: Request | None = None) -> Reader:
        return ResponsesReader(asked)

    def writer(self, asked: Request, model: str) -> Writer:
        return ResponsesWriter(asked, model)

    def tally(self, asked: Request) -> Tally:
        return ResponsesTally(asked)
