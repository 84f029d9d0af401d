"""Who decides delegated and background work, and what they may know of their parent."""

from typing import Any

import pytest
from tests.routing.lanes import LARGE, SMALL, Choosing, Played

from turnout.routing import Affinity, AgentInfo, ByAgent, Lane, Passthrough, TargetName

CHILD = AgentInfo("claude-code", "subagent", "")
CHILD_LANE = Lane("", "s", "a1", "claude_code")
BACKGROUND = AgentInfo("claude-code", "background")
BACKGROUND_LANE = Lane("", "s", "~background", "claude_code")


def by_agent(**more: Any) -> ByAgent:
    return ByAgent(Affinity(Choosing(["large"])), Passthrough(SMALL), **more)


def test_delegated_work_goes_to_its_own_target() -> None:
    decision = Played(by_agent(), lane=CHILD_LANE, agent=CHILD).play()
    assert (decision.target, decision.why.source, decision.why.place) == (SMALL, "subagent", "subagents")
    assert decision.why.sentence == "delegated work has a policy of its own: small"


def test_the_agents_own_work_is_decided_as_if_it_stood_alone() -> None:
    played = Played(by_agent())
    first = played.play()
    assert (first.target, first.why.place) == (LARGE, "router")
    assert set(played.states) == {"/AffinityPin"}


def test_a_policy_of_its_own_keeps_its_own_label_and_memory() -> None:
    router = ByAgent(Passthrough(LARGE), Affinity(Choosing(["small", "large"])))
    child = Played(router, lane=CHILD_LANE, agent=CHILD)
    first = child.play()
    assert (first.target, first.why.source, first.why.place) == (SMALL, "classifier", "subagents/router")
    assert first.why.sentence.startswith("delegated work has a policy of its own: ")
    assert set(child.states) == {"subagents/AffinityPin"}
    again = child.play()
    assert (again.target, again.why.source, again.why.place) == (SMALL, "pin", "subagents")


def test_a_child_does_not_inherit_its_parents_pin() -> None:
    router = ByAgent(Affinity(Choosing(["large", "small"])))
    parent, child = Played(router), Played(router, lane=CHILD_LANE, agent=CHILD)
    assert parent.play().target == LARGE
    assert child.play().target == SMALL


UNNAMED: list[tuple[Lane, AgentInfo]] = [
    (Lane("", "s", "~subagent", "header"), AgentInfo(kind="subagent", parent="a1")),
    (Lane(), AgentInfo(kind="subagent")),
]
NAMED: list[tuple[Lane, AgentInfo]] = [
    (CHILD_LANE, CHILD),
    (Lane("", "child", "", "codex"), AgentInfo("codex", "subagent", "parent")),
]


@pytest.mark.parametrize(("lane", "agent"), UNNAMED)
def test_a_child_that_names_no_agent_is_abstained_on_and_kept_out_of_its_parents_memory(
    lane: Lane, agent: AgentInfo
) -> None:
    router = ByAgent(Affinity(Choosing(["large", "small"])), Passthrough(TargetName("other")))
    parent = Played(router)
    assert parent.play().target == LARGE
    child = Played(router, lane=lane, agent=agent)
    child.states = parent.states
    decision = child.play()
    assert decision.target == SMALL  # neither the policy's target nor the parent's pin
    assert decision.remember == ()
    assert "names no agent, so the policy for sub-agents abstained" in decision.why.sentence
    assert decision.why.values["agent_unnamed"] is True


@pytest.mark.parametrize(("lane", "agent"), NAMED)
def test_a_child_with_an_agent_or_a_session_of_its_own_is_named(lane: Lane, agent: AgentInfo) -> None:
    assert Played(by_agent(), lane=lane, agent=agent).play().why.source == "subagent"


def test_background_calls_go_to_their_target() -> None:
    router = ByAgent(Passthrough(LARGE), background=Passthrough(SMALL))
    decision = Played(router, lane=BACKGROUND_LANE, agent=BACKGROUND).play()
    assert (decision.target, decision.why.source, decision.why.place) == (SMALL, "background", "background")


def test_maintenance_in_an_agents_own_lane_follows_that_agent() -> None:
    router = ByAgent(Passthrough(LARGE), background=Passthrough(SMALL))
    compaction = AgentInfo("codex", "background", "parent")
    assert Played(router, lane=Lane("", "s", "", "codex"), agent=compaction).play().target == LARGE


@pytest.mark.parametrize(("asked_for", "target"), [("claude-haiku-4-5", SMALL), ("coder", LARGE)])
def test_turns_that_ask_for_a_small_model_are_background(asked_for: str, target: TargetName) -> None:
    router = ByAgent(Passthrough(LARGE), background=Passthrough(SMALL), small_models=("claude-haiku-*",))
    assert Played(router).play(asked_for=asked_for).target == target


def test_a_childs_small_model_call_is_delegated_work() -> None:
    router = ByAgent(Passthrough(LARGE), Passthrough(TargetName("child")), Passthrough(SMALL), ("claude-haiku-*",))
    played = Played(router, lane=CHILD_LANE, agent=CHILD)
    assert played.play(asked_for="claude-haiku-4-5").target == "child"


def test_without_a_policy_the_route_itself_decides() -> None:
    decision = Played(ByAgent(Passthrough(LARGE)), lane=CHILD_LANE, agent=CHILD).play()
    assert (decision.target, decision.why.source) == (LARGE, "fixed")
