"""Everything that goes wrong: stalls in each phase, resets, slow readers, cancellation."""

import asyncio
import random
import socket

import pytest

from turnout.errors import UpstreamError
from turnout.upstream.http import Client, Timeouts, Url

WAIT = Timeouts(connect_s=5, first_byte_s=5, idle_s=5, write_s=5, pool_s=5)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
BIG = bytes(40 << 20)


def post(client: Client, port: int, body: bytes = b"{}", timeouts: Timeouts = WAIT):
    return client.send(
        "POST", Url(f"http://127.0.0.1:{port}/secret-path?key=hidden"), [(b"x-key", b"s3cret")], body, timeouts
    )


def full_listener() -> tuple[socket.socket, list[socket.socket]]:
    """A listening socket whose queue is full: connecting to it hangs."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fillers = []
    for _ in range(8):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
        fillers.append(filler)
    return listener, fillers


# Time-outs, one per phase


async def test_connect_timeout():
    listener, fillers = full_listener()
    client = Client()
    with pytest.raises(UpstreamError, match=r"no connection within 0.05 s \(connect\)") as caught:
        await post(client, listener.getsockname()[1], timeouts=Timeouts(connect_s=0.05))
    assert caught.value.kind == "timeout"
    await client.close()
    for sock in (listener, *fillers):
        sock.close()


async def test_connection_refused_names_only_the_origin():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = Client()
        with pytest.raises(UpstreamError, match=rf"^http://127.0.0.1:{port}: .*\(connect\)$") as caught:
            await post(client, port)
    assert caught.value.kind == "unavailable"
    assert caught.value.__cause__ is None
    await client.close()


async def test_unknown_name_is_unavailable():
    client = Client()
    with pytest.raises(UpstreamError, match=r"\(connect\)$") as caught:
        await client.send("GET", Url("http://name.invalid/"), [], b"", WAIT)
    assert caught.value.kind == "unavailable"
    await client.close()


async def test_write_timeout(serve):
    async def handle(peer):
        await asyncio.sleep(60)  # Never reads.

    client = Client()
    async with serve(handle) as server:
        with pytest.raises(UpstreamError, match=r"no progress for 0.1 s \(write\)") as caught:
            await post(client, server.port, BIG, Timeouts(write_s=0.1))
        assert caught.value.kind == "timeout"
        await client.close()


async def test_a_slow_write_that_progresses_is_no_timeout(serve):
    async def handle(peer):
        await peer.reader.readuntil(b"\r\n\r\n")
        got = 0
        while got < len(BIG) // 4:
            got += len(await peer.reader.read(1 << 18))
            await asyncio.sleep(0.004)
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n%08d" % got)
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port, BIG[: len(BIG) // 4], Timeouts(write_s=0.4))
        assert int(await response.read(8)) == len(BIG) // 4
        await client.close()


@pytest.mark.parametrize("dripped", [b"", b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 1000])
async def test_first_byte_timeout_covers_the_whole_head(serve, dripped):
    async def handle(peer):
        await peer.request()
        for byte in dripped:
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.01)
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        with pytest.raises(UpstreamError, match=r"no response within 0.1 s \(first_byte\)") as caught:
            await post(client, server.port, timeouts=Timeouts(first_byte_s=0.1))
        assert caught.value.kind == "timeout"
        await server.empty()
        await client.close()


async def test_idle_timeout_in_the_body(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(CHUNKED + b"2\r\nok\r\n")
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port, timeouts=Timeouts(idle_s=0.1))
        assert await response.next() == b"ok"
        with pytest.raises(UpstreamError, match=r"no byte of the body for 0.1 s \(body\)") as caught:
            await response.next()
        assert caught.value.kind == "timeout"
        await server.empty()
        await client.close()


async def test_a_body_that_drips_is_no_stall_but_dripping_chunk_heads_are(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(CHUNKED)
        for _ in range(10):
            await peer.send(b"1\r\nx\r\n")
            await asyncio.sleep(0.02)
        await peer.send(b"1;")
        while True:
            await peer.send(b"e")
            await asyncio.sleep(0.02)

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port, timeouts=Timeouts(idle_s=0.15))
        got = b""
        while len(got) < 10:
            got += await response.next() or b""
        with pytest.raises(UpstreamError, match="no byte of the body"):
            await response.next()
        await server.empty()
        await client.close()


async def test_a_slow_reader_is_no_stall(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(CHUNKED + b"2\r\nok\r\n")
        await asyncio.sleep(0.15)
        await peer.send(b"0\r\n\r\n")
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port, timeouts=Timeouts(idle_s=0.1))
        await asyncio.sleep(0.18)
        assert await response.read(9) == b"ok"
        await client.close()


async def test_without_limits_nothing_expires(serve):
    async def handle(peer):
        await peer.request()
        await asyncio.sleep(0.06)
        await peer.send(CHUNKED)
        await asyncio.sleep(0.06)
        await peer.send(b"2\r\nok\r\n0\r\n\r\n")
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        limits = Timeouts(first_byte_s=None, idle_s=None, write_s=None, pool_s=None)
        assert await (await post(client, server.port, timeouts=limits)).read(9) == b"ok"
        await client.close()


# Resets


@pytest.mark.parametrize(
    ("sent", "until"), [(b"", "response head"), (b"HTTP/1.1 200", "response head"), (OK[:-1], "body")]
)
async def test_reset(serve, sent, until):
    received = asyncio.Event()

    async def handle(peer):
        await peer.request()
        await peer.send(sent)
        if until == "body":
            await received.wait()
        peer.reset()

    client = Client()
    async with serve(handle) as server:

        async def exchange():
            response = await post(client, server.port)
            received.set()
            await response.read(9)

        with pytest.raises(UpstreamError, match=f"the connection was (reset|closed) before .*{until}") as caught:
            await exchange()
        assert caught.value.kind == "unavailable"
        assert "hidden" not in str(caught.value)
        assert "secret" not in str(caught.value)
        await client.close()


async def test_reset_is_not_the_end_of_a_body_that_ends_with_the_connection(serve):
    received = asyncio.Event()

    async def handle(peer):
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        await received.wait()
        peer.reset()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port)
        assert await response.next() == b"part"
        received.set()
        with pytest.raises(UpstreamError, match="reset before the end of the body"):
            await response.next()
        await client.close()


# Flow control, both ways


async def test_an_answer_before_the_request_is_written_is_delivered(serve):
    async def handle(peer):
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await asyncio.sleep(60)  # Never reads the rest.

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port, BIG)
        assert (response.status, await response.read(9)) == (413, b"big")
        assert await (await post(client, server.port, BIG)).read(9) == b"big"
        assert server.accepted == 2  # Half a request was on the first connection.
        await client.close()


async def test_the_request_goes_on_while_an_early_answer_streams(serve):
    async def handle(peer):
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(CHUNKED + b"2\r\nok\r\n")
        await peer.reader.readexactly(len(BIG))
        await peer.send(b"3\r\nall\r\n0\r\n\r\n")
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port, BIG)
        assert await response.next() == b"ok"
        assert await response.read(9) == b"all"
        await client.close()


async def test_a_slow_reader_holds_the_server_back(serve):
    total, sent = 64 << 20, 0

    async def handle(peer):
        nonlocal sent
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        while sent < total:
            await peer.send(bytes(1 << 16))
            sent += 1 << 16
        await peer.request()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port)
        await asyncio.sleep(0.1)
        assert sent < total
        assert response.size <= 1 << 20
        got = 0
        while (data := await response.next()) is not None:
            got += len(data)
        assert got == total
        await client.close()


# Hanging up


@pytest.mark.parametrize("phase", ["connect", "pool", "write", "head", "body"])
async def test_cancelled_in_every_phase_the_connection_is_closed(serve, phase):
    async def handle(peer):
        if phase != "write":
            await peer.request()
        else:
            await peer.reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.06)
        if phase == "body":
            await peer.send(CHUNKED + b"2\r\nok\r\n")
        await peer.gone()

    listener, fillers = full_listener()
    client = Client(limit_per_host=1)

    async def exchange(port: int) -> None:
        response = await post(client, port, BIG if phase == "write" else b"{}")
        await response.read(9)

    async with serve(handle) as server:
        holder = asyncio.create_task(exchange(server.port)) if phase == "pool" else None
        await asyncio.sleep(0.02)
        port = listener.getsockname()[1] if phase == "connect" else server.port
        task = asyncio.create_task(exchange(port))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if holder is not None:
            assert server.open == 1  # Who waited takes nothing from who was served.
            holder.cancel()
            await asyncio.gather(holder, return_exceptions=True)
        await server.empty()
        # The slot is free again.
        for _ in range(2):
            follower = asyncio.create_task(exchange(server.port))
            await server.holds(1)
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
            await server.empty()
        await client.close()
    for sock in (listener, *fillers):
        sock.close()


async def test_abort_closes_at_once_and_wakes_the_reader(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(CHUNKED + b"2\r\nok\r\n")
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port)
        assert await response.next() == b"ok"
        reading = asyncio.create_task(response.next())
        await asyncio.sleep(0)
        response.abort()
        response.abort()
        with pytest.raises(UpstreamError) as caught:
            await reading
        assert caught.value.kind == "cancelled"
        await server.empty()
        await client.close()
        response.abort()


async def test_abort_after_the_end_leaves_the_connection_to_others(serve):
    async def handle(peer):
        while True:
            await peer.request()
            await peer.send(OK)

    client = Client()
    async with serve(handle) as server:
        first = await post(client, server.port)
        assert await first.read(9) == b"ok"
        second = await post(client, server.port)
        first.abort()
        assert await second.read(9) == b"ok"
        assert server.accepted == 1
        await client.close()


async def test_two_readers_of_one_response_are_refused(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(CHUNKED)
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        response = await post(client, server.port)
        reading = asyncio.create_task(response.next())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="two tasks"):
            await response.next()
        response.abort()
        await asyncio.gather(reading, return_exceptions=True)
        await client.close()


async def test_a_storm_of_faults_and_hang_ups_leaves_everything_in_order(serve):
    """Whatever servers and callers do, every exchange ends and every slot comes back."""
    dice = random.Random(7)
    answers = [
        OK,
        OK,
        OK,
        CHUNKED + b"2\r\nok\r\n0\r\n\r\n",
        OK + b"x",
        OK[:-1],
        b"HTTP/1.1 2",
        b"",
        b"junk\r\n\r\n",
        CHUNKED,
    ]

    async def handle(peer):
        while True:
            await peer.request()
            answer = dice.choice(answers)
            await (peer.drip(answer) if dice.random() < 0.2 else peer.send(answer))
            if answer is CHUNKED:
                await peer.gone()
            elif not answer.endswith((b"ok", b"0\r\n\r\n")):
                return peer.reset() if dice.random() < 0.5 else None

    async def exchange(port: int) -> bytes:
        limits = Timeouts(first_byte_s=0.5, idle_s=0.05, pool_s=0.2 if dice.random() < 0.3 else 5)
        response = await post(client, port, bytes(dice.choice((2, 300_000))), limits)
        return await response.read(100)

    client = Client(limit_per_host=7)
    async with serve(handle) as server:
        tasks = []
        for _ in range(200):
            tasks.append(asyncio.create_task(exchange(server.port)))
            if dice.random() < 0.3:
                dice.choice(tasks[-20:]).cancel()
            if dice.random() < 0.2:
                await asyncio.sleep(0.001)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {bytes, UpstreamError, asyncio.CancelledError}
        assert {outcome for outcome in outcomes if isinstance(outcome, bytes)} == {b"ok"}
        (pool,) = client._pools.values()
        assert not pool._waiting
        assert pool._slots_taken == len(pool._idle) == sum(not connection.closed for connection in client._connections)
        await client.close()
        assert pool._slots_taken == 0
        assert not client._connections
