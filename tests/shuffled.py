"""Lanes whose turns are shuffled over several gateways, and what a plain model says must come of every turn.

An escalation route over scripted models. What the judge says of a turn is a pure function of lane and turn number, so the whole
course of a lane is known beforehand: the client checks every answer against it, and at the end what the store holds.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from turnout.routing.core import Lane
from turnout.routing.escalation.memory import EscalationMemory
from turnout.sessions.store import SessionStore
from turnout.wire import CODECS

CONFIRMATIONS = 2
VERDICTS = ("yes", "no", "overflow")
"""What becomes of a turn: the judge's vote, or a conversation too long for the weak model, which the strong one serves."""
BROKEN = (OSError, asyncio.IncompleteReadError)
"""What a client sees of a gateway that has died."""
SAID = {"yes": "I try the same once more.", "no": "That is one step further."}
"""What the weak model says of a turn whose verdict will be so: it is all that the judge's script goes by."""
ANSWERED = {"yes": '{"reason": "a loop", "escalate": true}', "no": '{"reason": "fine", "escalate": false}'}
TOML = f"""
[upstreams.weak]
format = "openai_chat"
script = "weak.jsonl"
[upstreams.judge]
format = "openai_chat"
script = "judge.jsonl"
[upstreams.strong]
format = "openai_chat"
script = "strong.jsonl"
[targets.weak]
upstream = "weak"
model = "weak"
price = {{ input = 1.0, output = 2.0 }}
[targets.judge]
upstream = "judge"
model = "judge"
price = {{ input = 0.5, output = 1.0 }}
[targets.strong]
upstream = "strong"
model = "strong"
price = {{ input = 10.0, output = 50.0, cache_read = 1.0 }}
[routes.coder]
type = "escalation"
weak = "weak"
judge = "judge"
strong = "strong"
confirmations = {CONFIRMATIONS}
[sessions]
url_env = "SESSIONS_URL"
within_s = 20
"""


def write_scripts(folder: Path, judge_s: float = 0.0) -> None:
    """The scripts that `TOML` names. `judge_s`: how long the judge thinks."""
    full = {"contains": "verdict overflow", "status": 400, "error": "too long", "code": "context_length_exceeded"}
    weak = [full, *({"contains": f"verdict {verdict}", "text": said} for verdict, said in SAID.items())]
    judge = [{"contains": SAID[verdict], "text": text, "delay_s": judge_s} for verdict, text in ANSWERED.items()]
    for name, lines in (("weak", weak), ("judge", judge), ("strong", [{"text": "I see what is wrong."}])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


class Expected(Struct, frozen=True):
    """What must come of a turn."""

    target: str
    source: str


class Course:
    """A lane from its first turn to its last: half of them are sub-agents in the session of another."""

    def __init__(self, number: int, turns: int, seed: int) -> None:
        draw = random.Random(f"{seed} {number}")
        self.lane = Lane("", f"session-{number // 2}", "child" if number % 2 else "", "header")
        self.verdicts = [draw.choices(VERDICTS, (35, 50, 15))[0] for _ in range(turns)]
        self.expected: list[Expected] = []
        self.streak, self.latched = 0, False
        for verdict in self.verdicts:
            self.expected.append(self._after(verdict))
        self.next = 0

    def _after(self, verdict: str) -> Expected:
        """The plain model: one turn more."""
        if self.latched:
            return Expected("strong", "latch")
        if verdict == "overflow":
            return Expected("strong", "fallback")
        self.streak = self.streak + 1 if verdict == "yes" else 0
        self.latched = self.streak >= CONFIRMATIONS
        return Expected("strong" if self.latched else "weak", "judge")

    def body(self, turn: int) -> bytes:
        """The request of a turn."""
        messages: list[dict[str, str]] = []
        for number, verdict in enumerate(self.verdicts[: turn + 1]):
            messages.append({"role": "user", "content": f"{self.lane.key!r} step {number}: verdict {verdict}"})
            messages.append({"role": "assistant", "content": f"Done with step {number}."})
        return json.dumps({"model": "coder", "messages": messages[:-1]}).encode()

    async def left(self, store: SessionStore) -> tuple[int, bool]:
        """Streak and latch that the store holds after the last turn."""
        last = json.loads(self.body(len(self.verdicts) - 1))
        last["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And?"}]
        conversation = CODECS["openai_chat"].read_request(json.dumps(last).encode()).conversation
        memory = (await store.load(self.lane, conversation, False)).states.get("/EscalationMemory", EscalationMemory())
        assert isinstance(memory, EscalationMemory)
        return memory.streak, memory.latched


