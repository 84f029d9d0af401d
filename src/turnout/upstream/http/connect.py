"""Opening a connection: TCP, then a tunnel through the proxy if there is one, then TLS if the origin asks for it."""

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Sequence
from itertools import zip_longest

from turnout.errors import UpstreamError, UpstreamFault
from turnout.upstream.http.connection import Connection
from turnout.upstream.http.proxy import Proxy
from turnout.upstream.http.url import Url

# The next address is tried when the one before has failed or has been silent for so long (RFC 8305).
_STAGGER_S = 0.25
# A proxy's answer to CONNECT has no business being longer.
_TUNNEL_HEAD_LIMIT = 16 * 1024


class Opening(asyncio.Protocol):
    """Holds the socket until the connection takes over, and speaks CONNECT to a proxy meanwhile."""

    def __init__(self) -> None:
        self.lost = False
        self.received = b""
        self._answer: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        self.received += data
        if b"\r\n\r\n" in self.received or len(self.received) > _TUNNEL_HEAD_LIMIT:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._wake()

    def _wake(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)

    async def tunnel(self, transport: asyncio.Transport, url: Url, proxy: Proxy) -> str | None:
        """Asks the proxy for a tunnel to `url`; what went wrong, or None."""
        self._answer = asyncio.get_running_loop().create_future()
        transport.write(connect_request(url, proxy))
        if not self.lost:
            await self._answer
        head, _, rest = self.received.partition(b"\r\n\r\n")
        version, _, status = head.partition(b"\r\n")[0].partition(b" ")
        if self.lost and not head:
            return "the proxy closed the connection"
        if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
            return "the proxy did not answer in HTTP/1.1"
        if not status.startswith(b"2"):
            return f"the proxy answered CONNECT with status {int(status[:3])}"
        return "the proxy sent bytes before TLS began" if rest else None


def connect_request(url: Url, proxy: Proxy) -> bytes:
    """The request that opens a tunnel."""
    authority = url.origin.partition("://")[2].encode()
    head = b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n" % (authority, authority)
    if proxy.authorization is not None:
        head += b"proxy-authorization: %b\r\n" % proxy.authorization
    return head + b"\r\n"


async def _resolve(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[tuple[str, int]]:
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys((str(entry[4][0]), port) for entry in found))
    if len(addresses) > 2:  # Alternate between IPv6 and IPv4, so that one that leads nowhere costs one step only.
        first = [address for address in addresses if (":" in address[0]) == (":" in addresses[0][0])]
        others = [address for address in addresses if address not in first]
        pairs = zip_longest(first, others)
        addresses = [address for pair in pairs for address in pair if address is not None]
    return addresses


async def first_to_answer(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[tuple[str, int]]
) -> tuple[asyncio.Transport, Opening]:
    """Connects to the addresses in order, overlapping; the first that answers wins, the rest are dropped.
    The last OSError if none does."""
    if len(addresses) == 1:
        return await loop.create_connection(Opening, *addresses[0])
    waiting = deque(addresses)
    attempts: set[asyncio.Task[tuple[asyncio.Transport, Opening]]] = set()
    error: BaseException | None = None
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(loop.create_task(loop.create_connection(Opening, *waiting.popleft())))
            patience = _STAGGER_S if waiting else None
            done, _ = await asyncio.wait(attempts, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                attempts.remove(attempt)
                error = attempt.exception()
                if error is None:
                    return attempt.result()
        raise error or OSError("the name has no address")
    finally:
        for attempt in attempts:
            attempt.cancel()
        for outcome in await asyncio.gather(*attempts, return_exceptions=True):
            if not isinstance(outcome, BaseException):
                outcome[0].abort()


def _reason(problem: OSError) -> str:
    """The system's words for it, without the address that asyncio adds."""
    if problem.errno is not None and problem.errno > 0 and not isinstance(problem, ssl.SSLError):
        return os.strerror(problem.errno)
    return problem.strerror or type(problem).__name__


async def connect(
    connection: Connection, url: Url, proxy: Proxy | None, context: ssl.SSLContext | None, within_s: float
) -> None:
    """Opens `connection`; UpstreamError names the phase that failed (connect, proxy, tls). Cancelled, it leaves no
    socket open."""
    loop = connection.loop
    phase = "connect"
    transport: asyncio.Transport | None = None
    host, port = (url.host, url.port) if proxy is None else (proxy.host, proxy.port)

    def failure(problem: str, kind: UpstreamFault = "unavailable") -> UpstreamError:
        error = UpstreamError(kind, f"{url.origin}: {problem} ({phase})")
        error.sent = False
        return error

    try:
        async with asyncio.timeout(within_s):
            transport, opening = await first_to_answer(loop, await _resolve(loop, host, port))
            if context is not None and proxy is not None:
                phase = "proxy"
                problem = await opening.tunnel(transport, url, proxy)
                if problem is not None:
                    raise failure(problem)
            if opening.lost:
                raise failure("the connection was closed as soon as it was open")
            if context is None:
                if opening.received:
                    raise failure("the server spoke first", "malformed")
                transport.set_protocol(connection)
                connection.connection_made(transport)
            else:
                phase = "tls"
                secured = await loop.start_tls(transport, connection, context, server_hostname=url.host)
                if secured is None:
                    raise failure("the connection was closed during the handshake")
                connection.connection_made(secured)
    except BaseException as problem:
        if transport is not None:
            transport.abort()
        if isinstance(problem, UpstreamError):
            raise
        if isinstance(problem, TimeoutError):
            raise failure(f"no connection within {within_s} s", "timeout") from None
        if isinstance(problem, ssl.SSLCertVerificationError):
            raise failure(f"the certificate is not trusted: {problem.verify_message}") from None
        if isinstance(problem, OSError):  # Also what TLS and name lookup raise.
            raise failure(_reason(problem)) from None
        raise
