"""The client: picks a connection, sends, and answers with the response once its head is in."""

import asyncio
import os
import ssl
from collections.abc import Collection, Sequence

from turnout.errors import UpstreamError
from turnout.upstream.http.connect import connect
from turnout.upstream.http.connection import Connection, Stale
from turnout.upstream.http.deadlines import Deadlines, Timeouts
from turnout.upstream.http.pool import Pool
from turnout.upstream.http.proxy import Proxies
from turnout.upstream.http.response import Response
from turnout.upstream.http.url import Url, request_head

_NO_LENGTH = frozenset(("GET", "HEAD", "DELETE", "OPTIONS", "TRACE"))


class Client:
    """Keeps connections per origin and lends them to requests. One client serves one event loop.

    `limit_per_host` bounds the connections to one scheme, host and port; `keepalive_s` is how long an idle one is
    kept. Certificates are checked against the system's (or SSL_CERT_FILE) unless an `ssl_context` says otherwise.
    Proxies are read from the environment here and now: ValueError if one cannot be used.
    """

    def __init__(
        self, *, limit_per_host: int = 1024, keepalive_s: float = 30.0, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        if limit_per_host < 1:
            raise ValueError("limit_per_host must be at least 1")
        self._limit = limit_per_host
        self._keepalive_s = keepalive_s
        self._context = ssl_context
        self._proxies = Proxies(os.environ)
        self._pools: dict[str, Pool] = {}
        self._connections: set[Connection] = set()
        self._deadlines: Deadlines | None = None
        self._closed = False

    async def send(
        self, method: str, url: Url, headers: Sequence[tuple[bytes, bytes]], body: bytes, timeouts: Timeouts
    ) -> Response:
        """Sends one request; the response as soon as its head is in, whatever its status. Redirects are not followed.

        UpstreamError for all that goes wrong on the way; ValueError for a header that may not be sent. A request that
        met a kept-alive connection the server had just closed is sent once more, on a fresh one.
        """
        pool = self._pools.get(url.origin)
        if pool is None:
            pool = self._pool(url)
        proxy = pool.proxy
        length = len(body) if body or method not in _NO_LENGTH else None
        if proxy is None or url.scheme == "https":
            head = request_head(url.prefix(method), headers, length)
        else:
            prefix = url.prefix(method, forwarded=True)
            if proxy.authorization is not None:
                prefix += b"\r\nproxy-authorization: " + proxy.authorization
            head = request_head(prefix, headers, length)
        connection = pool.reuse()
        if connection is None:
            connection = await self._connection(pool, url, timeouts)
        response = connection.start(method, head, body, timeouts)
        try:
            await response.head()
        except Stale:
            connection = await self._connection(pool, url, timeouts, fresh=True)
            response = connection.start(method, head, body, timeouts)
            await response.head()
        return response

    def keep(self, origins: Collection[str], limit_per_host: int) -> None:
        """From now on only connections to `origins` are kept between requests; others are closed when what they do is over.
        Requests to other origins still work."""
        self._limit = limit_per_host
        for origin, pool in self._pools.items():
            pool.keep(origin in origins, limit_per_host)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    async def close(self) -> None:
        """Closes all connections, ends all exchanges, and returns when no socket is open. Again: nothing."""
        self._closed = True
        if self._deadlines is not None:
            self._deadlines.stop()
        emptied = asyncio.Event()
        for pool in self._pools.values():
            pool.emptied = emptied
            pool.shut()
        for connection in tuple(self._connections):
            connection.fail(UpstreamError("unavailable", f"{connection.origin}: the client was closed"))
        if self._connections:
            await emptied.wait()

    async def _connection(self, pool: Pool, url: Url, timeouts: Timeouts, fresh: bool = False) -> Connection:
        given, front = None, fresh
        while given is None or given.closed:
            self._check_open(url)
            given = await pool.slot(fresh=fresh, front=front, within_s=timeouts.pool_s)
            if given is None:
                return await self._open(pool, url, timeouts)
            front = True  # It was closed between the giving and the taking: the turn is still ours.
        return given

    async def _open(self, pool: Pool, url: Url, timeouts: Timeouts) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(pool, loop, url.origin)
        try:
            context = self._tls() if url.scheme == "https" else None
            await connect(connection, url, pool.proxy, context, timeouts.connect_s)
        except BaseException:
            connection.close()
            pool.free()
            raise
        connection.holds_slot = True
        if self._closed or connection.closed:
            connection.close()
            self._check_open(url)
            raise UpstreamError("unavailable", f"{url.origin}: the connection was closed as soon as it was open")
        return connection

    def _check_open(self, url: Url) -> None:
        if self._closed:
            raise UpstreamError("unavailable", f"{url.origin}: the client was closed")

    def _tls(self) -> ssl.SSLContext:
        # Loading the system's certificates takes tens of milliseconds and megabytes: only for those who need them.
        if self._context is None:
            self._context = ssl.create_default_context()
            self._context.set_alpn_protocols(["http/1.1"])
        return self._context

    def _pool(self, url: Url) -> Pool:
        loop = asyncio.get_running_loop()
        if self._deadlines is None:
            self._deadlines = Deadlines(loop, self._connections)
        pool = self._pools[url.origin] = Pool(
            loop,
            origin=url.origin,
            limit=self._limit,
            keepalive_s=self._keepalive_s,
            proxy=self._proxies.find(url.scheme, url.host, url.port),
            connections=self._connections,
            deadlines=self._deadlines,
        )
        return pool
