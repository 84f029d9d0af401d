"""One request, one response: what goes out, and what is made of what comes back."""

import asyncio
import gzip
import zlib

import pytest

from turnout.errors import UpstreamError
from turnout.upstream.http import Client, Response, Timeouts, Url

WAIT = Timeouts(connect_s=5, first_byte_s=5, idle_s=5, write_s=5)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def call(client, port, *, method="POST", path="/v1/x", headers=(), body=b"{}", timeouts=WAIT) -> Response:
    return await client.send(method, Url(f"http://127.0.0.1:{port}{path}"), headers, body, timeouts)


async def fetch(serve, answer: bytes, *, drip=False, method="POST", close=True) -> tuple[Response, bytes]:
    """What a client makes of these bytes, followed by the end of the connection if `close`."""

    async def handle(peer):
        await peer.request()
        await (peer.drip(answer) if drip else peer.send(answer))
        if not close:
            await peer.gone()

    client = Client()
    async with serve(handle) as server:
        try:
            response = await call(client, server.port, method=method)
            return response, await response.read(1 << 24)
        finally:
            await client.close()


# What goes out


async def test_request_bytes(serve):
    seen = []

    async def handle(peer):
        while True:
            seen.append(await peer.request())
            await peer.send(OK)

    client = Client()
    async with serve(handle) as server:
        secret = [(b"Authorization", b"Bearer k"), (b"Connection", b"x"), (b"Content-Length", b"7"), (b"HOST", b"evil")]
        assert await (await call(client, server.port, headers=secret, body=b"hello")).read(9) == b"ok"
        assert await (await call(client, server.port, method="GET", path="/a?b=c%20d", body=b"")).read(9) == b"ok"
        await client.close()
    head = f"host: 127.0.0.1:{server.port}\r\naccept-encoding: identity\r\n".encode()
    assert seen == [
        (b"POST /v1/x HTTP/1.1\r\n" + head + b"authorization: Bearer k\r\ncontent-length: 5\r\n\r\n", b"hello"),
        (b"GET /a?b=c%20d HTTP/1.1\r\n" + head + b"\r\n", b""),
    ]


@pytest.mark.parametrize("value", [b"a\r\nx: y", b"a\nb", b"a\rb", b"a\0b", b"\n"])
async def test_header_that_breaks_its_line_is_refused(serve, value):
    async def handle(peer):
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        with pytest.raises(ValueError, match="x-key") as caught:
            await call(client, server.port, headers=[(b"x-key", value)])
        assert server.accepted == 0
    assert repr(value)[2:-1] not in str(caught.value)
    await client.close()


@pytest.mark.parametrize("name", [b"a b", b"a:b", b"", b"a\r\nb", "ü".encode()])
async def test_header_name_must_be_a_token(name):
    client = Client()
    with pytest.raises(ValueError, match="header name"):
        await call(client, 1, headers=[(name, b"v")])
    await client.close()


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 256 * 1024, 256 * 1024 + 1, 5 << 20])
async def test_bodies_of_every_size_arrive(serve, size):
    async def handle(peer):
        _, got = await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(got) + got)

    client, body = Client(), bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with serve(handle) as server:
        assert await (await call(client, server.port, body=body)).read(size) == body
        await client.close()


# What comes back

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\nx-trailer: 1\r\n\r\n"
)


@pytest.mark.parametrize("drip", [False, True])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK, 200, b"ok"),
        (CHUNKED, 200, b"Wikipedia"),
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", 200, b"to the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", 200, b"old"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 304, b""),
        (b"HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n", 302, b""),
        (b"HTTP/1.1 529 Overloaded\r\ncontent-length: 4\r\nretry-after: 3\r\n\r\nbusy", 529, b"busy"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, 200, b"ok"),
    ],
)
async def test_well_formed_responses(serve, answer, status, body, drip):
    response, got = await fetch(serve, answer, drip=drip)
    assert (response.status, got) == (status, body)
    assert response.header(b"link") is None
    assert response.header(b"x-trailer") is None


async def test_header_names_are_lower_case_and_order_is_kept(serve):
    response, _ = await fetch(serve, b"HTTP/1.1 200 OK\r\nX-B: 1\r\nX-A: 2\r\nx-b: 3\r\nContent-Length: 0\r\n\r\n")
    assert response.headers == [(b"x-b", b"1"), (b"x-a", b"2"), (b"x-b", b"3"), (b"content-length", b"0")]
    assert response.header(b"x-b") == b"1"
    assert response.header(b"x-c") is None


async def test_response_to_head_has_no_body(serve):
    response, got = await fetch(serve, b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", method="HEAD", close=False)
    assert (response.status, response.header(b"content-length"), got) == (200, b"99", b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfour",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\nfour",
    ],
)
async def test_cut_body_is_an_error_after_what_came(serve, answer):
    async def handle(peer):
        await peer.request()
        await peer.send(answer)

    client = Client()
    async with serve(handle) as server:
        response = await call(client, server.port)
        assert await response.next() == b"four"
        for _ in range(2):  # It stays an error, however often it is asked for.
            with pytest.raises(UpstreamError, match=r"closed before the end of the body \(body\)") as caught:
                await response.next()
        assert caught.value.kind == "unavailable"
        await client.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\ncontent-le", b"HTTP/1.1 100 C\r\n\r\n"])
