"""The Chat Completions format as one `Codec`."""

from collections.abc import Sequence

from turnout.conversation import Edit, Format, Reply
from turnout.errors import TurnoutError, UpstreamError
from turnout.wire.chat.fault import read_error, write_error
from turnout.wire.chat.outgoing import write_request
from turnout.wire.chat.patch import ask_usage, patch
from turnout.wire.chat.reader import ChatReader
from turnout.wire.chat.reply import count_reply, read_reply, write_reply
from turnout.wire.chat.request import read_request
from turnout.wire.chat.tally import ChatTally
from turnout.wire.chat.writer import ChatWriter
from turnout.wire.codec import Counted, ErrorReply, Request, Written


class ChatCodec:
    """OpenAI Chat Completions and the servers compatible with it. See `turnout.wire.codec.Codec`."""

    format: Format = "openai_chat"
    opens_again = True

    def read_request(self, body: bytes) -> Request:
        return read_request(body)

    def write_request(
        self,
        request: Request,
        *,
        default_max_tokens: int | None = None,
        reasoning_content: bool = False,
        developer_role: str = "developer",
    ) -> Written:
        """`default_max_tokens` is not used: Chat needs no limit. The rest: see `outgoing.write_request`."""
        return write_request(request, reasoning_content=reasoning_content, developer_role=developer_role)

    def patch(self, body: bytes, edits: Sequence[Edit]) -> bytes:
        return patch(body, edits)

    def ask_usage(self, request: Request, body: bytes) -> bytes:
        return ask_usage(request, body)

    def read_reply(self, body: bytes, asked: Request | None = None) -> Reply:
        return read_reply(body, asked)

    def count_reply(self, body: bytes, asked: Request | None = None) -> Counted:
        return count_reply(body, asked)

    def write_reply(self, reply: Reply, asked: Request, model: str) -> Written:
        return write_reply(reply, asked, model)

    def read_error(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> UpstreamError:
        return read_error(status, headers, body)

    def write_error(self, error: TurnoutError) -> ErrorReply:
        return write_error(error)

    def reader(self, asked: Request | None = None, *, lenient: bool = False) -> ChatReader:
        return ChatReader(asked, lenient=lenient)

    def writer(self, asked: Request, model: str) -> ChatWriter:
        return ChatWriter(asked, model)

    def tally(self, asked: Request) -> ChatTally:
        return ChatTally(asked)
