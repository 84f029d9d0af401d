"""Any sequence of verdicts, failures, hang-ups, retries and restarts leaves each agent's lane as a plain model of it says."""

import itertools
import json
from typing import Any, Literal

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from turnout.conversation import Conversation, Message, Reply, Settings, Text, ToolCall, ToolResult
from turnout.routing import Answer, Ask, Decision, Escalation, Failure, Forward, Lane, Outcome, TargetName, Turn
from turnout.routing.escalation.memory import EscalationMemory
from turnout.sessions.store import Loaded, MemoryStore
from turnout.signals import BUILT_IN, Signals, observe
from turnout.steps import Run

W, S, J = TargetName("weak"), TargetName("strong"), TargetName("judge")
Verdict = Literal["escalate", "decline", "timeout", "rate_limit", "ramble"]
GoneIn = Literal["", "draft", "judge", "answer"]
WEAK_FAILURES = ("overflow", "unavailable", "timeout")


def settled(awaited: Any) -> Any:
    """The result of a coroutine that waits for nothing, as those of the store in memory."""
    try:
        awaited.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def judged(verdict: Verdict) -> Outcome:
    if verdict in ("timeout", "rate_limit"):
        return Failure(verdict)  # type: ignore[arg-type]
    text = "Let me think." if verdict == "ramble" else json.dumps({"reason": "r", "escalate": verdict == "escalate"})
    return Reply((Text(text),))


class Agent:
    """One agent of the session: its conversation, and what a plain model says of its lane.

    `known`: streak and latch by the number of messages of the turn that left them.
    """

    def __init__(self, name: str) -> None:
        self.lane = Lane("", "session", name, "header")
        self.messages: list[Message] = [Message("user", (Text(f"task of {name}"),))]
        self.known: dict[int, tuple[int, bool]] = {}
        self.last_turn = 0

    def at(self, count: int) -> tuple[int, bool]:
        """Streak and latch that a turn of `count` messages finds."""
        return self.known[max(known)] if (known := [n for n in self.known if n < count]) else (0, False)


