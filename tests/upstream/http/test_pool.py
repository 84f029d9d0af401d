"""Connections are kept, lent, counted, and never lent dirty."""

import asyncio
import socket

import pytest

from turnout.errors import UpstreamError
from turnout.upstream.http import Client, Timeouts, Url

WAIT = Timeouts(connect_s=5, first_byte_s=5, idle_s=5, write_s=5, pool_s=5)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def post(client: Client, port: int, timeouts: Timeouts = WAIT) -> bytes:
    response = await client.send("POST", Url(f"http://127.0.0.1:{port}/"), [], b"{}", timeouts)
    return await response.read(100)


def answering(answer: bytes):
    """A handler that gives every request the same answer."""

    async def handle(peer):
        while True:
            await peer.request()
            await peer.send(answer)

    return handle


async def test_a_connection_is_used_again(serve):
    client = Client()
    async with serve(answering(OK)) as server:
        for _ in range(5):
            assert await post(client, server.port) == b"ok"
        assert server.accepted == 1
        await client.close()


async def test_nagle_is_off(serve):
    client = Client()
    async with serve(answering(OK)) as server:
        await post(client, server.port)
        (connection,) = client._connections
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        await client.close()


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (OK, True),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 2\r\n\r\nok", False),
        (OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", False),
        (OK + b"H", False),
        (OK + b"garbage", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nmore", False),
    ],
)
async def test_only_a_clean_connection_is_kept(serve, answer, kept):
    client = Client()
    async with serve(answering(answer)) as server:
        for _ in range(3):
            assert await post(client, server.port) == b"ok"
        assert server.accepted == (1 if kept else 3)
        await client.close()


async def test_bytes_on_an_idle_connection_close_it(serve):
    late = asyncio.Event()

    async def handle(peer):
        await peer.request()
        await peer.send(OK)
        if server.accepted == 1:
            await late.wait()
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
        await peer.gone()

    client = Client()
    async with serve(handle) as server:
        assert await post(client, server.port) == b"ok"
        late.set()
        await server.empty()
        assert await post(client, server.port) == b"ok"
        assert server.accepted == 2
        await client.close()


async def test_last_in_first_out_and_the_sweep_closes_what_grows_old(serve):
    used = []

    async def handle(peer):
        name = server.accepted
        while True:
            await peer.request()
            used.append(name)
            await peer.send(OK)

    client = Client(keepalive_s=0.15)
    async with serve(handle) as server:
        await asyncio.gather(*(post(client, server.port) for _ in range(4)))
        assert server.open == 4
        last = used[-1]
        used.clear()
        for _ in range(8):
            await post(client, server.port)
            await asyncio.sleep(0.03)
        assert set(used) == {last}
        assert server.open == 1
        await server.empty()
        await client.close()


async def test_requests_share_one_timer(serve):
    client = Client()
    async with serve(answering(OK)) as server:
        await post(client, server.port)
        armed, arm = [], client._deadlines.arm
        client._deadlines.arm = lambda deadline: (armed.append(deadline), arm(deadline))
        for _ in range(100):
            await post(client, server.port)
        assert len(armed) <= 1
        await client.close()


# The limit


async def test_limit_and_first_come_first_served(serve):
    order, gate = [], asyncio.Event()

    async def handle(peer):
        while True:
            await peer.request()
            await gate.wait()
            await peer.send(OK)

    client = Client(limit_per_host=3)

    async def numbered(number: int) -> None:
        await post(client, server.port)
        order.append(number)

    async with serve(handle) as server:
        tasks = [asyncio.create_task(numbered(number)) for number in range(12)]
        await asyncio.sleep(0.05)
        assert server.accepted == 3
        gate.set()
        await asyncio.gather(*tasks)
        assert [set(order[i : i + 3]) for i in (0, 3, 6, 9)] == [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}]
        assert server.accepted == 3
        await client.close()


async def test_each_origin_has_its_own_limit(serve):
    async def silent(peer):
        await peer.gone()

    client = Client(limit_per_host=1)
    async with serve(silent) as busy, serve(answering(OK)) as server:
        stuck = asyncio.create_task(post(client, busy.port))
        await asyncio.sleep(0.02)
        assert await post(client, server.port) == b"ok"
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        await client.close()


async def test_waiting_for_the_pool_has_a_limit(serve):
    async def silent(peer):
        await peer.gone()

    client = Client(limit_per_host=1)
    async with serve(silent) as server:
        stuck = asyncio.create_task(post(client, server.port))
        await asyncio.sleep(0.02)
        with pytest.raises(UpstreamError, match=r"all 1 connections are busy for 0.05 s \(pool\)") as caught:
            await post(client, server.port, Timeouts(pool_s=0.05))
        assert caught.value.kind == "timeout"
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        await client.close()


