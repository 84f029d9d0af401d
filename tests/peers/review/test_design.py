"""Who scores whom: everybody, or evenly fewer."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.peers.review.pool import questions

from turnout.peers.review.design import cells, dealt, order

NAMES = tuple("abcdefghi")


@given(st.integers(1, 20), st.integers(3, 8))
def test_a_full_design_has_every_pair_on_every_question(count: int, models: int) -> None:
    found = list(cells(questions(count), NAMES[:models]))
    assert len(found) == len(set(found)) == count * models * (models - 1)
    assert all(cell.judge != cell.author for cell in found)


@given(st.text(max_size=5), st.integers(3, 9), st.data())
def test_fewer_judges_are_dealt_evenly(question: str, models: int, data: st.DataObject) -> None:
    each = data.draw(st.integers(1, models - 2))
    judges = dealt(question, NAMES[:models], each)
    assert all(len(those) == each and author not in those for author, those in enumerate(judges))
    assert Counter(judge for those in judges for judge in those) == dict.fromkeys(range(models), each)


@given(st.text(max_size=5), st.integers(4, 9), st.data())
def test_one_model_more_changes_as_little_as_it_can(question: str, models: int, data: st.DataObject) -> None:
    each = data.draw(st.integers(1, models - 3))
    before, after = dealt(question, NAMES[: models - 1], each), dealt(question, NAMES[:models], each)
    gone = [(author, judge) for author, those in enumerate(before) for judge in those - after[author]]
    come = [(author, judge) for author, those in enumerate(before) for judge in after[author] - those]
    assert len(gone) == len(come) == each
    assert {judge for _, judge in come} == {models - 1}
    assert {judge for _, judge in gone} == after[models - 1]


def test_over_many_questions_all_pairs_meet_about_as_often() -> None:
    asked, each, models = questions(600), 3, 7
    met = Counter((cell.judge, cell.author) for cell in cells(asked, NAMES[:models], each))
    assert len(met) == models * (models - 1)
    # A pair meets on half of the questions: 300, with a standard deviation of 12 if it were by chance alone.
    assert all(245 < times < 355 for times in met.values())


def test_a_question_more_leaves_the_others_as_they_are() -> None:
    def by_id(count: int) -> dict[str, set[tuple[int, int]]]:
        asked, found = questions(count), {}
        for cell in cells(asked, NAMES[:6], 2):
            found.setdefault(asked[cell.question].id, set()).add((cell.judge, cell.author))
        return found

    few, more = by_id(10), by_id(13)
    assert few == {id: those for id, those in more.items() if id in few}


def test_scores_of_oneself_are_extra() -> None:
    plain = set(cells(questions(3), NAMES[:4], 2))
    more = set(cells(questions(3), NAMES[:4], 2, self_scores=True))
    assert plain < more
    assert {(cell.judge, cell.author) for cell in more - plain} == {(i, i) for i in range(4)}


def test_the_order_of_questions_is_that_of_their_ids_alone() -> None:
    forth, back = questions(30), tuple(reversed(questions(30)))
    assert [forth[i].id for i in order(forth)] == [back[i].id for i in order(back)]
    assert order(forth) != list(range(30))
