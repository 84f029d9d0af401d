"""CPU per upstream request: our HTTP client beside aiohttp, in one process, in turns, against one server.

    python benchmarks/http_client.py                       # starts its own small server
    python benchmarks/http_client.py --url http://127.0.0.1:9000/v1/chat/completions

The server must answer POST on a kept-alive connection. aiohttp is needed for this comparison only.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import msgspec
import uvloop

from turnout.upstream.http import Client, Timeouts, Url

HEADERS = {
    "authorization": "Bearer not-a-key",
    "content-type": "application/json",
    "accept": "application/json",
    "user-agent": "benchmark",
    "x-request-id": "0123456789abcdef",
}
ANSWER = msgspec.json.encode({"choices": [{"message": {"role": "assistant", "content": "word " * 60}}]})
EVENT = b"data: " + msgspec.json.encode({"choices": [{"delta": {"content": "word"}}]}) + b"\n\n"

Send = Callable[[bytes], Awaitable[int]]


def bodies(delay_ms: int, gap_ms: int) -> dict[str, bytes]:
    """A small chat, a long agent turn, and a stream; the model name tells a scripted server how fast to be."""

    def chat(content: str, **more: object) -> bytes:
        model = f"m-{delay_ms}-{gap_ms}-40"
        return msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": content}], **more})

    return {"small": chat("hello"), "99 KB": chat("word " * 20_000), "stream": chat("hello", stream=True)}


async def serve() -> None:
    """The server that is started where no --url is given."""

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.got = transport, b""

        def data_received(self, data: bytes) -> None:
            self.got += data
            head, gap, body = self.got.partition(b"\r\n\r\n")
            if not gap or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r")[0]):
                return
            self.got = b""
            kind = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            if b'"stream":true' not in body:
                self.transport.write(kind + b"content-length: %d\r\n\r\n" % len(ANSWER) + ANSWER)
                return
            self.transport.write(kind + b"transfer-encoding: chunked\r\n\r\n")
            self.events(40)

        def events(self, left: int) -> None:
            self.transport.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT) if left else b"0\r\n\r\n")
            if left:
                asyncio.get_running_loop().call_soon(self.events, left - 1)

    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # Until whoever started us goes.


async def load(send: Send, body: bytes, requests: int, concurrency: int) -> tuple[float, float]:
    """CPU microseconds and wall-clock microseconds per request of this process."""
    left = requests

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            assert await send(body) > 0

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return (time.process_time() - cpu) / requests * 1e6, (time.perf_counter() - wall) / requests * 1e6


async def measure(url: str, requests: int, concurrency: int, rounds: int, delay_ms: int, gap_ms: int) -> None:
    import aiohttp

    own, target, limits = Client(), Url(url), Timeouts()
    pairs = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def by_own(body: bytes) -> int:
        response = await own.send("POST", target, pairs, body, limits)
        size = 0
        while (data := await response.next()) is not None:
            size += len(data)
        return size

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        patience = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=120)

        async def by_aiohttp(body: bytes) -> int:
            async with session.post(
                url, data=body, headers=HEADERS, timeout=patience, allow_redirects=False
            ) as response:
                size = 0
                async for data in response.content.iter_any():
                    size += len(data)
                return size

        clients: dict[str, Send] = {"own": by_own, "aiohttp": by_aiohttp}
        print(f"{'':8}{'client':10}{'CPU us/request':>16}{'(min)':>9}{'wall us':>9}{'ratio':>8}")
        for kind, body in bodies(delay_ms, gap_ms).items():
            count = requests // (4 if kind == "stream" else 1)
            seen: dict[str, list[tuple[float, float]]] = {name: [] for name in clients}
            for number in range(rounds + 1):
                for name, send in clients.items():
                    result = await load(send, body, count, concurrency)
                    if number:  # The first round warms up.
                        seen[name].append(result)
            base = statistics.median(cpu for cpu, _ in seen["own"])
            for name, results in seen.items():
                cpu, wall = (statistics.median(column) for column in zip(*results, strict=True))
                least = min(cpu for cpu, _ in results)
                print(f"{kind:8}{name:10}{cpu:16.1f}{least:9.1f}{wall:9.1f}{cpu / base:8.2f}", flush=True)
    await own.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="where to POST; default: a server of our own")
    parser.add_argument("--requests", type=int, default=8000, help="per round and client (streams: a quarter)")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay-ms", type=int, default=0, help="asked of a scripted server by the model name")
    parser.add_argument("--gap-ms", type=int, default=0, help="between two events of a stream, likewise")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        return uvloop.run(serve())
    options = (asked.requests, asked.concurrency, asked.rounds, asked.delay_ms, asked.gap_ms)
    if asked.url:
        return uvloop.run(measure(asked.url, *options))
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        try:
            return uvloop.run(measure(f"http://127.0.0.1:{port}/v1/chat/completions", *options))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