async def test_waiters_cancelled_as_they_are_served_leak_nothing(serve):
    gate = asyncio.Event()

    async def handle(peer):
        while True:
            await peer.request()
            await gate.wait()
            await peer.send(OK)

    client = Client(limit_per_host=2)
    async with serve(handle) as server:
        tasks = [asyncio.create_task(post(client, server.port)) for _ in range(30)]
        await asyncio.sleep(0.02)
        pool = next(iter(client._pools.values()))
        put, free = pool.put, pool.free

        def unlucky(give):
            def given(*args):
                """Cancels a waiter right after it was given what it waited for, before it runs."""
                waiting = [task for task in tasks if not task.done()]
                give(*args)
                for task in waiting[::3]:
                    task.cancel()

            return given

        pool.put, pool.free = unlucky(put), unlucky(free)
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        pool.put, pool.free = put, free
        assert all(task.done() for task in tasks)
        assert not pool._waiting
        assert pool._slots_taken == len(pool._idle) == len([c for c in client._connections if not c.closed])
        for _ in range(3):
            assert await asyncio.gather(post(client, server.port), post(client, server.port)) == [b"ok", b"ok"]
        await client.close()


async def test_a_closed_connection_makes_room_for_the_next_in_line(serve):
    async def handle(peer):
        await peer.request()
        await asyncio.sleep(0.01)
        await peer.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok")

    client = Client(limit_per_host=2)
    async with serve(handle) as server:
        assert await asyncio.gather(*(post(client, server.port) for _ in range(9))) == [b"ok"] * 9
        assert server.accepted == 9
        await client.close()


async def test_failures_to_connect_give_their_slots_back():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = Client(limit_per_host=2)
        outcomes = await asyncio.gather(
            *(post(client, unused.getsockname()[1]) for _ in range(9)), return_exceptions=True
        )
    assert [getattr(outcome, "kind", None) for outcome in outcomes] == ["unavailable"] * 9
    await client.close()


# Connections that were closed while kept alive


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_stale_connection_sends_once_more_on_a_fresh_one(serve, how):
    requests = 0

    async def handle(peer):
        nonlocal requests
        first = server.accepted
        while True:
            await peer.request()
            requests += 1
            if first == 1 and requests == 2:
                return peer.reset() if how == "reset" else None
            await peer.send(OK)

    client = Client(limit_per_host=1)
    async with serve(handle) as server:
        assert await post(client, server.port) == b"ok"
        assert await post(client, server.port) == b"ok"
        assert (requests, server.accepted) == (3, 2)
        await client.close()


async def test_it_is_sent_again_only_once_and_never_on_a_used_connection(serve):
    requests, dead = 0, False

    async def handle(peer):
        nonlocal requests
        while True:
            await peer.request()
            requests += 1
            if dead:
                return
            await asyncio.sleep(0.02)
            await peer.send(OK)

    client = Client()
    async with serve(handle) as server:
        await asyncio.gather(*(post(client, server.port) for _ in range(4)))
        assert (requests, server.accepted) == (4, 4)
        dead = True
        with pytest.raises(UpstreamError, match="before a complete response head"):
            await post(client, server.port)
        assert (requests, server.accepted) == (6, 5)
        await client.close()


async def test_after_one_byte_of_response_nothing_is_sent_again(serve):
    requests = 0

    async def handle(peer):
        nonlocal requests
        while True:
            await peer.request()
            requests += 1
            if requests == 2:
                return await peer.send(b"H")
            await peer.send(OK)

    client = Client()
    async with serve(handle) as server:
        await post(client, server.port)
        with pytest.raises(UpstreamError, match="before a complete response head"):
            await post(client, server.port)
        assert requests == 2
        await client.close()


async def test_a_stale_connection_at_the_limit_still_finds_a_slot(serve):
    requests = 0

    async def handle(peer):
        nonlocal requests
        while True:
            await peer.request()
            requests += 1
            if requests in (3, 4):
                return
            await asyncio.sleep(0.01)
            await peer.send(OK)

    client = Client(limit_per_host=2)
    async with serve(handle) as server:
        await asyncio.gather(post(client, server.port), post(client, server.port))
        got = await asyncio.gather(*(post(client, server.port) for _ in range(6)))
        assert got == [b"ok"] * 6
        await client.close()


async def test_a_connection_closed_while_idle_is_not_lent(serve):
    async def handle(peer):
        await peer.request()
        await peer.send(OK)

    client = Client()
    async with serve(handle) as server:
        for count in (1, 2, 3):
            assert await post(client, server.port) == b"ok"
            await server.empty()
            await asyncio.sleep(0.02)
            assert server.accepted == count
        await client.close()


# Closing the client


async def test_close_ends_everything(serve):
    async def handle(peer):
        await peer.request()
        await peer.gone()

    client = Client(limit_per_host=2)
    async with serve(handle) as server:
        tasks = [asyncio.create_task(post(client, server.port)) for _ in range(5)]
        await asyncio.sleep(0.03)
        await client.close()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [getattr(outcome, "kind", outcome) for outcome in outcomes] == ["unavailable"] * 5
        await server.empty()
        with pytest.raises(UpstreamError, match="the client was closed"):
            await post(client, server.port)
        await client.close()


async def test_close_while_connecting(serve):
    client = Client()
    async with serve(answering(OK)) as server:
        task = asyncio.create_task(post(client, server.port))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(UpstreamError, match="the client was closed"):
            await task


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_must_allow_one(limit):
    with pytest.raises(ValueError, match="at least 1"):
        Client(limit_per_host=limit)
