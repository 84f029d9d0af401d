"""A pool of models that play a function, and reviews by them, in this process."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from turnout.conversation import Conversation, Message, Text
from turnout.peers.review.answers import Answers
from turnout.peers.review.journal import FORM
from turnout.peers.review.plan import Member, Plan, Sampling
from turnout.peers.review.questions import Question
from turnout.peers.review.running import Concurrency, review
from turnout.peers.review.scores import Scores
from turnout.pricing import Rates
from turnout.pricing.prices import Prices
from turnout.routing.core import TargetName
from turnout.upstream.buying.budget import Limits
from turnout.upstream.buying.journal import Journal
from turnout.upstream.health import Health
from turnout.upstream.http import Timeouts, Url
from turnout.upstream.models import Model, Models
from turnout.upstream.scripted import ScriptedResponse
from turnout.upstream.target import Price, Target, Upstream

NAMES = ("a", "b", "c")
PRICE = Price(input=1.0, output=4.0)
PRICES = Prices.load()
Said = str | bytes | tuple[int, dict[str, str]] | None
"""What a model says: a text, a body of its own, a status with headers; None = the connection breaks."""
Play = Callable[[str, str, int], Said]
"""Given the model, the newest message, and how often it has been asked just that before."""


class Pool:
    """A transport whose models say what `play` returns. `asked`: every request, by model and text. `usage`: it is reported, a
    token being so many characters. `hurry`: turns of the event loop that request number n takes more than one. `most`: calls in
    flight, at most, of each model and ("") of all."""

    def __init__(
        self, play: Play, usage: bool = True, hurry: Callable[[int], int] = lambda number: 0, a_token: int = 5
    ) -> None:
        self.play = play
        self.usage = usage
        self.a_token = a_token
        self.hurry = hurry
        self.asked: list[tuple[str, str]] = []
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def send(
        self, method: str, url: Url, headers: Sequence[tuple[bytes, bytes]], body: bytes, timeouts: Timeouts
    ) -> ScriptedResponse:
        request = json.loads(body)
        text = "\n".join(str(message["content"]) for message in request["messages"])
        before = self.asked.count((request["model"], text))
        self.asked.append((request["model"], text))
        self.now[request["model"]] += 1
        self.most |= self.now
        self.most |= Counter({"": self.now.total()})
        for _ in range(1 + self.hurry(len(self.asked))):
            await asyncio.sleep(0)
        self.now[request["model"]] -= 1
        said = self.play(request["model"], text, before)
        if said is None:
            return ScriptedResponse(200, [(b"content-type", b"application/json")], [b"{"], cut_after=1)
        if isinstance(said, bytes):
            return ScriptedResponse(200, [(b"content-type", b"application/json")], [said])
        if isinstance(said, tuple):
            fault = json.dumps({"error": {"message": "no", "type": "x"}}).encode()
            return ScriptedResponse(said[0], [(k.encode(), v.encode()) for k, v in said[1].items()], [fault])
        return ScriptedResponse(200, [(b"content-type", b"application/json")], [self._reply(request, text, said)])

    async def close(self) -> None:
        """Nothing to close."""

    def _reply(self, request: Any, text: str, said: str) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        tokens = {"prompt_tokens": len(text) // self.a_token, "completion_tokens": len(said) // 5}
        reply = {"id": "r", "object": "chat.completion", "created": 1, "model": request["model"], "choices": [choice]}
        return json.dumps(
            {**reply, "usage": {**tokens, "total_tokens": sum(tokens.values())}} if self.usage else reply
        ).encode()


def grades(text: str) -> bool:
    """Whether a request is for a grade."""
    return "strict grader" in text


def graded(score: object, reason: str = "so") -> str:
    """A judge's reply."""
    return json.dumps({"reason": reason, "score": score, "flags": []})


def usual(model: str, text: str, before: int) -> Said:
    """Answers of their own, and grades that follow from judge and answer."""
    if not grades(text):
        return f"{model.upper()} says: {text[-30:]}"
    return graded(1 + sum(map(ord, model + text)) % 10)


def questions(count: int, kind: str = "general") -> tuple[Question, ...]:
    """So many questions."""
    return tuple(asked(f"q{i}", f"Question number {i}?", kind) for i in range(count))


def asked(id: str, text: str, kind: str = "general", difficulty: str = "") -> Question:
    conversation = Conversation(messages=(Message("user", (Text(text),)),), roles=("user",))
    return Question(id, conversation, text, kind, difficulty, digest=text)


def planned(
    count: int = 4,
    names: Sequence[str] = NAMES,
    recorded: Answers | None = None,
    judges: int = 0,
    self_scores: bool = False,
    among: tuple[Question, ...] | None = None,
    sampling: Sampling | None = None,
    upstreams: Mapping[str, str] | None = None,
) -> Plan:
    """A review of so many questions. `upstreams`: of each model, one for all if absent."""
    members = [Member(name, name, (upstreams or {}).get(name, "main"), f"r-{name}") for name in names]
    rates = {name: Rates(input=1.0, output=4.0) for name in names}
    how = sampling or Sampling(answer_tokens=64, score_tokens=64)
    return Plan(members, among or questions(count), how, recorded, rates, judges, self_scores)


def done(
    plan: Plan, pool: Pool, file: Path, limits: Limits | None = None, at_once: Concurrency | None = None
) -> Scores:
    """The review, with the journal in `file`."""
    upstream = Upstream(format="openai_chat", base_url="http://pool.invalid", max_retries=0)
    models = {
        TargetName(m.name): Model(
            m.name, Target("main", m.model, price=PRICE), upstream, None, pool, PRICES, Health(())
        )
        for m in plan.members
    }
    journal = Journal.open(file, FORM)

    async def run() -> Scores:
        opened = Models(models, ())
        return await review(plan, journal, opened, (), limits or Limits(), at_once or Concurrency(), lambda *_: None)

    try:
        return asyncio.run(run())
    finally:
        journal.close()
