"""The ledger of escalation routes under mixed load and faults, on SQLite and on PostgreSQL: every turn that was sent, each with
the calls it made, what they were for and what they cost."""

import http.client
import json
import random
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.faulty import FaultyUpstream
from tests.replays import replayed
from tests.running import Running, running

from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord

PRICES = {"weak": (1.0, 2.0), "judge": (0.5, 1.0), "strong": (10.0, 50.0)}
ROUTES = (
    ("ok", "vote", "ok"),
    ("ok", "vote", "s500"),
    ("ok", "decline", "ok"),
    ("ok", "vote", "cut"),
    ("ok", "s429-forever", "ok"),
    ("ok", "utf8", "ok"),
    ("ok", "stall-head", "ok"),
    ("slow", "html", "ok"),
    ("flaky", "vote", "ok"),
    ("cut", "vote", "ok"),
    ("overflow", "decline", "ok"),
    ("half-event", "decline", "s500"),
    ("s400", "decline", "cut"),
)
"""How weak model, judge and strong model of each route behave."""
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
CLIENTS, TURNS = 6, 50
CALLS = {
    "declined": [["draft", "judge"]],
    "voted": [["draft", "judge"]],
    "judge_failed": [["draft", "judge"]],
    "latched": [["draft", "judge", "answer"], ["draft", "judge", "answer", "answer"]],
    "weak_failed": [["draft", "answer"], ["draft", "answer", "answer"]],
    "": [["answer"], ["answer", "answer"]],
}
"""By the rule that decided, what a turn's calls may be for. A strong model that fails is followed by another."""


def toml(url: str) -> str:
    """The routes, each with targets of its own, so that no breaker of one is another's."""
    at = f'format = "openai_chat"\nbase_url = "{url}"\nmax_retries = 0\nfirst_byte_s = 0.5\nidle_s = 0.5\n'
    parts = [f'[upstreams.u]\n{at}[targets.strong-well]\nupstream = "u"\nmodel = "ok"\n{price("strong")}']
    for number, kinds in enumerate(ROUTES):
        parts += [
            f'[targets.{role}-{number}]\nupstream = "u"\nmodel = "{kind}#{number}"\n{price(role)}'
            for role, kind in zip(PRICES, kinds, strict=True)
        ]
        parts.append(
            f'[routes.r{number}]\ntype = "escalation"\nweak = "weak-{number}"\njudge = "judge-{number}"\n'
            f'strong = "strong-{number}"\nstrong_fallbacks = ["strong-well"]\n'
        )
    return "".join(parts)


def price(role: str) -> str:
    i, o = PRICES[role]
    return f"price = {{ input = {i}, output = {o} }}\n"


class Client:
    """An agent that sends turns on several lanes, and now and then hangs up."""

    def __init__(self, gateway: Running, number: int) -> None:
        self.gateway = gateway
        self.number = number
        self.random = random.Random(number)
        self.answered: dict[str, int] = {}
        self.sent = 0

    def run(self) -> None:
        """Send all turns."""
        lanes: Counter[str] = Counter()
        for _ in range(TURNS):
            route = f"r{self.random.randrange(len(ROUTES))}"
            session = f"{self.number}-{route}"
            self.turn(route, session, lanes[session])
            lanes[session] += 1

    def turn(self, route: str, session: str, step: int) -> None:
        path, stream = self.random.choice(PATHS), self.random.random() < 0.5
        said = [{"role": ("user", "assistant")[n % 2], "content": f"step {n}"} for n in range(2 * step + 1)]
        body = {"model": route, "stream": stream, ("input" if "responses" in path else "messages"): said}
        body |= {"max_tokens": 100} if "/messages" in path else {}
        body |= {"store": False} if "responses" in path else {}
        connection = http.client.HTTPConnection(self.gateway.url.removeprefix("http://"), timeout=30)
        headers = {"content-type": "application/json", "x-turnout-session": session}
        connection.request("POST", path, json.dumps(body), headers)
        self.sent += 1
        slow = any(kind in ("slow", "stall-head") for kind in ROUTES[int(route[1:])])
        if self.random.random() < (0.6 if slow else 0.1):
            threading.Event().wait(self.random.random() * 0.05)
        else:
            response = connection.getresponse()
            response.read()
            self.answered[response.headers["x-turnout-turn"]] = response.status
        connection.close()


def charged(role: str) -> float:
    """What a whole reply of the faulty upstream costs: 11 tokens in, 4 out."""
    i, o = PRICES[role]
    return (11 * i + 4 * o) / 1e6


def test_the_ledger_holds_every_turn_with_its_calls_and_costs(tmp_path: Path, ledger_url: str) -> None:
    with (
        FaultyUpstream() as upstream,
        running(toml(upstream.url), tmp_path, capture="full", ledger_url=ledger_url) as gateway,
    ):
        clients = [Client(gateway, number) for number in range(CLIENTS)]
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        turns = gateway.settled()
        assert len(turns) == len({turn.id for turn in turns}) == sum(client.sent for client in clients)
        by_id = {turn.id: turn for turn in turns}
        for client in clients:
            for name, status in client.answered.items():
                assert by_id[name].status == status
        for turn in turns:
            consistent(turn)
        rules = Counter(turn.why.rule for turn in turns if turn.why)
        assert set(CALLS) <= set(rules), rules
        assert sum(turn.ended == "client_gone" for turn in turns) >= 5
        ledger = Ledger.read(ledger_url)
        figures = ledger.stats().total
        ledger.close()
        calls = [call for turn in turns for call in turn.calls]
        assert figures.turns == len(turns)
        assert figures.cost_usd == pytest.approx(sum(call.cost_usd or 0.0 for call in calls))
        assert figures.aside_usd == pytest.approx(sum(call.cost_usd or 0.0 for call in calls if not call.served))
        assert figures.gone == sum(turn.ended == "client_gone" for turn in turns)
        assert replayed(gateway) > len(turns) // 2
        assert gateway.gateway.ledger.health().dropped == 0


def consistent(turn: TurnRecord) -> None:
    """Whether a turn's calls are those of its decision, each charged as far as known."""
    purposes = [call.purpose for call in turn.calls]
    if turn.ended != "client_gone":
        assert turn.why is not None
        assert purposes in CALLS[turn.why.rule], (turn.why, purposes)
    for call in turn.calls:
        role = call.target.partition("-")[0]
        assert {"draft": "weak", "judge": "judge", "answer": "strong"}[call.purpose] == role or call.purpose == "answer"
        if not call.error and call.usage is not None:
            assert call.cost_usd == pytest.approx(charged(role)), call
        assert call.ended_s is not None
        assert call.started_s <= call.ended_s
    known = [call.cost_usd for call in turn.calls]
    if all(usd is not None for usd in known):
        assert turn.cost_usd == pytest.approx(sum(usd or 0.0 for usd in known))
    else:
        assert turn.cost_usd is None
        assert turn.cost_note
    assert sum(call.served for call in turn.calls) <= 1
    if turn.ended == "ok":
        assert sum(call.served for call in turn.calls) == 1
