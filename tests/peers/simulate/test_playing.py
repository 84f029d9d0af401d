"""Chains played on recorded answers: the router's rules, each course kept or played anew, both ends of the bracket."""

from collections import Counter
from collections.abc import Callable

import pytest
from tests.peers.simulate.tables import recorded
from tests.recorded import needs_recordings

from turnout.peers.graph.relations import Settings
from turnout.peers.simulate.playing import CallPrices, DrawnVoters, Played, Playing
from turnout.peers.simulate.recorded import Question, proxy_scores
from turnout.peers.simulate.splits import Split
from turnout.routing.collaboration.chain import DEFAULT, PAPER, Rules
from turnout.routing.collaboration.electorate import Electorate

POOL = ("a", "b", "c", "d")
ELECTORATE = Electorate(
    POOL, {"a": 8, "b": 7, "c": 5, "d": 4}, ("a", "b"), {"a": ("b",), "b": ("a",), "c": ("a", "b"), "d": ()}
)
PRICES = CallPrices((4.0, 2.0, 1.0, 1.0), 0.5)


def question(answers: str, gold: str = "x", name: str = "q") -> Question:
    """A question to which the four models gave these letters."""
    seen = sorted(set(answers + gold))
    marks = tuple(seen.index(letter) for letter in answers)
    return Question(name, "", marks, tuple(float(letter == gold) for letter in answers), proxy_scores(marks))


def played(rules: Rules, asked: Question, first: str, *, optimistic: bool = False) -> Played:
    playing = Playing(rules, POOL, lambda _: ELECTORATE, PRICES, optimistic=optimistic, shared=True)
    return playing.play(asked, POOL.index(first), 1)


def test_who_agrees_with_all_voters_is_kept() -> None:
    for rules in (PAPER, DEFAULT):
        assert played(rules, question("xxxy"), "c") == Played(1.0, 1, 2, 1.0 + 0.5 * 6, agreed=True)


def test_who_improves_comes_back_with_its_own_answer_or_with_the_better_one() -> None:
    one = Rules(alpha=1, final_vote=False, exit="last")
    assert played(one, question("yyxy"), "c").value == 0.0
    assert played(one, question("yyxy"), "c", optimistic=True).value == 1.0
    assert played(one, question("xxyy"), "c").value == 1.0
    assert played(one, question("xxyy"), "c", optimistic=True).value == 1.0
    assert played(one, question("yyyx"), "c").value == 0.0


def test_without_voters_the_published_rules_keep_an_answer_and_ours_ask_others() -> None:
    assert played(PAPER, question("xxxy"), "d") == Played(0.0, 1, 0, 1.0, unseen=True)
    ours = played(DEFAULT, question("xxxy"), "d")
    assert (ours.value, ours.generations, ours.agreed, ours.unseen) == (1.0, 2, True, True)


def test_mutual_disapproval() -> None:
    """a and b disagree for ever: the published rules go to and fro, ours stop and keep the better scored."""
    assert played(PAPER, question("xyzz"), "a").generations == 4
    assert played(PAPER, question("xyzz"), "a").value == 0.0
    ours = played(DEFAULT, question("xyzz"), "a")
    assert (ours.generations, ours.value, ours.agreed) == (2, 1.0, False)


def test_a_text_that_comes_back_is_not_voted_on_again() -> None:
    """a's answer is asked about once, although it is written twice."""
    assert played(PAPER, question("xyzz"), "a").votes == 2


@needs_recordings
@pytest.mark.parametrize("name", ["gsm8k", "mmlu_pro"])
def test_kept_courses_are_those_of_the_chain(name: str) -> None:
    table = recorded(name, 80)
    prices = CallPrices(tuple(float(1 + at) for at in range(len(table.models))))
    split = Split(table, prices, 3)
    electorate = split.electorate(Settings())
    rules = [
        Rules(alpha=alpha, picker=picker, revisits=revisits, exit=way, ladder=not revisits)  # type: ignore[arg-type]
        for alpha, picker, revisits, way in (
            (3, "random", True, "last"),
            (3, "random", False, "best_supported"),
            (2, "max_received", True, "best_supported"),
            (5, "weighted", False, "last"),
            (3, "cheapest", False, "best_supported"),
        )
    ]
    courses: Counter[int] = Counter()
    for one in rules:
        for optimistic in (False, True):

            def playing(shared: bool, one: Rules = one, optimistic: bool = optimistic) -> Playing:
                return Playing(one, table.models, lambda _: electorate, prices, optimistic=optimistic, shared=shared)

            kept, anew = playing(True), playing(False)
            for seed in (1, 2):
                for first in (0, 5):
                    for asked in table.questions:
                        expected = anew.play(asked, first, seed)
                        assert kept.play(asked, first, seed) == expected
                        courses[expected.generations] += 1
    assert len(courses) >= 4


def test_drawn_voters_are_as_many_as_the_graph_names_and_never_the_author() -> None:
    seen: Counter[str] = Counter()
    for at in range(600):
        drawn = DrawnVoters(ELECTORATE, PAPER, f"q{at}", 1)
        for author in POOL:
            assert len(drawn[author]) == len(set(drawn[author])) == len(ELECTORATE.voters[author])
            assert author not in drawn[author]
        seen.update(drawn["a"])
        assert drawn["c"] == DrawnVoters(ELECTORATE, PAPER, f"q{at}", 1)["c"]
    assert set(seen) == {"b", "c", "d"}
    assert min(seen.values()) > 150  # of 200 expected, drawn evenly
    assert len(DrawnVoters(ELECTORATE, DEFAULT, "q", 1)["d"]) == 2  # those the ladder would ask


def test_other_draws_take_other_courses() -> None:
    asked: Callable[[int], Question] = lambda at: question("xyzz", name=f"q{at}")  # noqa: E731
    found = {played(Rules(alpha=1, exit="last"), asked(at), "c").value for at in range(20)}
    assert found == {0.0, 1.0}
