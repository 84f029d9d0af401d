"""TLS, proxies, IPv6: the ways to an origin."""

import asyncio
import socket
import ssl

import pytest
import trustme

from turnout.errors import UpstreamError
from turnout.upstream.http import Client, Timeouts, Url
from turnout.upstream.http.connect import first_to_answer

WAIT = Timeouts(connect_s=5, first_byte_s=5, idle_s=5, write_s=5)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_tls(authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost", "::1").configure_cert(context)
    return context


@pytest.fixture(scope="module")
def trusting(authority) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def answer(peer):
    while True:
        await peer.request()
        await peer.send(OK)


async def get(client: Client, url: str, body: bytes = b"") -> bytes:
    response = await client.send("POST", Url(url), [(b"authorization", b"Bearer s3cret")], body, WAIT)
    return await response.read(1 << 26)


# TLS


async def test_tls_with_a_trusted_certificate(serve, server_tls, trusting):
    client = Client(ssl_context=trusting)
    async with serve(answer, server_tls) as server:
        for _ in range(3):
            assert await get(client, f"https://localhost:{server.port}/") == b"ok"
        assert server.accepted == 1
        await client.close()


async def test_ssl_cert_file_is_honoured(serve, server_tls, authority, monkeypatch, tmp_path):
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    client = Client()
    async with serve(answer, server_tls) as server:
        assert await get(client, f"https://localhost:{server.port}/") == b"ok"
        await client.close()


async def test_certificates_are_checked_by_default(serve, server_tls):
    client = Client()
    async with serve(answer, server_tls) as server:
        with pytest.raises(UpstreamError, match=r"not trusted: .*\(tls\)$") as caught:
            await get(client, f"https://localhost:{server.port}/")
        assert caught.value.kind == "unavailable"
        assert not client._connections
        await client.close()


async def test_the_name_in_the_certificate_is_checked(serve, trusting, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    client = Client(ssl_context=trusting)
    async with serve(answer, context) as server:
        with pytest.raises(UpstreamError, match=r"not trusted: .*mismatch.*\(tls\)$"):
            await get(client, f"https://localhost:{server.port}/")
        await client.close()


async def test_tls_to_a_server_without_it(serve):
    async def plain(peer):
        await peer.reader.read(10)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    client = Client()
    async with serve(plain) as server:
        with pytest.raises(UpstreamError, match=r"\(tls\)$") as caught:
            await get(client, f"https://127.0.0.1:{server.port}/")
        assert caught.value.kind == "unavailable"
        await client.close()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_handshake_that_hangs(serve, cancelled):
    async def silent(peer):
        await peer.gone()

    client = Client(limit_per_host=1)
    async with serve(silent) as server:
        for _ in range(2):
            url = Url(f"https://127.0.0.1:{server.port}/")
            task = asyncio.create_task(client.send("GET", url, [], b"", Timeouts(connect_s=5 if cancelled else 0.07)))
            await asyncio.sleep(0.05)
            if cancelled:
                task.cancel()
            with pytest.raises(asyncio.CancelledError if cancelled else UpstreamError) as caught:
                await task
            assert cancelled or (caught.value.kind, "(tls)" in str(caught.value)) == ("timeout", True)
            await server.empty()
        await client.close()


async def test_large_bodies_both_ways_over_tls(serve, server_tls, trusting):
    body = bytes(range(256)) * (1 << 14)

    async def echo(peer):
        while True:
            _, got = await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(got) + got)

    client = Client(ssl_context=trusting)
    async with serve(echo, server_tls) as server:
        assert await get(client, f"https://localhost:{server.port}/", body) == body
        assert await get(client, f"https://localhost:{server.port}/", b"x") == b"x"
        await client.close()


async def test_a_slow_reader_holds_a_tls_server_back(serve, server_tls, trusting):
    total, sent = 32 << 20, 0

    async def flood(peer):
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        while sent < total:
            await peer.send(bytes(1 << 16))
            sent += 1 << 16
        await peer.request()

    client = Client(ssl_context=trusting)
    async with serve(flood, server_tls) as server:
        response = await client.send("GET", Url(f"https://localhost:{server.port}/"), [], b"", WAIT)
        await asyncio.sleep(0.1)
        assert sent < total
        got = 0
        while (data := await response.next()) is not None:
            got += len(data)
        assert got == total
        await client.close()


@pytest.mark.parametrize("clean", [True, False])
async def test_the_end_of_a_tls_body_without_length_must_be_signed(serve, server_tls, trusting, clean):
    received = asyncio.Event()

    async def handle(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        await received.wait()
        if not clean:
            peer.writer.transport.abort()

    client = Client(ssl_context=trusting)
    async with serve(handle, server_tls) as server:
        response = await client.send("GET", Url(f"https://localhost:{server.port}/"), [], b"", WAIT)
        assert await response.next() == b"part"
        received.set()
        if clean:
            assert await response.next() is None
        else:
            with pytest.raises(UpstreamError, match="before the end of the body"):
                await response.next()
        await client.close()


# IPv6


async def test_ipv6(serve, server_tls, trusting):
    heads = []

    async def handle(peer):
        heads.append((await peer.request())[0])
        await peer.send(OK)

    client = Client(ssl_context=trusting)
    try:
        server = await serve(handle, host="::1").__aenter__()
    except OSError:
        pytest.skip("no IPv6 here")
    assert await get(client, f"http://[::1]:{server.port}/") == b"ok"
    assert f"host: [::1]:{server.port}\r\n".encode() in heads[0]
    async with serve(handle, server_tls, host="::1") as secure:
        assert await get(client, f"https://[::1]:{secure.port}/") == b"ok"
    await client.close()
    await server.__aexit__()


# Proxies


class Tunnels:
    """A proxy that connects for real, or answers CONNECT with `refusal`."""

    def __init__(self, refusal: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self.refusal = refusal

    async def __call__(self, peer):
        head = await peer.reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self.refusal:
            await peer.send(self.refusal)
            return await peer.gone()
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        await peer.send(b"HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n")

        async def pump(source, sink):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        try:
            await asyncio.gather(pump(peer.reader, writer), pump(reader, peer.writer))
        finally:
            writer.transport.abort()


async def test_plain_requests_go_to_the_proxy_in_absolute_form(serve, monkeypatch):
    heads = []

    async def proxy(peer):
        while True:
            heads.append((await peer.request())[0])
            await peer.send(OK)

    async with serve(proxy) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:p%40ss@127.0.0.1:{server.port}")
        client = Client()
        assert await get(client, "http://model.example/v1/x?y=1") == b"ok"
        assert await get(client, "http://model.example:8080/z") == b"ok"
        await client.close()
    assert heads[0].startswith(b"POST http://model.example/v1/x?y=1 HTTP/1.1\r\nhost: model.example\r\n")
    assert heads[1].startswith(b"POST http://model.example:8080/z HTTP/1.1\r\nhost: model.example:8080\r\n")
    assert all(b"proxy-authorization: Basic dXNlcjpwQHNz\r\n" in head for head in heads)
    assert all(b"authorization: Bearer s3cret\r\n" in head for head in heads)


async def test_tls_goes_through_a_tunnel(serve, server_tls, trusting, monkeypatch):
    tunnels = Tunnels()
    async with serve(answer, server_tls) as server, serve(tunnels) as proxy:
        monkeypatch.setenv("https_proxy", f"http://u:p@127.0.0.1:{proxy.port}/")
        client = Client(ssl_context=trusting)
        for _ in range(2):
            assert await get(client, f"https://localhost:{server.port}/v1") == b"ok"
        assert (server.accepted, proxy.accepted) == (1, 1)
        await client.close()
    assert tunnels.heads[0].startswith(f"CONNECT localhost:{server.port} HTTP/1.1\r\n".encode())
    assert b"proxy-authorization: Basic dTpw\r\n" in tunnels.heads[0]
    assert b"s3cret" not in tunnels.heads[0]


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "status 407"),
        (b"HTTP/1.1 200 OK\r\n\r\nearly", "before TLS began"),
        (b"nonsense\r\n\r\n", "HTTP/1.1"),
        (b"x" * 20_000, "HTTP/1.1"),
    ],
)
async def test_a_proxy_that_refuses(serve, monkeypatch, refusal, message):
    async with serve(Tunnels(refusal)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"user:hidden@127.0.0.1:{proxy.port}")
        client = Client()
        with pytest.raises(UpstreamError, match=rf"^https://model.example:443: .*{message}.*\(proxy\)$") as caught:
            await get(client, "https://model.example/")
        assert caught.value.kind == "unavailable"
        assert "hidden" not in str(caught.value)
        await proxy.empty()
        await client.close()


