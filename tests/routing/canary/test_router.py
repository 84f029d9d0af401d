"""The canary router: a sticky share that nothing re-assigns, and nobody without a sure identity."""

import math

import msgspec
import pytest
from tests.routing.lanes import JUDGE, LARGE, SMALL, Choosing, Played

from turnout.gateway.config import read
from turnout.routing import Affinity, Canary, Decision, Lane, Passthrough, Random
from turnout.routing.core import BACKGROUND_AGENT, UNNAMED_CHILD

PLAIN = Canary(Passthrough(SMALL), Passthrough(LARGE), share=0.5)


def lane(number: int, agent: str = "") -> Lane:
    return Lane("", f"s{number}", agent, "header")


def candidate(router: Canary = PLAIN) -> Lane:
    """A lane that the candidate gets."""
    return next(lane(n) for n in range(10_000) if Played(router, lane=lane(n)).play().target == LARGE)


def arm(decision: Decision) -> str:
    return str(decision.why.values["canary"]["arm"])


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_the_candidate_gets_its_share_of_lanes_and_the_propensity_says_so(share: float) -> None:
    router, n = msgspec.structs.replace(PLAIN, share=share), 3000
    decisions = [Played(router, lane=lane(number)).play() for number in range(n)]
    got = [decision for decision in decisions if decision.target == LARGE]
    assert abs(len(got) - share * n) <= 4 * math.sqrt(n * share * (1 - share))
    assert {(d.propensity, d.why.source, arm(d), d.why.place) for d in got} == {
        (share, "canary", "candidate", "candidate")
    }
    assert {(d.propensity, arm(d), d.why.place) for d in decisions if d.target == SMALL} == {
        (1 - share, "incumbent", "")
    }


def test_a_lane_keeps_its_arm_when_the_share_changes_and_after_a_stop() -> None:
    for where in (candidate(), next(lane(n) for n in range(99) if Played(PLAIN, lane=lane(n)).play().target == SMALL)):
        played = Played(PLAIN, lane=where)
        first = played.play()
        for share, stopped in ((0.5, ()), (0.01, ()), (0.5, ("canary",)), (0.01, ("canary",))):
            played.story.bash("ls", "a", 0)
            played.router = msgspec.structs.replace(PLAIN, share=share)
            later = played.play(stopped=frozenset(stopped))
            assert (later.target, later.propensity, arm(later)) == (first.target, 0.5, arm(first))


def test_after_a_stop_no_lane_goes_to_the_candidate() -> None:
    where = candidate()
    played = Played(PLAIN, lane=where)
    stopped = played.play(stopped=frozenset({"canary"}))
    assert (stopped.target, stopped.propensity, "canary" in stopped.why.values) == (SMALL, 1.0, False)
    # Even should the name be free again, the lane stays where it is; another trial draws it anew only when it begins.
    played.story.say("ok", "assistant").say("go on")
    assert played.play().target == SMALL
    assert Played(PLAIN, lane=where).play(stopped=frozenset({"other"})).target == LARGE


@pytest.mark.parametrize(
    "unsure",
    [
        Lane(),
        Lane("", "s", "", "fingerprint"),
        Lane("", "s", UNNAMED_CHILD, "header"),
        Lane("", "s", BACKGROUND_AGENT, "header"),
    ],
)
def test_who_is_not_surely_one_agent_at_work_stays_with_the_incumbent(unsure: Lane) -> None:
    for seed in range(30):
        decision = Played(msgspec.structs.replace(PLAIN, seed=seed), lane=unsure).play()
        assert (decision.target, decision.propensity, "canary" in decision.why.values) == (SMALL, 1.0, False)


def test_work_under_way_is_not_drawn() -> None:
    played = Played(PLAIN, lane=candidate())
    played.story.bash("ls", "a", 0)
    for _ in range(3):
        assert (played.play().target, played.states["/CanaryArm"].share) == (SMALL, 0.0)
        played.story.bash("ls", "a", 0)


def test_a_turn_that_left_nothing_is_drawn_alike_again() -> None:
    played = Played(PLAIN, lane=candidate())
    assert [played.play(commit=False).target for _ in range(3)] == [LARGE, LARGE, LARGE]


def test_the_incumbent_keeps_what_it_remembered_before_it_stood_in_a_canary() -> None:
    pin = Affinity(Choosing(["large", "small", "small"]))
    played = Played(pin, lane=candidate())
    assert played.play().target == LARGE
    played.story.bash("ls", "a", 0)
    played.router = Canary(pin, Passthrough(JUDGE), share=0.5)
    assert (played.play().target, played.play().why.source) == (LARGE, "pin")


def test_arms_draw_apart_and_propensities_multiply() -> None:
    inner = Random((SMALL, LARGE), weights=(1.0, 3.0), per="lane")
    router = Canary(Passthrough(JUDGE), inner, share=0.4)
    found = [Played(router, lane=lane(n)).play() for n in range(400)]
    assert {(d.target, round(d.propensity, 9)) for d in found} == {(JUDGE, 0.6), (SMALL, 0.1), (LARGE, 0.3)}


HEAD = """
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
[targets.small]
upstream = "u"
model = "small"
[targets.large]
upstream = "u"
model = "large"
[routes.r]
"""


@pytest.mark.parametrize(
    ("fields", "key", "says"),
    [
        ("share = 0.005", "share", ">= 0.01"),
        ("share = 0.6", "share", "<= 0.5"),
        ('name = ""', "name", ">= 1"),
        ("watching = { alpha = 0.0 }", "watching.alpha", "> 0"),
        ("watching = { margins = { cost = 1.0 } }", "watching", "cost must be a number from 0 to below 1"),
        ("watching = { metrics = [] }", "watching", "name at least one"),
        ('watching = { metrics = ["luck"] }', "watching.metrics[0]", "success"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: str, key: str, says: str) -> None:
    _, tables = read(f'{HEAD}type = "canary"\nincumbent = "small"\ncandidate = "large"\n{fields}\n', "turnout.toml")
    (finding,) = tables.findings
    assert finding.key.startswith(f"routes.r.{key}")
    assert says in f"{finding.message} {finding.hint}"


def test_a_canary_in_a_canary_is_refused_where_it_stands() -> None:
    inner = '{ type = "canary", name = "inner", incumbent = "small", candidate = "large" }'
    _, tables = read(HEAD + f'type = "canary"\nincumbent = "small"\ncandidate = {inner}\n', "turnout.toml")
    (finding,) = tables.findings
    assert (finding.key, "two trials at once" in finding.message) == ("routes.r.candidate", True)


def test_equal_arms_are_a_concern() -> None:
    assert Canary(Passthrough(SMALL), Passthrough(SMALL)).concerns()
    assert not PLAIN.concerns()