async def test_half_a_head_is_an_error(serve, answer):
    with pytest.raises(UpstreamError, match=r"^http://127.0.0.1:\d+: .*before a complete response head") as caught:
        await fetch(serve, answer)
    assert caught.value.kind == "unavailable"


@pytest.mark.parametrize(
    "answer",
    [
        b"\x16\x03\x01 TLS?\r\n\r\n",
        b"<html>not http</html>",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: h2\r\nconnection: upgrade\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: a\r\n" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
    ],
)
async def test_garbage_is_malformed(serve, answer):
    with pytest.raises(UpstreamError) as caught:
        await fetch(serve, answer, close=False)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    "rest", [b"zz\r\n", b"fffffffffffffffff\r\n", b"4;" + b"x" * 700_000, b"0\r\nt: " + b"x" * 700_000]
)
async def test_malformed_body_is_an_error_after_what_came(serve, rest):
    async def handle(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n" + rest)
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await call(client, server.port)
        assert await response.next() == b"ok"
        with pytest.raises(UpstreamError) as caught:
            await response.next()
        assert caught.value.kind == "malformed"
        await server.empty()
        await client.close()


async def test_next_gives_everything_buffered_at_once(serve):
    sent, ended = asyncio.Event(), asyncio.Event()

    async def handle(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        await sent.wait()
        for letter in (b"b", b"c", b"d"):
            await peer.send(b"1\r\n%b\r\n" % letter)
            await asyncio.sleep(0.01)
        await peer.send(b"0\r\n\r\n")
        ended.set()
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await call(client, server.port)
        assert await response.next() == b"a"
        sent.set()
        await ended.wait()
        await asyncio.sleep(0.05)
        assert await response.next() == b"bcd"
        assert await response.next() is None
        assert await response.next() is None
        await client.close()


async def test_read_refuses_more_than_its_limit(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await peer.send(b"400\r\n" + b"x" * 1024 + b"\r\n")

    client = Client()
    async with serve(handle) as server:
        response = await call(client, server.port)
        with pytest.raises(UpstreamError, match="longer than 10000 bytes") as caught:
            await response.read(10_000)
        assert caught.value.kind == "malformed"
        await server.empty()
        await client.close()


async def test_read_takes_exactly_its_limit(serve):
    client = Client()

    async def handle(peer):
        await peer.request()
        await peer.send(OK)

    async with serve(handle) as server:
        assert await (await call(client, server.port)).read(2) == b"ok"
        with pytest.raises(UpstreamError, match="longer than 1 bytes"):
            await (await call(client, server.port)).read(1)
        await client.close()


# Compressed although we asked for identity

PLAIN = b"data: {}\n\n" * 3000
RAW = zlib.compressobj(wbits=-15)
CODED = {
    "gzip": gzip.compress(PLAIN),
    "x-gzip": gzip.compress(PLAIN[:7000]) + gzip.compress(PLAIN[7000:]),
    "deflate": zlib.compress(PLAIN),
    "Deflate": RAW.compress(PLAIN) + RAW.flush(),
    "identity": PLAIN,
}


@pytest.mark.parametrize("drip", [False, True])
@pytest.mark.parametrize("coding", CODED)
async def test_compressed_bodies_are_decoded(serve, coding, drip):
    data = CODED[coding][:400] if coding == "identity" else CODED[coding]
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {len(data)}\r\n\r\n".encode()
    response, got = await fetch(serve, head + data, drip=drip)
    assert got == (data if coding == "identity" else PLAIN)
    assert (response.header(b"content-length") is None) == (coding != "identity")


@pytest.mark.parametrize(
    "data", [CODED["gzip"][:-4], CODED["gzip"][:1], b"not gzip at all", CODED["gzip"] + b"!", CODED["gzip"] + b"!!"]
)
async def test_broken_compression_is_malformed(serve, data):
    with pytest.raises(UpstreamError, match="cannot be decoded") as caught:
        await fetch(
            serve, b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(data) + data
        )
    assert caught.value.kind == "malformed"


async def test_a_compressed_bomb_unfolds_a_step_at_a_time(serve):
    bomb = gzip.compress(bytes(64 << 20))

    async def handle(peer):
        await peer.request()
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
        await peer.send(head + bomb)
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await call(client, server.port)
        assert len(await response.next() or b"") <= 256 * 1024
        with pytest.raises(UpstreamError, match="longer than 1000000 bytes"):
            await response.read(1_000_000)
        await client.close()


async def test_compressed_events_come_out_as_they_are_flushed(serve):
    received = asyncio.Event()

    async def handle(peer):
        await peer.request()
        coder = zlib.compressobj(wbits=31)
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
        await peer.send(coder.compress(b"first") + coder.flush(zlib.Z_SYNC_FLUSH))
        await received.wait()
        await peer.send(coder.compress(b"second") + coder.flush())

    client = Client()
    async with serve(handle) as server:
        response = await call(client, server.port)
        assert await response.next() == b"first"
        received.set()
        assert await response.read(100) == b"second"
        await client.close()
