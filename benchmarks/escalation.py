"""What an escalation turn costs the gateway: turns per second of its CPU time, over upstreams that answer at once.

    python benchmarks/escalation.py [--seconds 5] [--connections 32] [--rounds 3] [--format FORMAT] [--stream] [--profile FILE]

Three processes: the gateway, served as `turnout serve` serves it; one upstream that plays the weak model, the judge (who
declines) and the strong one; the load: sessions of ten turns each, every turn a small chat that goes on from the last. The
figure is turns over the CPU time the gateway's process took, so what else the machine does hardly counts. For comparison the
same load runs on a passthrough route of the same gateway, which makes one call a turn instead of two.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

TURNS = 10
VERDICT = json.dumps({"reason": "The results show progress.", "escalate": False})
USAGE = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
PATHS = {"openai_chat": "/v1/chat/completions", "anthropic_messages": "/v1/messages"}


def chat(text: str, stream: bool) -> bytes:
    """A Chat reply, complete with its HTTP head."""
    base = {"id": "c1", "created": 1, "model": "m"}
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    deltas: list[Any] = [{"role": "assistant", "content": ""}, {"content": text[:20]}, {"content": text[20:]}, {}]
    events = b""
    for at, delta in enumerate(deltas):
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if at == len(deltas) - 1 else None}
        one = {**base, "object": "chat.completion.chunk", "choices": [choice]}
        events += b"data: " + json.dumps(one).encode() + b"\n\n"
    usage = {**base, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
    return events_of(events + b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n")


def events_of(events: bytes) -> bytes:
    """An event stream in one chunk, complete with its HTTP head."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n" % len(events) + events + b"\r\n0\r\n\r\n"


def messages(text: str, stream: bool) -> bytes:
    """A Messages reply, complete with its HTTP head."""
    usage = {"input_tokens": 120, "output_tokens": 30, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    if not stream:
        body = json.dumps({**message, "content": [{"type": "text", "text": text}], **end}).encode()
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 30}},
        {"type": "message_stop"},
    ]
    return events_of(b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events))


ANSWER = "I have read the parser and will now look at the failing test."
REPLIES = {
    (path, judge, stream): write(VERDICT if judge else ANSWER, stream)
    for path, write in ((b"chat", chat), (b"messages", messages))
    for judge in (False, True)
    for stream in (False, True)
}


class Upstream(asyncio.Protocol):
    """Answers each request at once."""

    def __init__(self) -> None:
        self.data = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (head := self.data.find(b"\r\n\r\n")) >= 0:
            at = self.data.lower().find(b"content-length:", 0, head)
            length = int(self.data[at + 15 : self.data.find(b"\r\n", at)])
            if len(self.data) < head + 4 + length:
                return
            body = self.data[head + 4 : head + 4 + length]
            path = b"messages" if b"/messages" in self.data[:60] else b"chat"
            self.data = self.data[head + 4 + length :]
            tail = body.replace(b" ", b"")
            self.transport.write(REPLIES[path, b'"model":"judge"' in tail, b'"stream":true' in tail])


async def serve_upstream(port: int) -> None:
    """Play the models until killed."""
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port)
    await server.serve_forever()


def bodies(form: str, route: str, stream: bool) -> list[bytes]:
    """The requests of one session's turns."""
    found, said = [], [{"role": "user", "content": "Fix the parser: it fails on empty input. " * 12}]
    for turn in range(TURNS):
        body = {"model": route, "stream": stream, "messages": said}
        if form == "anthropic_messages":
            body |= {"max_tokens": 500, "tools": [{"name": "bash", "input_schema": {"type": "object"}}]}
        found.append(json.dumps(body).encode())
        said = [
            *said,
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": f"Go on with step {turn}."},
        ]
    return found


async def load(port: int, form: str, route: str, stream: bool, connections: int, until: float) -> int:
    """Turns answered by then."""
    counts = [0] * connections
    requests = bodies(form, route, stream)

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        session = 0
        while time.monotonic() < until:
            session += 1
            for body in requests:
                head = f"POST {PATHS[form]} HTTP/1.1\r\nhost: h\r\nx-turnout-session: {route}-{number}-{session}\r\n"
                writer.write(
                    f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
                )
                status = await reader.readuntil(b"\r\n\r\n")
                if b" 200 " not in status[:20]:
                    raise SystemExit(f"refused: {status.decode()}")
                if b"content-length:" in status:
                    at = status.find(b"content-length:")
                    await reader.readexactly(int(status[at + 15 : status.find(b"\r\n", at)]))
                else:
                    await reader.readuntil(b"0\r\n\r\n")
                counts[number] += 1
        writer.close()

    await asyncio.gather(*[one(number) for number in range(connections)])
    return sum(counts)


def cpu_s(pid: int) -> float:
    """CPU seconds a process has taken, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def configuration(folder: Path, form: str, upstream: int) -> Path:
    """The gateway's file: an escalation route and a passthrough route over the same upstream."""
    parts = [
        f'[upstreams.agents]\nformat = "{form}"\nbase_url = "http://127.0.0.1:{upstream}"\n',
        f'[upstreams.judges]\nformat = "openai_chat"\nbase_url = "http://127.0.0.1:{upstream}"\n',
        *(
            f'[targets.{name}]\nupstream = "{"judges" if name == "judge" else "agents"}"\nmodel = "{name}"\n'
            "price = { input = 1.0, output = 4.0 }\n"
            for name in ("weak", "strong", "judge")
        ),
        '[routes.escalation]\ntype = "escalation"\nweak = "weak"\nstrong = "strong"\njudge = "judge"\n',
        '[routes.passthrough]\ntype = "passthrough"\ntarget = "weak"\n',
        f'[ledger]\nurl = "sqlite:///{folder}/turnout.db"\n',
    ]
    file = folder / "turnout.toml"
    file.write_text("".join(parts))
    return file


def await_ready(port: int) -> None:
    """Wait until the gateway serves."""
    for _ in range(400):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the gateway did not come up")


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--format", choices=sorted(PATHS), default="openai_chat")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--profile", help="write a cProfile of the gateway's event loop to this file")
    parser.add_argument("--upstream", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.upstream:
        asyncio.run(serve_upstream(given.upstream))
        return
    with tempfile.TemporaryDirectory() as folder:
        port, models = free_port(), free_port()
        file = configuration(Path(folder), given.format, models)
        upstream = subprocess.Popen([sys.executable, __file__, "--upstream", str(models)])
        profiler = ["-m", "cProfile", "-o", given.profile] if given.profile else []
        gateway = subprocess.Popen(
            [sys.executable, *profiler, "-m", "turnout.gateway", str(file), "127.0.0.1", str(port)]
        )
        try:
            await_ready(port)
            rates: dict[str, list[float]] = {"escalation": [], "passthrough": []}
            for number in range(given.rounds + 1):
                for route, found in rates.items():
                    before, until = cpu_s(gateway.pid), time.monotonic() + (given.seconds if number else 1.0)
                    count = asyncio.run(load(port, given.format, route, given.stream, given.connections, until))
                    if number:  # the first round warms up
                        found.append(count / (cpu_s(gateway.pid) - before))
            for route, found in rates.items():
                middle = statistics.median(found)
                print(
                    f"{route}: {middle:.0f} turns per CPU second ({1e6 / middle:.0f} us a turn); rounds",
                    *map(round, found),
                )
        finally:
            gateway.send_signal(signal.SIGINT)
            upstream.kill()
            gateway.wait(20)


if __name__ == "__main__":
    main()
