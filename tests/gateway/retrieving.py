"""A retrieval route over a policy that plays what a test says, and knowledge that was built for it."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.e2e.vendors import Play
from tests.gateway.collaborating import words_of
from tests.gateway.escalating import said
from tests.played import Played, Seen, Step
from tests.replays import replayed
from tests.running import Running, running

from turnout.gateway.library import Shelved
from turnout.routing.retrieval.facts import Lookup, LookupOutcome

JSON = dict[str, Any]
QUESTION = "Which river runs through the town where the locomotive Flying Scotsman was built?"
QUERIES = (
    "Where was the locomotive Flying Scotsman built?",
    "Which river runs through Doncaster?",
)
ANSWER = "the River Don"


def query(text: str) -> str:
    return f"<think>To find out.</think><query>{json.dumps({'query': text})}</query>"


def answer(text: str) -> str:
    return f"<think>Settled.</think><answer>{text}</answer>"


class Policy:
    """The model's server. `turns(n, body)` gives the text or the steps of turn n of a question, from 0; texts by default."""

    def __init__(self, form: str, texts: Sequence[str]) -> None:
        self.form = form
        self.bodies: list[JSON] = []
        self.closed = 0.0
        self.turns: Callable[[int, JSON], str | list[Step] | Iterator[Step]] = lambda n, body: texts[n]
        self.rest: Callable[[JSON], str] = lambda body: "Hello from the other one."
        self._lock = threading.Lock()
        self.server = Played(self._play)

    def _play(self, seen: Seen, number: int) -> Any:
        body = json.loads(seen.body)
        with self._lock:
            self.bodies.append(body)
        if body["model"] != "policy":
            return said(Play(self.rest(body)), self.form, body)
        turn = self.turns(words_of(body).count("<knowledge>") - 1, body)
        return said(Play(turn, stop="end"), self.form, body) if isinstance(turn, str) else turn


class Broken:
    """A knowledge whose searches take `seconds` and then raise."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.asked: list[str] = []

    def look_up(self, lookups: Sequence[Lookup]) -> Sequence[LookupOutcome]:
        self.asked += [one.query for one in lookups]
        time.sleep(self.seconds)
        raise RuntimeError("a disk went away")

    def close(self) -> None:
        pass


def toml(policy: Policy, knowledge: str, **fields: Any) -> str:
    own = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
    price = "price = { input = 1.0, output = 2.0, cache_read = 0.0, cache_write = 1.0 }"
    return (
        f'[upstreams.u]\nformat = "{policy.form}"\nbase_url = "{policy.server.url}"\nmax_retries = 0\n'
        f'[targets.policy]\nupstream = "u"\nmodel = "policy"\n{price}\n'
        f'[targets.other]\nupstream = "u"\nmodel = "other"\n{price}\n'
        f'[routes.r]\ntype = "retrieval"\npolicy = "policy"\nknowledge = {json.dumps(knowledge)}\n{own}'
    )


@contextmanager
def retrieving(
    folder: Path,
    knowledge: str,
    *texts: str,
    form: str = "openai_chat",
    capture: str = "full",
    server: str = "",
    **fields: Any,
) -> Iterator[tuple[Running, Policy]]:
    """The route served, and its policy. In the end every turn is decided again from what was recorded of it."""
    policy = Policy(form, texts or (query(QUERIES[0]), query(QUERIES[1]), answer(ANSWER)))
    text = server + toml(policy, knowledge, **fields)
    with policy.server, running(text, folder, capture=capture) as gateway:
        yield gateway, policy
        if capture == "full":
            replayed(gateway)


def broken(gateway: Running, seconds: float = 0.0) -> Broken:
    """Break the route's knowledge; new turns find it so."""
    library = gateway.gateway.library
    found = Broken(seconds)
    library.shelves = {name: replace(one, knowledge=found) for name, one in library.shelves.items()}
    assert all(isinstance(one, Shelved) for one in library.shelves.values())
    return found


def body_of(form: str, *said: str, **more: Any) -> JSON:
    """A request whose last message asks; what was said before alternates."""
    texts = said or (QUESTION,)
    messages = [{"role": "user" if (len(texts) - i) % 2 else "assistant", "content": t} for i, t in enumerate(texts)]
    body: JSON = {"model": "r", **more}
    if form == "openai_responses":
        return {**body, "input": messages}
    return {**body, "messages": messages} | ({"max_tokens": 100} if form == "anthropic_messages" else {})
