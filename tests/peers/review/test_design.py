"""Who scores whom: everybody, or evenly fewer."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.peers.review.pool import asked, questions

from turnout.peers.review.design import cells, order


@given(st.integers(1, 20), st.integers(3, 8))
def test_a_full_design_has_every_pair_on_every_question(count: int, models: int) -> None:
    found = list(cells(questions(count), models))
    assert len(found) == len(set(found)) == count * models * (models - 1)
    assert all(cell.judge != cell.author for cell in found)


@given(st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=40), st.integers(3, 9), st.data())
def test_fewer_judges_are_dealt_evenly(kinds: list[str], models: int, data: st.DataObject) -> None:
    judges = data.draw(st.integers(1, models - 2))
    asked_of = tuple(asked(f"q{i}", f"text {i}", kind) for i, kind in enumerate(kinds))
    found = list(cells(asked_of, models, judges))
    assert len(found) == len(set(found))
    for question, kind in enumerate(kinds):
        here = [cell for cell in found if cell.question == question]
        assert set(Counter(cell.author for cell in here).values()) == {judges}
        assert set(Counter(cell.judge for cell in here).values()) == {judges}
        of_kind = Counter((c.judge, c.author) for c in found if kinds[c.question] == kind)
        pairs = [of_kind[j, a] for j in range(models) for a in range(models) if a != j]
        assert max(pairs) - min(pairs) <= 1
    assert all(cell.judge != cell.author for cell in found)


def test_scores_of_oneself_are_extra() -> None:
    plain, more = set(cells(questions(3), 4, 2)), set(cells(questions(3), 4, 2, self_scores=True))
    assert plain < more
    assert {(cell.judge, cell.author) for cell in more - plain} == {(i, i) for i in range(4)}


def test_the_order_of_questions_is_that_of_their_ids_alone() -> None:
    forth, back = questions(30), tuple(reversed(questions(30)))
    assert [forth[i].id for i in order(forth)] == [back[i].id for i in order(back)]
    assert order(forth) != list(range(30))
