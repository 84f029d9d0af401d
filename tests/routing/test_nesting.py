"""Laws of any stack of routers: who decided can be found by its place, and memories never meet."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.lanes import Played, facts

from turnout.routing import Affinity, AgentInfo, ByAgent, Composite, Lane, Passthrough, Random, TargetName
from turnout.routing.composite import Member
from turnout.routing.stacks import choices, refusals

NAMES = [TargetName(name) for name in "abcd"]

leaves = st.one_of(
    st.sampled_from(NAMES).map(Passthrough),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(
        lambda names: Random(tuple(names), per="turn")
    ),
)


@st.composite
def members(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Composite:
    made = []
    for number in range(draw(st.integers(0, 2))):
        agents: Any = draw(st.sampled_from([("main",), ("subagent",), ("main", "subagent")]))
        made.append(
            Member(draw(inner), f"m{number}", agents=agents, user_turn=draw(st.sampled_from([None, True, False])))
        )
    return Composite((*made, Member(draw(inner), "last")))


pinned = st.one_of(leaves, members(leaves))
untils: Any = st.sampled_from(["session", "user_turn"])
routers = st.recursive(
    st.one_of(leaves, st.builds(Affinity, pinned, until=untils)), lambda inner: members(inner), max_leaves=4
)
by_agent = st.builds(ByAgent, routers, st.none() | routers, st.none() | pinned, st.just(("tiny-*",)))


def at(router: Any, place: str) -> Any:
    """The router at a place; None when there is none."""
    for step in place.split("/") if place else ():
        if isinstance(router, ByAgent):
            router = {"subagents": router.subagents, "background": router.background}.get(step, at(router.main, step))
        elif isinstance(router, Composite):
            router = next((member.router for member in router.routers if member.place == step), None)
        elif isinstance(router, Affinity):
            router = router.router if step == "router" else None
        else:
            return None
    return router.main if isinstance(router, ByAgent) else router


def reachable(router: Any) -> set[TargetName]:
    return reachable(router.router) if isinstance(router, Affinity) else choices(router)


LANES = {
    "main": (Lane("", "s", "", "header"), AgentInfo()),
    "child": (Lane("", "s", "a1", "header"), AgentInfo(kind="subagent", parent="p")),
    "title": (Lane("", "s", "~background", "claude_code"), AgentInfo(kind="background")),
}


@settings(max_examples=150, deadline=None)
@given(by_agent, st.lists(st.tuples(st.sampled_from(list(LANES)), st.sampled_from(["speak", "work"])), max_size=12))
def test_the_place_names_the_router_that_decided(router: ByAgent, steps: list[tuple[str, str]]) -> None:
    assert list(refusals(ByAgent(router.main, router.subagents))) == []
    lanes = {name: Played(router, None, lane, agent) for name, (lane, agent) in LANES.items()}
    for name, step in steps:
        made = lanes[name]
        made.targets = facts(*NAMES)
        if step == "speak":
            made.story.say("ok", "assistant").say(f"Task {made.turns}.")
        else:
            made.story.bash(f"ls {made.turns}", "a", 0)
        decision = made.play()
        place = decision.why.place
        decider = at(router, place)
        assert decider is not None, place
        if decision.why.source == "pin":
            assert isinstance(decider, Affinity)
        assert decision.target in reachable(decider)
        for key in made.states:
            kept, _, state = key.rpartition("/")
            assert state == "AffinityPin"
            assert isinstance(at(router, kept), Affinity), key
        policy = {"child": router.subagents, "title": router.background}.get(name)
        prefix = {"child": "subagents", "title": "background"}.get(name, "")
        assert (policy is not None) == (bool(prefix) and place.split("/")[0] == prefix)
