"""Opening a connection: TCP, then a tunnel through the proxy if there is one, then TLS if the origin asks for it."""

import asyncio
import ssl

from turnout.errors import UpstreamError, UpstreamFault
from turnout.upstream.http.connection import Connection
from turnout.upstream.http.proxy import Proxy
from turnout.upstream.http.url import Url

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
        return UpstreamError(kind, f"{url.origin}: {problem} ({phase})")

    try:
        async with asyncio.timeout(within_s):
            transport, opening = await loop.create_connection(Opening, host, port)
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
            raise failure(problem.strerror or type(problem).__name__) from None
        raise
