"""The rules of a chain, on the worked example of the method and on what can go wrong."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.recorded import needs_recordings, shared

from turnout.routing.collaboration.chain import (
    DEFAULT,
    PAPER,
    Ended,
    Generate,
    Halt,
    Refine,
    Response,
    Rules,
    Vote,
    chain,
    dice,
)
from turnout.routing.collaboration.electorate import Electorate

RECEIVED = {"M1": 8.25, "M2": 7.0, "M3": 6.25, "M4": 5.25, "M5": 6.0}
MODELS = tuple(RECEIVED)
C_I = {"M1": ["M2"], "M2": ["M1"], "M3": ["M1", "M2"], "M4": ["M1", "M2"], "M5": ["M1", "M2"]}
C_PRIME_I = {"M1": ["M5"], "M2": ["M5"], "M3": ["M5"], "M4": ["M5"], "M5": []}
POOL = Electorate(MODELS, RECEIVED, ["M1", "M2"], C_I, C_PRIME_I)

Votes = Callable[[str, int], "bool | Halt | None"]


def never(hop: int, attempt: int) -> float:
    return 0.0


def run(
    rules: Rules,
    votes: Votes,
    first: Sequence[str] = ("M4",),
    pool: Electorate = POOL,
    answers: Callable[[str, int], Response | Halt | None] = lambda author, hop: Response(f"y{hop}"),
    draw: Callable[[int, int], float] = never,
    unavailable: Sequence[str] = (),
) -> Ended:
    """A whole chain: `answers(author, hop)` and `votes(voter, hop)` say what the models do."""
    steps = chain(rules, pool, first, draw, unavailable)
    sent: Any = None
    asked: list[tuple[str, int]] = []
    while True:
        try:
            step = steps.send(sent)
        except StopIteration as stop:
            ended: Ended = stop.value
            assert ended.generations <= rules.alpha + 1
            assert ended.votes == len(asked)
            assert (ended.chosen >= 0) == bool(ended.hops)
            return ended
        match step:
            case Generate(author):
                sent = answers(author, 0)
            case Refine(author, hop):
                sent = answers(author, hop + 1)
            case Vote(voters, hop):
                cast = [votes(voter, hop) for voter in voters]
                halts = [one for one in cast if isinstance(one, Halt)]
                sent = halts[0] if halts else cast
                asked += [] if halts else [(voter, hop) for voter in voters]


def against(voter: str, hop: int) -> bool:
    return False


def in_favour(voter: str, hop: int) -> bool:
    return True


def vector() -> dict[str, Any]:
    folder = shared()
    assert folder is not None
    loaded: dict[str, Any] = json.loads((folder / "data/peers/worked_example.json").read_text())
    return loaded


def pool_of(vector: Mapping[str, Any], d2: int) -> Electorate:
    expected = vector["expected"]
    targets = expected["by_d2"][str(d2)]["targets"]
    return Electorate(
        vector["models"],
        expected["received"],
        expected["C"],
        {model: found["C_i"] for model, found in targets.items()},
        {model: found["C_prime_i"] for model, found in targets.items()},
    )


@needs_recordings
@pytest.mark.parametrize("exit_rule", ["last", "best_supported"])
@pytest.mark.parametrize("rules", [PAPER, DEFAULT], ids=["paper", "default"])
@pytest.mark.parametrize("route", ["A", "B", "C_ping_pong"])
def test_the_worked_routes_go_as_published(route: str, rules: Rules, exit_rule: Any) -> None:
    given = vector()["routes"][route]
    kind = "expected_with_revisits" if rules.revisits else "expected_without_revisits"
    expected = given.get("expected") or given[kind]
    ended = run(
        replace(rules, alpha=given["alpha"], exit=exit_rule),
        lambda voter, hop: bool(given["given_votes"][f"y{hop}"][voter]),
        (given["first"],),
        pool_of(vector(), given["d2"]),
    )
    assert [hop.author for hop in ended.hops] == expected["route"]
    assert (ended.status, ended.votes, ended.generations) == (
        expected["status"],
        expected["votes"],
        expected["generations"],
    )
    assert ended.generations - 1 == expected["hops"]
    assert f"y{ended.chosen}" == expected[f"final_if_exit_{exit_rule}"]
    assert sorted(ended.supporters) == expected["supporters"][f"y{ended.chosen}"]
    for hop, step in zip(ended.hops, expected["steps"], strict=True):
        assert {ballot.voter: int(bool(ballot.vote)) for ballot in hop.ballots} == step["votes"]
        assert hop.refiners == [step["next"]] * (step["next"] is not None)
        assert hop.disapprovers == step["disapprovers"]


@needs_recordings
@pytest.mark.parametrize("d2", [25, 50, 75, 100])
def test_the_ladder_is_the_published_one(d2: int) -> None:
    pool = pool_of(vector(), d2)
    for model, found in vector()["expected"]["by_d2"][str(d2)]["targets"].items():
        rung, voters = pool.ladder(model)[0]
        assert list(voters) == found["ladder_C_i"]
        assert rung == ("C_i" if found["C_i"] else "C")
        assert dict(pool.ladder(model, climb=False)).get("C_i", ()) == tuple(found["C_i"])


def test_nobody_named_to_vote_is_agreement_in_the_paper_only() -> None:
    pool = Electorate(MODELS, RECEIVED, ["M1", "M2"], dict.fromkeys(MODELS, ()), C_PRIME_I)
    paper = run(PAPER, against, ("M3",), pool)
    assert (paper.status, paper.votes, paper.agreed) == ("converged", 0, False)
    default = run(DEFAULT, in_favour, ("M3",), pool)
    assert [(b.voter, b.rung) for b in default.hops[0].ballots] == [("M1", "C"), ("M2", "C")]
    assert default.agreed


def test_the_ladder_goes_down_to_the_best_scored_others() -> None:
    nobody = Electorate(MODELS, RECEIVED, ["M1"], dict.fromkeys(MODELS, ()), C_PRIME_I)
    assert [rung for rung, _ in nobody.ladder("M1")] == ["received"]
    assert nobody.ladder("M1", supplement=True) == (("C_prime_i", ("M5",)), ("received", ("M2", "M3", "M4")))
    alone = Electorate(("M1",), {"M1": 8.0}, ["M1"], {"M1": ()})
    assert run(DEFAULT, in_favour, ("M1",), alone).status == "no_voters"


def test_voters_that_are_down_are_no_agreement() -> None:
    assert run(PAPER, in_favour, ("M1",), unavailable=["M2"]).status == "unverified"
    ended = run(DEFAULT, in_favour, ("M1",), unavailable=["M2"])
    assert [(b.voter, b.rung) for b in ended.hops[0].ballots] == [
        ("M3", "received"),
        ("M5", "received"),
        ("M4", "received"),
    ]


def test_an_abstention_is_never_approval() -> None:
    silent = run(PAPER, lambda voter, hop: None, ("M3",))
    assert (silent.status, silent.agreed, silent.votes) == ("unverified", False, 2)
    # One of two is enough, but both are counted.
    half = run(DEFAULT, lambda voter, hop: None if voter == "M1" else True, ("M3",))
    assert (half.status, half.hops[0].abstainers, half.hops[0].approvers) == ("converged", ["M1"], ["M2"])
    # The voters of M1's answers are one; in its place the best scored of the others is asked.
    others = run(DEFAULT, lambda voter, hop: None if voter == "M2" else True, ("M1",))
    assert others.status == "converged"
    assert [(b.voter, b.vote, b.substitute) for b in others.hops[0].ballots] == [
        ("M2", None, False),
        ("M3", True, True),
    ]
    nobody = run(DEFAULT, lambda voter, hop: None, ("M1",))
    assert (nobody.status, nobody.votes) == ("unverified", 4)


def test_who_abstained_is_not_asked_again_but_in_the_paper() -> None:
    def votes(voter: str, hop: int) -> bool | None:
        return None if voter == "M1" else False

    default = run(DEFAULT, votes, ("M4",))
    assert [b.voter for b in default.hops[1].ballots] == ["M3", "M5", "M4"]  # M2 wrote, and M1 is not asked again
    paper = run(replace(PAPER, alpha=1), votes, ("M4",))
    assert [[b.voter for b in hop.ballots] for hop in paper.hops] == [["M1", "M2"], ["M1"]]


def test_a_refiner_that_fails_gives_way_to_the_next() -> None:
    ended = run(DEFAULT, against, ("M3",), answers=lambda a, hop: None if a == "M1" and hop else Response(hop))
    assert ended.hops[0].refiners == ["M1", "M2"]
    assert [hop.author for hop in ended.hops] == ["M3", "M2"]
    ended = run(DEFAULT, against, ("M3",), answers=lambda author, hop: Response(0) if hop == 0 else None)
    assert (ended.status, ended.chosen, ended.hops[0].refiners) == ("refiner_failed", 0, ["M1", "M2"])


def test_the_same_text_is_not_voted_on_again() -> None:
    ended = run(PAPER, against, ("M4",), answers=lambda author, hop: Response("same"))
    # M1 and M2 have both voted on it: every further hop copies.
    assert ended.votes == 2
    assert [[b.copied for b in hop.ballots] for hop in ended.hops] == [[False, False], [True], [True], [True]]
    assert ended.status == "hop_limit"


def test_answers_that_say_the_same_share_their_supporters() -> None:
    # y0 and y2 both say 42, in other words: two authors stand against one.
    def answers(author: str, hop: int) -> Response:
        return Response(f"text {hop}", alike="41" if hop == 1 else "42")

    ended = run(replace(DEFAULT, alpha=2), against, ("M3",), answers=answers)
    assert (ended.chosen, set(ended.supporters)) == (0, {"M3", "M2"})


def test_an_unfit_answer_is_disapproved_of_without_a_vote() -> None:
    def answers(author: str, hop: int) -> Response:
        return Response(hop, fault="not JSON" if hop == 0 else "")

    ended = run(DEFAULT, in_favour, ("M4",), answers=answers)
    assert ended.hops[0].ballots == []
    assert ended.hops[0].candidates == ("M1", "M2", "M3", "M5")
    assert (ended.status, ended.chosen, ended.votes) == ("converged", 1, 1)
    # Whom the graph names improves it, whatever is drawn; others only where these fail.
    assert run(DEFAULT, in_favour, ("M4",), answers=answers, draw=lambda h, a: 0.99).hops[1].author == "M2"
    failing = run(
        DEFAULT,
        in_favour,
        ("M4",),
        answers=lambda a, h: None if a in ("M1", "M2") else answers(a, h),
        draw=lambda h, a: 0.99,
    )
    assert failing.hops[0].refiners == ["M2", "M1", "M5"]
    unfit = run(DEFAULT, against, ("M4",), answers=lambda author, hop: Response(hop, fault="no" if hop else ""))
    assert unfit.chosen == 0  # the last ones cannot be used
    nothing = run(DEFAULT, against, ("M4",), answers=lambda author, hop: Response(hop, fault="no"))
    assert (nothing.status, nothing.agreed) == ("hop_limit", False)


@pytest.mark.parametrize("status", ["budget", "deadline"])
@pytest.mark.parametrize("at", ["first", "vote", "refine"])
def test_a_halt_ends_the_chain_with_what_there_is(at: str, status: Any) -> None:
    halt = Halt(status)
    ended = run(
        DEFAULT,
        lambda voter, hop: halt if at == "vote" else False,
        answers=lambda a, hop: halt if at == ("refine" if hop else "first") else Response(hop),
    )
    assert (ended.status, ended.agreed) == (status, False)
    assert ended.chosen == (-1 if at == "first" else 0)


def test_the_first_that_answers_begins() -> None:
    ended = run(DEFAULT, in_favour, ("M5", "M4", "M1"), answers=lambda a, hop: None if a == "M5" else Response(hop))
    assert (ended.first_failed, ended.hops[0].author) == (("M5",), "M4")
    assert run(DEFAULT, in_favour, ("M5", "M4"), answers=lambda author, hop: None).status == "failed"


def test_a_model_unknown_to_the_graph_begins_and_does_not_vote() -> None:
    ended = run(DEFAULT, against, ("stranger",))
    assert [b.voter for b in ended.hops[0].ballots] == ["M1", "M2"]
    assert all(ballot.voter != "stranger" for hop in ended.hops for ballot in hop.ballots)


def test_no_more_voters_than_allowed_the_best_first() -> None:
    ended = run(replace(DEFAULT, max_voters=1), in_favour, ("M4",))
    assert [b.voter for b in ended.hops[0].ballots] == ["M1"]
    # The other one of C_i is the first substitute.
    ended = run(replace(DEFAULT, max_voters=1), lambda v, hop: None if v == "M1" else True, ("M4",))
    assert [(b.voter, b.rung) for b in ended.hops[0].ballots] == [("M1", "C_i"), ("M2", "C_i")]


def test_part_of_the_votes_may_be_enough() -> None:
    def votes(voter: str, hop: int) -> bool:
        return voter == "M1"

    assert run(replace(DEFAULT, approval=0.5), votes).generations == 1
    assert run(replace(DEFAULT, approval=0.51), votes).generations == 2


def test_the_last_answer_goes_out_without_a_vote() -> None:
    ended = run(replace(PAPER, alpha=1, final_vote=False), against)
    assert (ended.status, ended.chosen, ended.votes, ended.agreed) == ("hop_limit", 1, 2, False)


def test_the_cheapest_voter_is_asked_first_and_one_against_is_enough() -> None:
    pool = Electorate(MODELS, RECEIVED, ["M1", "M2"], C_I, prices={"M1": 2.0, "M2": 1.0})
    rules = replace(DEFAULT, polling="cheapest_first", exit="last", alpha=1)
    ended = run(rules, against, pool=pool)
    assert [(b.voter, b.vote) for b in ended.hops[0].ballots] == [("M2", False)]
    assert [b.voter for b in run(rules, in_favour, pool=pool).hops[0].ballots] == ["M2", "M1"]


@pytest.mark.parametrize(
    ("picker", "picked"), [("max_received", "M1"), ("cheapest", "M2"), ("random", "M2"), ("weighted", "M2")]
)
def test_who_improves_the_answer(picker: Any, picked: str) -> None:
    pool = Electorate(MODELS, RECEIVED, ["M1", "M2"], C_I, prices={"M2": 1.0})
    ended = run(replace(DEFAULT, picker=picker), against, pool=pool, draw=lambda hop, attempt: 0.9)
    assert ended.hops[0].refiners == [picked]
    assert ended.hops[0].drawn == [0.9 if picker in ("random", "weighted") else None]
    assert ended.hops[1].drawn in ([], [None])  # one candidate: nothing to draw


def test_dice_fall_the_same_for_the_same_request() -> None:
    draws = [dice(f"r{i}", 1)(0, 0) for i in range(400)]
    assert draws == [dice(f"r{i}", 1)(0, 0) for i in range(400)]
    assert draws != [dice(f"r{i}", 2)(0, 0) for i in range(400)]
    assert 0.45 < sum(draws) / 400 < 0.55
    assert dice("r", 1)(0, 0) != dice("r", 1)(1, 0) != dice("r", 1)(0, 1)


@settings(max_examples=60)
@given(
    table=st.lists(st.sampled_from([True, False, None]), min_size=60, max_size=60),
    texts=st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=5, max_size=5),
    rules=st.sampled_from([PAPER, DEFAULT, replace(DEFAULT, approval=0.5, alpha=4), replace(DEFAULT, supplement=True)]),
    first=st.sampled_from([*MODELS, "stranger"]),
)
def test_what_holds_whatever_the_models_do(
    table: list[bool | None], texts: list[str], rules: Rules, first: str
) -> None:
    def votes(voter: str, hop: int) -> bool | None:
        return table["abc".index(texts[hop]) * 20 + MODELS.index(voter)]

    def answers(author: str, hop: int) -> Response | None:
        return Response(texts[hop], fault="unfit" if texts[hop] == "c" else "") if texts[hop] else None

    ended = run(rules, votes, (first,), answers=answers, draw=dice(first))
    for hop in ended.hops:
        assert hop.author not in [ballot.voter for ballot in hop.ballots]
        assert len({ballot.voter for ballot in hop.ballots}) == len(hop.ballots)
        assert not (hop.response.fault and hop.ballots)
    authors = [hop.author for hop in ended.hops]
    assert rules.revisits or len(set(authors)) == len(authors)
    if ended.status == "converged" and (rules.ladder or ended.hops[-1].ballots):
        hop = ended.hops[ended.chosen]
        assert len(hop.approvers) >= rules.approval * (len(hop.approvers) + len(hop.disapprovers)) - 1e-9
        assert hop.approvers
        assert ended.agreed
    else:
        assert not ended.agreed
    if ended.chosen >= 0 and any(not hop.response.fault for hop in ended.hops):
        assert not ended.hops[ended.chosen].response.fault