@pytest.mark.parametrize("hangs", [True, False])
async def test_a_proxy_that_never_answers(serve, monkeypatch, hangs):
    async def silent(peer):
        await peer.reader.readuntil(b"\r\n\r\n")
        if hangs:
            await peer.gone()

    async with serve(silent) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        client = Client()
        with pytest.raises(UpstreamError, match=r"\(proxy\)$") as caught:
            # Long enough to reach the proxy on a busy machine: it is the proxy's answer that is waited for here.
            await client.send("GET", Url("https://model.example/"), [], b"", Timeouts(connect_s=1.0))
        assert caught.value.kind == ("timeout" if hangs else "unavailable")
        await proxy.empty()
        await client.close()


async def test_no_proxy_goes_straight(serve, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "model.example, 127.0.0.1")
    client = Client()
    async with serve(answer) as server:
        assert await get(client, f"http://127.0.0.1:{server.port}/") == b"ok"
        monkeypatch.delenv("no_proxy")  # Read once, at construction.
        assert await get(client, f"http://127.0.0.1:{server.port}/") == b"ok"
        await client.close()


# Names with several addresses


async def test_an_address_that_leads_nowhere_does_not_hold_up_the_next(serve):
    refused, silent = socket.socket(), socket.socket()
    refused.bind(("127.0.0.1", 0))
    silent.bind(("127.0.0.1", 0))
    silent.listen(0)
    fillers = [socket.socket() for _ in range(8)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(silent.getsockname())
    loop = asyncio.get_running_loop()

    async def handle(peer):
        await peer.gone()

    async with serve(handle) as server:
        good = ("127.0.0.1", server.port)
        for others in ([refused], [refused, silent]):
            addresses = [sock.getsockname() for sock in others]
            transport, _ = await first_to_answer(loop, [*addresses, good, *addresses])
            assert transport.get_extra_info("peername") == good
            transport.abort()
        with pytest.raises(ConnectionRefusedError):
            await first_to_answer(loop, [refused.getsockname()] * 3)
        task = asyncio.create_task(first_to_answer(loop, [silent.getsockname()] * 3))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for sock in (refused, silent, *fillers):
        sock.close()


async def test_localhost_is_found_in_either_family(serve):
    client = Client()
    async with serve(answer) as server:
        assert await get(client, f"http://localhost:{server.port}/") == b"ok"
        await client.close()
