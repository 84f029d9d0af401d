"""Lanes that were lived through as a gateway lives them, recorded as it records them, without a gateway."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from turnout.conversation import Reply, Text, Usage
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing.caching import Caching
from turnout.pricing.rates import Rates, cost
from turnout.routing import Ask, Decision, Failure, Lane, Outcome, Router, TargetFacts, TargetName, Turn
from turnout.routing.asked import asked
from turnout.routing.core import Answer, Placed
from turnout.routing.warmth import Warmed
from turnout.sessions.store import MemoryStore
from turnout.signals import observe
from turnout.steps import Run
from turnout.wire import CODECS

PRICES = {"small": (1.0, 5.0, 0.1), "large": (10.0, 50.0, 1.0), "judge": (0.5, 1.0, 0.5)}
"""USD per million tokens: input, output, cached input."""
FAILED = "FAILED tests/test_a.py::test_a - AssertionError: 1 != 2\n==== 1 failed, 2 passed in 0.12s ===="
PASSED = "==== 3 passed in 0.12s ===="


def target(name: str, cached: bool = True) -> TargetFacts:
    """A priced target whose cache takes prompts of any size."""
    rates = Rates(input=PRICES[name][0], output=PRICES[name][1], cache_read=PRICES[name][2])
    caching = Caching(0, 1, "24h") if cached else None
    return TargetFacts(TargetName(name), f"vendor-{name}", "openai_chat", rates=rates, caching=caching)


TARGETS: Mapping[TargetName, TargetFacts] = {TargetName(name): target(name) for name in PRICES}


class Life:
    """A session of one agent. `answers`: the outcome of each ask. `records`: its turns so far, as the ledger keeps them."""

    def __init__(
        self,
        router: Router,
        *,
        policy: str = "live",
        session: str = "s",
        full: bool = False,
        answers: Callable[[Ask], Outcome] = lambda ask: Failure("unavailable"),
        rung: Any = "header",
        targets: Mapping[TargetName, TargetFacts] = TARGETS,
        begins: float = 1e9,
    ) -> None:
        self.begins = begins
        self.router = router
        self.targets = targets
        self.policy = policy
        self.lane = Lane("", session, "", rung)
        self.full = full
        self.answers = answers
        self.store = MemoryStore()
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "make the tests pass"}]
        self.records: list[TurnRecord] = []
        self.calls = 0

    def result(self, text: str, command: str = "pytest tests/test_a.py") -> "Life":
        """The agent calls a tool and gets this result."""
        self.calls += 1
        function = {"name": "Bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"c{self.calls}", "type": "function", "function": function}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.messages.append({"role": "tool", "tool_call_id": f"c{self.calls}", "content": text})
        return self

    def say(self, text: str) -> "Life":
        """The agent is done for now, and the user says something more."""
        self.messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": text}]
        return self

    def turn(self, *, kept: bool = True, prompt: int | None = None, **more: Any) -> TurnRecord:
        """The next turn. `kept`: it is answered to its end. `prompt`: tokens of its prompt."""
        body = json.dumps({"model": "coder", "messages": self.messages}).encode()
        request = CODECS["openai_chat"].read_request(body)
        signals = observe(request.conversation)
        at = self.begins + 10.0 * len(self.records)
        loaded = asyncio.run(self.store.load(self.lane, request.conversation, signals.compacted))
        turn = Turn(
            f"{self.lane.session}-{len(self.records):04d}", self.lane, request.conversation, request.settings, signals,
            self.targets, loaded.states, at, 600.0, "coder",
        )  # fmt: skip
        decision, calls, heard = self._routed(turn)
        size = prompt if prompt is not None else 2_000 + len(body) // 4
        if kept:
            warmed = Placed("gateway", Warmed(decision.target, at, 1, size, size, 100, size))
            events = (*decision.remember, warmed)
            asyncio.run(self.store.commit(self.lane, request.conversation, signals.compacted, events))
        calls = self._answered(decision, calls, Usage(size, 100)) if kept else calls
        record = TurnRecord(
            id=turn.id, at=at, route="coder", policy=self.policy, session=self.lane.session, rung=self.lane.rung,
            format="openai_chat", asked_for="coder", target=decision.target, model=f"vendor-{decision.target}",
            why=decision.why, signals=signals, memory=dict(loaded.states), remembered=decision.remember if kept else (),
            calls=tuple(calls), propensity=decision.propensity, ended="ok" if kept else "error",
            asked=tuple(heard) if self.full else (), request=body if self.full else None,
        )  # fmt: skip
        self.records.append(record)
        return record

    def _routed(self, turn: Turn) -> tuple[Decision, list[Call], list[Any]]:
        run: Run[Ask, Outcome, Decision] = Run(self.router.route(turn))
        calls: list[Call] = []
        heard = []
        while not run.done:
            outcomes = [self.answers(ask) for ask in run.pending]
            for ask, outcome in zip(run.pending, outcomes, strict=True):
                usage = outcome.usage if isinstance(outcome, Reply) else None
                spent = cost(usage, TARGETS[ask.target].rates).usd if usage is not None else 0.0
                calls.append(Call(ask.target, f"vendor-{ask.target}", ask.purpose, usage=usage, cost_usd=spent))
                heard.append(asked(ask, turn.conversation, outcome))
            run.feed(outcomes)
        return run.result, calls, heard

    def _answered(self, decision: Decision, calls: list[Call], usage: Usage) -> list[Call]:
        spent = cost(usage, TARGETS[decision.target].rates).usd
        served = Call(decision.target, f"vendor-{decision.target}", "answer", True, usage=usage, cost_usd=spent)
        if not isinstance(decision, Answer):
            return [*calls, served]
        drafts = [n for n, call in enumerate(calls) if call.target == decision.target and call.purpose == "draft"]
        calls[drafts[-1]] = Call(decision.target, served.model, "draft", True, usage=usage, cost_usd=spent)
        return calls


def reply(text: str, tokens: int = 50) -> Reply:
    """A model's answer to an ask."""
    return Reply((Text(text),), usage=Usage(1_000, tokens))
