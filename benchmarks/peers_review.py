"""A review killed again and again: are the scores those of a review that was left alone, and was any call paid twice?

    python benchmarks/peers_review.py                       # 8 models, 100 questions, 3 kills
    python benchmarks/peers_review.py --models 4 --questions 25 --kills 2

Runs `turnout peers review` as a process against scripted models behind a real socket. They answer in a few milliseconds, in no
order; some replies cannot be read, some requests are turned away with 429. The upstream counts every reply that it has begun to
send: what it counts is what a provider would charge for.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

SRC = Path(__file__).resolve().parent.parent / "src"
AT_ONCE = 12


class Rehearsal(NamedTuple):
    """What came of it. `paid_alone`, `paid_killed`: replies that the upstream has charged for. `lost`: at each kill, those that
    were not in the journal. `most_at_once`: calls in flight, at most."""

    same_scores: bool
    same_spending: bool
    paid_alone: int
    paid_killed: int
    lost: list[int]
    most_at_once: int
    turned_away: int
    seconds_alone: float
    seconds_killed: float


class Scripted(ThreadingHTTPServer):
    """Models behind one socket: whom a request is for and what it says decide what is said. `paid`: replies by request."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, delay_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.delay_s = delay_s
        self.lock = threading.Lock()
        self.paid: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.now = self.most = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def total(self) -> int:
        """Replies so far."""
        with self.lock:
            return self.paid.total()

    def reset(self) -> tuple[Counter[str], int]:
        """The replies so far and the requests turned away; both begin anew."""
        with self.lock:
            before, away = self.paid, len(self.refused)
            self.paid, self.refused = Counter(), set()
            return before, away

    def wait_idle(self) -> None:
        """Wait until every exchange is over."""
        while self.now:
            time.sleep(0.005)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error here."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: Scripted

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        key = hashlib.sha256(body).hexdigest()
        with server.lock:
            server.now += 1
            server.most = max(server.most, server.now)
        try:
            time.sleep(server.delay_s * (0.2 + 1.6 * random.random()))
            if int(key[:4], 16) % 50 == 0:
                with server.lock:
                    away = key not in server.refused
                    server.refused.add(key)
                if away:
                    self._send(429, {"error": {"message": "slow down", "type": "rate_limit"}}, {"retry-after": "0"})
                    return
            with server.lock:
                server.paid[key] += 1
            self._send(200, reply(json.loads(body)), {})
        finally:
            with server.lock:
                server.now -= 1

    def _send(self, status: int, value: Any, headers: dict[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """What a scripted model says: an answer of its own, or a grade that follows from judge, author and question."""
    said = [str(message["content"]) for message in body["messages"]]
    dice = random.Random(json.dumps([body["model"], said]))
    if "strict grader" in said[0]:
        text = grade(body["model"], said, dice)
    else:
        text = f"Answer of {body['model'][::-1]} to this: {said[-1]} " + "Because it follows. " * dice.randrange(1, 12)
    usage = {"prompt_tokens": sum(map(len, said)) // 4, "completion_tokens": len(text) // 4 + 1}
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 1,
        "model": f"{body['model']}-0613",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }


def grade(judge: str, said: list[str], dice: random.Random) -> str:
    """A judge's reply; one in twenty-five cannot be read at first, a few not at the second time either."""
    again = "could not be read" in said[0]
    if dice.random() < (0.15 if again else 0.04):
        return "I would give this a high grade."
    author = said[-1].split("Answer of ")[-1].split(" ", 1)[0]
    lenient, able = int(judge[-1]) / 3, int(author[0]) / 2
    score = max(1, min(10, round(3 + lenient + able + dice.gauss(0, 1.2))))
    return json.dumps({"reason": "It says so.", "score": score, "flags": []})


def rehearse(folder: Path, models: int, questions: int, kills: int, delay_s: float = 0.01) -> Rehearsal:
    """Review once left alone and once killed so often, with journals of their own, and compare."""
    upstream = Scripted(delay_s)
    try:
        config = configuration(folder, models, upstream.server_address[1])
        asked = folder / "questions.jsonl"
        asked.write_text("".join(f"{json.dumps(question(i))}\n" for i in range(questions)))
        began = time.monotonic()
        run(config, asked, folder / "alone").wait()
        alone_s = time.monotonic() - began
        alone, turned_away = upstream.reset()
        began, lost, calls = time.monotonic(), [], alone.total()
        for kill in range(1, kills + 1):
            process = run(config, asked, folder / "killed")
            while upstream.total < calls * kill / (kills + 1) and process.poll() is None:
                time.sleep(0.002)
            assert process.poll() is None, "the review was over before it could be killed"
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            upstream.wait_idle()
            lost.append(upstream.total - sum(lost) - lines(folder / "killed.journal"))
        run(config, asked, folder / "killed").wait()
        killed_s = time.monotonic() - began
        paid, _ = upstream.reset()
        one, other = (json.loads((folder / f"{name}.json").read_text()) for name in ("alone", "killed"))
        spending = [{k: v for k, v in found.pop("spent").items() if k != "calls"} for found in (one, other)]
        for found in (one, other):
            del found["manifest"]["began"]
        same = one == other and one["complete"]
        return Rehearsal(
            same,
            spending[0] == spending[1],
            alone.total(),
            paid.total(),
            lost,
            upstream.most,
            turned_away,
            alone_s,
            killed_s,
        )
    finally:
        upstream.shutdown()
        upstream.server_close()


def question(number: int) -> dict[str, Any]:
    kinds = ("easy", "middling", "hard")
    return {"id": f"q{number}", "question": f"What follows from premise {number}?", "difficulty": kinds[number % 3]}


def configuration(folder: Path, models: int, port: int) -> Path:
    """A configuration with so many models behind the upstream."""
    file = folder / "turnout.toml"
    targets = "".join(
        f'[targets.m{i}]\nupstream = "scripted"\nmodel = "m{i}"\nprice = {{ input = 1.0, output = 4.0 }}\n'
        for i in range(models)
    )
    upstream = f'[upstreams.scripted]\nformat = "openai_chat"\nbase_url = "http://127.0.0.1:{port}"\n'
    file.write_text(f'{upstream}{targets}[routes.any]\ntype = "passthrough"\ntarget = "m0"\n')
    return file


def run(config: Path, questions: Path, name: Path) -> "subprocess.Popen[bytes]":
    """The command, as a process of its own."""
    files = ["--config", config, "--journal", f"{name}.journal", "--out", f"{name}.json"]
    command = [sys.executable, "-m", "turnout", "peers", "review", questions, *files]
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    return subprocess.Popen(
        [*map(str, command), "--at-once", str(AT_ONCE), "--per-upstream", str(AT_ONCE)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def lines(journal: Path) -> int:
    """Calls in a journal: whole lines without the first."""
    return max(journal.read_bytes().count(b"\n") - 1, 0) if journal.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = rehearse(Path(folder), given.models, given.questions, given.kills)
    print(json.dumps(found._asdict(), indent=1))


if __name__ == "__main__":
    main()