class Escalating(RuleBasedStateMachine):
    numbers = itertools.count()

    @initialize(confirmations=st.integers(1, 4), on_failure=st.sampled_from(["weak", "strong"]), rearm=st.booleans())
    def begin(self, confirmations: int, on_failure: str, rearm: bool) -> None:
        fields = {"weak": W, "strong": S, "judge": J, "confirmations": confirmations}
        fields |= {"on_judge_failure": on_failure, "rearm": rearm, "type": "escalation"}
        self.router = msgspec.convert(fields, Escalation)
        self.store = MemoryStore()
        self.agents = {name: Agent(name) for name in ("", "child-1", "child-2")}

    @rule(
        name=st.sampled_from(["", "child-1", "child-2"]),
        weak=st.sampled_from(["ok", "ok", "ok", "ok", *WEAK_FAILURES]),
        verdict=st.sampled_from(["escalate", "escalate", "decline", "timeout", "rate_limit", "ramble"]),
        gone_in=st.sampled_from(["", "", "", "", "draft", "judge", "answer"]),
        retried=st.booleans(),
    )
    def take_a_turn(self, name: str, weak: str, verdict: Verdict, gone_in: GoneIn, retried: bool) -> None:
        agent = self.agents[name]
        if retried and agent.last_turn:
            # The client sends its last turn again: for all it knows, it was never answered.
            del agent.messages[agent.last_turn :]
        expected, left = self.expected(agent, weak, verdict, gone_in)
        decision = self.routed(agent, weak, verdict, gone_in)
        assert (None if decision is None else decision.target) == expected
        agent.last_turn = len(agent.messages)
        if decision is None or gone_in:
            return
        if left is not None:
            agent.known[len(agent.messages)] = left
        number = next(self.numbers)
        agent.messages += [
            Message("assistant", (ToolCall(f"c{number}", "bash", '{"command":"make"}'),)),
            Message("tool", (ToolResult(f"c{number}", (Text(f"output {number}"),)),)),
        ]

    def expected(
        self, agent: Agent, weak: str, verdict: Verdict, gone_in: GoneIn
    ) -> tuple[str | None, tuple[int, bool] | None]:
        """Which target answers (None: the client is gone before that is known), and what the turn leaves, if anything."""
        streak, latched = before = agent.at(len(agent.messages))
        rearmed = latched and self.router.rearm and agent.messages[-1].role == "user"
        if latched and not rearmed:
            return S, before
        streak = 0 if rearmed else streak
        if gone_in == "draft" or (gone_in == "judge" and weak == "ok"):
            return None, None
        unchanged = (0, False) if rearmed else None
        if weak != "ok":
            return S, unchanged
        if verdict not in ("escalate", "decline"):
            return (S if self.router.on_judge_failure == "strong" else W), unchanged
        streak = streak + 1 if verdict == "escalate" else 0
        latched = streak >= self.router.confirmations
        return (S if latched else W), (streak, latched)

    def routed(self, agent: Agent, weak: str, verdict: Verdict, gone_in: GoneIn) -> Decision | None:
        """What the router decides, its host being this method."""
        conversation = Conversation(tuple(agent.messages))
        loaded: Loaded = settled(self.store.load(agent.lane, conversation, False))
        signals: Signals = observe(conversation, BUILT_IN, agent.lane.agent)
        turn = Turn(f"t{next(self.numbers)}", agent.lane, conversation, Settings(), signals, {}, memory=loaded.states)
        run: Run[Ask, Outcome, Decision] = Run(self.router.route(turn))
        while not run.done:
            (ask,) = run.pending
            if ask.purpose == gone_in:
                run.close()
                return None
            if ask.purpose == "judge":
                run.feed([judged(verdict)])
            else:
                run.feed([Reply((Text("draft"),)) if weak == "ok" else Failure(weak)])  # type: ignore[arg-type]
        self.replayed(turn, run)
        if not gone_in:
            settled(self.store.commit(agent.lane, conversation, False, run.result.remember))
        return run.result

    def replayed(self, turn: Turn, run: Run[Ask, Outcome, Decision]) -> None:
        """The turn again from what was recorded of it: the same asks, the same decision."""
        again: Run[Ask, Outcome, Decision] = Run(self.router.route(turn))
        for asked, outcomes in run.log:
            assert again.pending == asked
            again.feed(outcomes)
        assert again.result == run.result
        assert isinstance(run.result, Answer | Forward)

    @rule(name=st.sampled_from(["", "child-1", "child-2"]))
    def the_user_asks_for_something_new(self, name: str) -> None:
        agent = self.agents[name]
        if agent.messages[-1].role != "user":
            agent.messages.append(Message("user", (Text(f"next task {next(self.numbers)}"),)))
            agent.last_turn = 0

    @rule()
    def the_process_restarts_and_has_lost_its_memory(self) -> None:
        self.store = MemoryStore()
        for agent in self.agents.values():
            agent.known.clear()

    @rule()
    def the_states_travel_through_a_store_elsewhere(self) -> None:
        for memory in self.store._lanes.values():
            for snapshot in memory.snapshots:
                for key, state in snapshot.states.items():
                    assert msgspec.json.decode(msgspec.json.encode(state), type=type(state)) == state
                    snapshot.states[key] = msgspec.json.decode(msgspec.json.encode(state), type=type(state))

    @invariant()
    def every_lane_is_as_the_model_says(self) -> None:
        for agent in getattr(self, "agents", {}).values():
            later = [*agent.messages, Message("assistant", (Text("later"),))]
            loaded: Loaded = settled(self.store.load(agent.lane, Conversation(tuple(later)), False))
            memory = loaded.states.get("/EscalationMemory", EscalationMemory())
            assert isinstance(memory, EscalationMemory)
            streak, latched = agent.at(len(later))
            assert memory.latched == latched
            assert latched or memory.streak == streak


Escalating.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestEscalating = Escalating.TestCase
