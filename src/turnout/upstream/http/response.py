"""A response as its reader sees it: status, headers, and the body as it comes in."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING

from turnout.errors import UpstreamError, afresh
from turnout.upstream.http.inflate import ENCODINGS, Inflater

if TYPE_CHECKING:
    from turnout.upstream.http.connection import Connection


class Response:
    """Read it to the end or `abort()` it: until then it holds a connection.

    A body that ends before its declared length or its last chunk raises, however much of it came. Cancelling a task
    that waits in `next` or `read` closes the connection.
    """

    __slots__ = (
        "chunks",
        "complete",
        "connection",
        "error",
        "headers",
        "inflater",
        "origin",
        "size",
        "status",
        "waiter",
    )

    def __init__(self, connection: Connection, waiter: asyncio.Future[None]) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        # From here on: written by the connection that carries the response, read here.
        self.origin = connection.origin
        self.connection: Connection | None = connection
        self.chunks: list[bytes] = []
        self.size = 0
        self.complete = False
        self.error: Exception | None = None
        self.inflater: Inflater | None = None
        self.waiter: asyncio.Future[None] | None = waiter

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header, by its lower-case name."""
        for key, value in self.headers:
            if key == name:
                return value
        return None

    async def next(self) -> bytes | None:
        """All body bytes that have come in since the last call, at least one; None at the clean end."""
        while True:
            if self.chunks or (self.inflater is not None and self.inflater.pending):
                data = self._take()
                if data:
                    return data
            elif self.error is not None:
                raise afresh(self.error)
            elif self.complete:
                if self.inflater is not None and not self.inflater.whole:
                    raise self._undecodable("it ends too early")
                return None
            else:
                await self._more()

    async def read(self, limit: int) -> bytes:
        """The whole body; malformed, and the connection closed, if it is longer than `limit` bytes."""
        first = await self.next()
        if first is None:
            return b""
        parts, size = [first], len(first)
        while size <= limit:
            data = await self.next()
            if data is None:
                return first if len(parts) == 1 else b"".join(parts)
            parts.append(data)
            size += len(data)
        self.abort()
        raise UpstreamError("malformed", f"{self.origin}: body is longer than {limit} bytes (body)")

    def abort(self) -> None:
        """Closes the connection at once; whoever waits in `next` gets an error. Again, or after the end: nothing."""
        if self.connection is not None:
            self.connection.fail(UpstreamError("cancelled", f"{self.origin}: the response was abandoned (body)"))

    async def head(self) -> None:
        """Waits for the head; the client's half of the conversation."""
        waiter = self.waiter
        assert waiter is not None
        try:
            await waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        if self.status == 0 and self.error is not None:
            raise afresh(self.error)

    def decode(self, encoding: bytes) -> bool:
        """Undoes a content-encoding; False if we do not know it. Headers then describe the decoded body."""
        encoding = encoding.strip().lower()
        if encoding in (b"", b"identity"):
            return True
        if encoding not in ENCODINGS:
            return False
        self.inflater = Inflater(encoding)
        self.headers = [pair for pair in self.headers if pair[0] not in (b"content-encoding", b"content-length")]
        return True

    def wake(self) -> None:
        """Something changed for the one who waits."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(None)

    async def _more(self) -> None:
        connection = self.connection
        assert connection is not None
        if self.waiter is not None:
            raise RuntimeError("two tasks read one response")
        waiter = self.waiter = connection.loop.create_future()
        connection.expect_body()
        try:
            await waiter
        except asyncio.CancelledError:
            self.abort()
            raise

    def _take(self) -> bytes:
        chunks = self.chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self.size = 0
        if self.inflater is not None:
            try:
                data = self.inflater.feed(data)
            except zlib.error as problem:
                self.inflater = None
                raise self._undecodable(str(problem)) from None
        connection = self.connection
        if connection is not None and connection.reading_paused:
            connection.resume_reading()
        return data

    def _undecodable(self, problem: str) -> UpstreamError:
        self.abort()
        error = UpstreamError("malformed", f"{self.origin}: the compressed body cannot be decoded: {problem} (body)")
        self.error = error
        self.chunks.clear()
        return afresh(error)
