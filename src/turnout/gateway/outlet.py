"""The client's end of a turn: one response head, then bytes, then nothing."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from turnout.errors import UpstreamError
from turnout.gateway.attend import Attended

Send = Callable[[Any], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class Outlet:
    """What has gone out to the client of a turn.

    `head`: extra headers, free to change until `opened`. `content_sent`: bytes that mean something are out, so the choice of
    target is final. `pinger` and `fault`: how the stream in progress says that it is alive, and that it broke.
    """

    __slots__ = ("_attended", "_send", "closed", "content_sent", "fault", "head", "opened", "pinger")

    def __init__(self, send: Send, attended: Attended) -> None:
        self._send = send
        self._attended = attended
        self.head: list[tuple[bytes, bytes]] = []
        self.opened = False
        self.closed = False
        self.content_sent = False
        self.pinger: Callable[[], bytes] | None = None
        self.fault: Callable[[UpstreamError], bytes] | None = None

    def release(self) -> None:
        """Let go of the stream it belonged to: the two refer to each other."""
        self.pinger = self.fault = None

    async def send_whole(self, status: int, body: bytes, headers: Headers) -> None:
        """A whole response at once."""
        self.opened = self.closed = self.content_sent = True
        length = (b"content-length", b"%d" % len(body))
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, length, *self.head]})
        await self._send({"type": "http.response.body", "body": body})
        self._attended.answered()

    async def write(self, data: bytes, last: bool = False) -> None:
        """Bytes of a stream; the head goes out before the first."""
        if self.closed:
            return
        self.content_sent = True
        self.closed = last
        await self._stream(data, last)
        if last:
            self._attended.answered()

    async def begin(self, data: bytes) -> None:
        """The beginning of a stream that has no content yet; it leaves the choice of target open."""
        if not self.closed:
            await self._stream(data, False)

    async def pulse(self) -> None:
        """A sign of life; it leaves the choice of target open."""
        data = self.pinger() if self.pinger is not None else b""
        if data and not self.closed:
            await self._stream(data, False)

    async def _stream(self, data: bytes, last: bool) -> None:
        self._attended.spoke()
        if not self.opened:
            self.opened = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_STREAM_HEADERS, *self.head]})
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