class Shuffled:
    """Sends the turns of all lanes over gateways on `ports`: each turn to any of them, lanes interleaved, a lane's own turns in
    order. A turn whose connection breaks is sent again elsewhere. `twice`: share of turns that are sent to two at once, as a
    client does that gave up waiting too early; it goes on with the first answer. `wrong`: what came out otherwise than the model
    says."""

    def __init__(self, courses: Sequence[Course], ports: Sequence[int], seed: int, twice: float = 0.0) -> None:
        self.waiting = list(courses)
        self.ports = list(ports)
        self.random = random.Random(seed)
        self.twice = twice
        self.answered = 0
        self.sent: Counter[str] = Counter()
        self.ids: dict[str, Expected] = {}
        self.wrong: list[str] = []
        self.busy = 0
        self.late: list[asyncio.Future[bool]] = []

    async def run(self, at_once: int) -> None:
        """Send them all."""
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._client())
        await asyncio.gather(*self.late)

    def gone(self, port: int) -> None:
        """Nothing more is sent to a gateway, as a load balancer would see to."""
        self.ports.remove(port)

    async def _client(self) -> None:
        connections: dict[int, Connection] = {}
        try:
            while self.waiting or self.busy:
                if not self.waiting:
                    await asyncio.sleep(0.002)
                    continue
                at = self.random.randrange(len(self.waiting))
                course, self.waiting[at] = self.waiting[at], self.waiting[-1]
                self.waiting.pop()
                self.busy += 1
                await self._turn(course, connections)
                self.busy -= 1
                course.next += 1
                if course.next < len(course.verdicts):
                    self.waiting.append(course)
        finally:
            for connection in connections.values():
                connection.close()

    async def _turn(self, course: Course, connections: "dict[int, Connection]") -> None:
        turn, ports = course.next, list(self.ports)
        if len(ports) > 1 and self.random.random() < self.twice:
            self.sent["twice"] += 1
            asking = [asyncio.ensure_future(self._alone(port, course, turn)) for port in ports]
            self.late += asking
            # Whoever answers first is believed; the other may still be at it when the next turns come.
            done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            if any(task.result() for task in done):
                return
        while True:
            port = self.random.choice(self.ports)
            try:
                head = await self._ask(port, course.lane, course.body(turn), connections)
            except BROKEN:
                self.sent["again"] += 1
                await asyncio.sleep(0.01)
                continue
            self._came(head, course, turn)
            return

    async def _alone(self, port: int, course: Course, turn: int) -> bool:
        """Send a turn over a connection of its own; whether it was answered."""
        own: dict[int, Connection] = {}
        try:
            self._came(await self._ask(port, course.lane, course.body(turn), own), course, turn)
            return True
        except BROKEN:
            return False
        finally:
            for connection in own.values():
                connection.close()

    def _came(self, head: Mapping[str, str], course: Course, turn: int) -> None:
        came, expected = Expected(head["x-turnout-target"], head["x-turnout-source"]), course.expected[turn]
        self.ids[head["x-turnout-turn"]] = came
        self.answered += 1
        if came != expected:
            self.wrong.append(f"{course.lane.key!r} turn {turn}: {came} instead of {expected}")

    async def _ask(self, port: int, lane: Lane, body: bytes, connections: "dict[int, Connection]") -> Mapping[str, str]:
        if port not in connections:
            connections[port] = await Connection.open(port)
        self.sent["turns"] += 1
        try:
            return await connections[port].ask(lane, body)
        except BaseException:
            connections.pop(port).close()
            raise


class Connection:
    """A kept connection to a gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, lane: Lane, body: bytes) -> Mapping[str, str]:
        """The head of the answer to a turn, the answer read to its end."""
        head = [
            "POST /v1/chat/completions HTTP/1.1",
            "host: 127.0.0.1",
            "content-type: application/json",
            f"content-length: {len(body)}",
            f"x-turnout-session: {lane.session}",
            *([f"x-turnout-agent: {lane.agent}"] if lane.agent else []),
        ]
        self.writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        data = await self.reader.readexactly(int(found["content-length"]))
        if lines[0].split()[1] != "200":
            raise AssertionError(f"{lines[0]}: {data[:300]!r}")
        return found

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


async def unlike(courses: Sequence[Course], store: SessionStore) -> list[str]:
    """The lanes that the store holds otherwise than the model says."""
    found = []
    for course in courses:
        streak, latched = await course.left(store)
        if latched != course.latched or (not latched and streak != course.streak):
            found.append(f"{course.lane.key!r}: {streak, latched} instead of {course.streak, course.latched}")
    return found


def expectations(courses: Sequence[Course]) -> dict[str, Any]:
    """What there is to see, so that a run that shows nothing does not pass for a good one."""
    return {
        "lanes": len(courses),
        "turns": sum(len(course.verdicts) for course in courses),
        "latched": sum(course.latched for course in courses),
        "streaks": sum(not course.latched and course.streak > 0 for course in courses),
    }
