"""Routers in order: conditions, abstentions, memory apart, explanations."""

from typing import Any

import pytest
from tests.routing.lanes import LARGE, SMALL, Choosing, Played

from turnout.routing import Affinity, AgentInfo, Composite, Lane, Passthrough
from turnout.routing.composite import Member


def test_the_first_that_does_not_abstain_decides() -> None:
    router = Composite((Member(Choosing(["large"], abstained=[0])), Member(Passthrough(SMALL))))
    played = Played(router)
    first = played.play()
    assert (first.target, first.why.source, first.why.place) == (SMALL, "fixed", "passthrough")
    assert first.why.sentence.startswith("choosing abstained (choice 0); ")
    second = played.play()
    assert (second.target, second.why.source, second.why.place) == (LARGE, "classifier", "choosing")


def test_the_last_ones_word_stands_even_when_it_abstains() -> None:
    decision = Played(Composite((Member(Choosing(["large"], abstained=[0])),))).play()
    assert (decision.target, decision.why.abstained) == (LARGE, True)


@pytest.mark.parametrize(
    ("conditions", "more", "taken"),
    [
        ({"agents": ("subagent",)}, {"agent": AgentInfo("codex", "subagent")}, True),
        ({"agents": ("subagent",)}, {}, False),
        ({"programs": ("codex",)}, {"agent": AgentInfo("codex")}, True),
        ({"programs": ("codex",)}, {"agent": AgentInfo("claude-code")}, False),
        ({"tenants": ("team",)}, {"lane": Lane("team", "s", "", "header")}, True),
        ({"tenants": ("team",)}, {}, False),
        ({"models": ("*haiku*",)}, {"asked_for": "claude-haiku-4-5"}, True),
        ({"models": ("*haiku*",)}, {"asked_for": "claude-opus"}, False),
        ({"user_turn": True}, {}, True),
        ({"user_turn": False}, {}, False),
        ({"programs": ("codex",), "user_turn": False}, {"agent": AgentInfo("codex")}, False),
    ],
)
def test_conditions_all_hold(conditions: dict[str, Any], more: dict[str, Any], taken: bool) -> None:
    router = Composite((Member(Passthrough(LARGE), "first", **conditions), Member(Passthrough(SMALL))))
    assert Played(router).play(**more).target == (LARGE if taken else SMALL)


def test_memory_is_kept_apart_by_place() -> None:
    first, second = Choosing(["large", "small"]), Choosing(["small", "large"])
    members = (Member(Affinity(first), "a", user_turn=True), Member(Affinity(second), "b"))
    played = Played(Composite(members))
    assert played.play().target == LARGE
    played.story.bash("ls", "x", 0)
    assert played.play().target == SMALL
    assert set(played.states) == {"a/AffinityPin", "b/AffinityPin"}
    assert (played.play().target, played.play().why.place) == (SMALL, "b")
    played.story.say("ok", "assistant").say("more")
    assert (played.play().target, played.play().why.place) == (LARGE, "a")


def test_places_nest() -> None:
    inner = Composite((Member(Affinity(Choosing(["large"])), "pin"),))
    played = Played(Composite((Member(inner, "outer"),)))
    assert played.play().why.place == "outer/pin/router"
    assert set(played.states) == {"outer/pin/AffinityPin"}
    assert played.play().why.place == "outer/pin"


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ((), "at least one"),
        ((Member(Passthrough(SMALL), programs=("codex",)),), "last router must take every turn"),
        ((Member(Choosing()), Member(Choosing())), "two are called choosing"),
        ((Member(Choosing(), "a/b"),), "is no name"),
    ],
)
def test_what_is_ambiguous_is_refused(members: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Composite(members)
