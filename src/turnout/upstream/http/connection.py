"""One connection to an upstream: the protocol the event loop drives, one exchange at a time."""

from __future__ import annotations

import asyncio
import socket
import ssl
from math import inf
from typing import TYPE_CHECKING, cast

import httptools

from turnout.errors import UpstreamError, UpstreamFault
from turnout.upstream.http.deadlines import Timeouts
from turnout.upstream.http.response import Response

if TYPE_CHECKING:
    from turnout.upstream.http.pool import Pool

# A head may be this long, and so may anything else that is not body (interim responses, chunk extensions, trailers).
HEAD_LIMIT = 64 * 1024
# The reader may fall this far behind before the socket is left unread.
READ_AHEAD = 256 * 1024
# A body up to this size goes out in one write with the head; a larger one in slices, as the socket takes them.
ONE_WRITE = 16 * 1024
WRITE_SLICE = 256 * 1024


class Stale(Exception):
    """A kept-alive connection that the server closed before it answered with a single byte: safe to send again."""


class Connection(asyncio.Protocol):
    """Connected, then lent to one exchange after another until either side closes it.

    `response` is the exchange in progress; None means idle or closed. Whatever goes wrong closes the connection: it
    returns to its pool only after a complete response with nothing behind it.
    """

    __slots__ = (
        "_bodyless", "_complete", "_idle_s", "_in_body", "_interim", "_parser", "_phase", "_received", "_refusal",
        "_reusable", "_silent", "_timeouts", "_transport", "_unsent", "_until_eof", "_used", "_write_blocked", "closed",
        "deadline", "holds_slot", "loop", "origin", "pool", "reading_paused", "response",
    )  # fmt: skip

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop, origin: str) -> None:
        self.pool = pool
        self.loop = loop
        self.origin = origin
        self.response: Response | None = None
        self.deadline = inf
        self.closed = False
        self.holds_slot = False
        self.reading_paused = False
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._timeouts = Timeouts()
        self._idle_s = inf
        self._used = False
        self._write_blocked = False
        self._unsent: memoryview | None = None
        self._reset("")

    def _reset(self, phase: str) -> None:
        self._phase = phase
        self._received = False
        self._in_body = False
        self._interim = False
        self._complete = False
        self._bodyless = False
        self._until_eof = False
        self._reusable = True
        self._refusal = ""
        # Bytes received since the last byte of body: bounds all that is not body.
        self._silent = 0

    # The exchange

    def start(self, method: str, head: bytes, body: bytes, timeouts: Timeouts) -> Response:
        """Writes the request; await `head()` of what it returns."""
        transport = self._transport
        assert transport is not None
        response = self.response = Response(self, self.loop.create_future())
        self._reset("first_byte")
        self._bodyless = method == "HEAD"
        if timeouts is not self._timeouts:
            self._timeouts = timeouts
            self._idle_s = inf if timeouts.idle_s is None else timeouts.idle_s
        if len(body) <= ONE_WRITE:
            transport.write(head + body if body else head)
        else:
            self._unsent = memoryview(body)[WRITE_SLICE:] if len(body) > WRITE_SLICE else None
            transport.writelines((head, body if self._unsent is None else memoryview(body)[:WRITE_SLICE]))
            self._pump()
        self._expect_head()
        return response

    def _pump(self) -> None:
        while self._unsent is not None and not self._write_blocked:
            piece, rest = self._unsent[:WRITE_SLICE], self._unsent[WRITE_SLICE:]
            self._unsent = rest if len(rest) else None
            assert self._transport is not None
            self._transport.write(piece)

    def _expect_head(self) -> None:
        if self._write_blocked:
            self._phase = "write"
            self._expire_in(self._timeouts.write_s)
        else:
            self._phase = "first_byte"
            self._expire_in(self._timeouts.first_byte_s)

    def expect_body(self) -> None:
        """Somebody waits for the next byte of the body: from now on the upstream must not stall."""
        self._expire_in(self._timeouts.idle_s)

    def _expire_in(self, seconds: float | None) -> None:
        if seconds is None:
            self.deadline = inf
            return
        deadline = self.deadline = self.loop.time() + seconds
        if deadline < self.pool.deadlines.armed_for:
            self.pool.deadlines.arm(deadline)

    def rest(self, keepalive_s: float) -> None:
        """Back in the pool, for a limited time."""
        self._used = True
        self._expire_in(keepalive_s)

    def expire(self) -> None:
        """The deadline has passed."""
        limits = self._timeouts
        if self.response is None:
            self.close()
        elif self._phase == "write":
            self._fail_as("timeout", f"the request made no progress for {limits.write_s} s")
        elif self._phase == "first_byte":
            self._fail_as("timeout", f"no response within {limits.first_byte_s} s")
        else:
            self._fail_as("timeout", f"no byte of the body for {limits.idle_s} s")

    def fail(self, error: Exception) -> None:
        """Ends the exchange, if there is one, with `error`, and the connection with it."""
        response, self.response = self.response, None
        if response is not None:
            response.connection = None
            response.error = error
            response.wake()
        self.close()

    def _fail_as(self, kind: UpstreamFault, problem: str) -> None:
        self.fail(UpstreamError(kind, f"{self.origin}: {problem} ({self._phase})"))

    def _finish(self) -> None:
        response, self.response = self.response, None
        assert response is not None
        response.connection = None
        response.complete = True
        response.wake()
        if self._reusable and self._unsent is None and not self._write_blocked:
            if self.reading_paused:
                self.resume_reading()
            self.pool.put(self)
        else:
            self.close()

    def close(self) -> None:
        """Closes the socket at once and gives up the slot in the pool. Again: nothing."""
        if self.closed:
            return
        self.closed = True
        self.deadline = inf
        # The parser holds this object's methods: let the cycle go.
        self._parser = self._unsent = None
        self.pool.leave(self)
        if self._transport is not None:
            self._transport.abort()

    def resume_reading(self) -> None:
        """The reader has caught up."""
        self.reading_paused = False
        if self._transport is not None and not self.closed:
            self._transport.resume_reading()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Models think for minutes without a byte; routers on the way forget silent connections.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.pool.connections.add(self)

    def data_received(self, data: bytes) -> None:
        response, parser = self.response, self._parser
        if response is None or parser is None:
            self.close()  # Bytes nobody asked for: whatever they are, the next response is not behind them.
            return
        self._received = True
        self._silent += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refusal = "the server switched to another protocol"
        except httptools.HttpParserError as problem:
            self._reusable = False
            if not self._complete and not self._refusal:
                self._refusal = f"the response is not valid HTTP/1.1: {problem}"
        if self._refusal:
            self._fail_as("malformed", self._refusal)
        elif self._complete:
            self._finish()
        elif self._silent > HEAD_LIMIT:
            what = "more than the body carries" if self._in_body else "the response head is too long"
            self._fail_as("malformed", f"{what}: over {HEAD_LIMIT} bytes")
        elif response.chunks:
            if response.waiter is not None:
                self.deadline = inf
                response.wake()
            if response.size > READ_AHEAD and not self.reading_paused:
                self.reading_paused = True
                assert self._transport is not None
                self._transport.pause_reading()

    def eof_received(self) -> None:
        if self.response is not None and self._until_eof and self._ended_on_purpose():
            self._reusable = False
            self._finish()
        else:
            self._lost(None)

    def _ended_on_purpose(self) -> bool:
        # Over TLS anybody on the way can end a connection; the server signs its own end (close_notify), and after it
        # a read gives nothing, where otherwise it would ask for more. Not every event loop tells the two apart.
        assert self._transport is not None
        tls = self._transport.get_extra_info("ssl_object")
        try:
            return tls is None or tls.read(1) == b""
        except ssl.SSLError:
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(exc)
        self._transport = None
        self.pool.connections.discard(self)
        if not self.pool.connections and self.pool.emptied is not None:
            self.pool.emptied.set()

    def pause_writing(self) -> None:
        self._write_blocked = True

    def resume_writing(self) -> None:
        self._write_blocked = False
        if self.closed:
            return
        self._pump()
        if self._phase == "write" and self.response is not None:
            self._expect_head()

    def _lost(self, exc: Exception | None) -> None:
        if self.response is None:
            self.close()
        elif self._used and not self._received:
            self.fail(Stale())
        else:
            how = "reset" if isinstance(exc, ConnectionError) else "closed"
            until = "the end of the body" if self._in_body else "a complete response head"
            self._fail_as("unavailable", f"the connection was {how} before {until}")

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._complete:  # Something follows the response: what, we shall not ask.
            self._reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body and self.response is not None:  # Else a trailer, or the leftovers.
            self.response.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        response, parser = self.response, self._parser
        if self._complete or response is None or parser is None:
            return
        status = parser.get_status_code()
        if status < 200:
            self._interim = True
            response.headers.clear()
            if status < 100:
                self._refusal = "the response has no valid status"
            return
        if not parser.should_keep_alive():
            self._reusable = False
            self._frame(parser, status, response)
        if self._silent > HEAD_LIMIT and sum(len(n) + len(v) + 4 for n, v in response.headers) > HEAD_LIMIT:
            self._refusal = f"the response head is too long: over {HEAD_LIMIT} bytes"
        self._in_body = True
        self._phase = "body"
        self.deadline = inf
        if self._bodyless:
            # The parser cannot be told that no body follows, so it cannot go on after this head.
            self._complete, self._reusable = True, False
        elif (encoding := response.header(b"content-encoding")) is not None and not response.decode(encoding):
            self._refusal = "the body has a content-encoding that was not asked for"
        if not self._refusal:
            response.status = status
            response.wake()

    def _frame(self, parser: httptools.HttpResponseParser, status: int, response: Response) -> None:
        if parser.get_http_version() not in ("1.1", "1.0"):
            self._refusal = "the response is not HTTP/1.1"
        names = {name for name, _ in response.headers}
        if b"transfer-encoding" in names:
            coding = response.header(b"transfer-encoding") or b""
            if not coding.lower().rstrip().endswith(b"chunked"):
                self._refusal = "the response has a transfer-encoding other than chunked"
        elif b"content-length" not in names and status not in (204, 304):
            self._until_eof = True

    def on_body(self, data: bytes) -> None:
        response = self.response
        if response is not None and not self._complete:
            self._silent = 0
            response.chunks.append(data)
            response.size += len(data)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        else:
            self._complete = True
