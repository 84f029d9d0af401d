"""Categories, C and C', and who looks at whose answers, from scores."""

import json
import random
from itertools import pairwise

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.worked import EXPECTED, WORKED
from tests.recorded import needs_recordings, shared

from turnout.peers.graph.relations import Settings, categories, percentile, relate

MODELS = tuple(WORKED["models"])
LETTERS = ("a", "b", "c", "d", "e", "f")


@pytest.mark.parametrize("d2", EXPECTED["by_d2"])
def test_the_worked_example(d2: str) -> None:
    found = relate(MODELS, WORKED["scores"], Settings(50, float(d2)))
    assert found.given == EXPECTED["given"]
    assert found.received == EXPECTED["received"]
    assert found.category == EXPECTED["cells"]
    assert list(found.anchors) == EXPECTED["C"]
    assert list(found.idiosyncratic) == EXPECTED["C_prime"]
    for author, expected in EXPECTED["by_d2"][d2]["targets"].items():
        assert list(found.voters[author]) == expected["C_i"], author
        assert list(found.others[author]) == expected["C_prime_i"], author
    assert found.flags == ()


@needs_recordings
@pytest.mark.parametrize("at", range(3))
def test_peer_ranks_published_tables(at: int) -> None:
    folder = shared()
    assert folder
    run = json.loads((folder / "data/peers/peerrank_scores.json").read_bytes())["runs"][at]
    given = {model: row["mean"] for model, row in run["given"].items()}
    received = {model: row["mean"] for model, row in run["received"].items()}
    cells = categories(given, received, 50)
    assert cells == {model: cell for cell, members in run["expected"]["cells"].items() for model in members}
    assert sorted(m for m, cell in cells.items() if cell == "LH") == sorted(run["expected"]["C"])
    assert sorted(m for m, cell in cells.items() if cell == "LL") == sorted(run["expected"]["C_prime"])


def test_below_50_what_lies_between_the_percentiles_is_the_fifth_cell() -> None:
    given = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}
    received = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.0}
    assert categories(given, received, 25) == {"a": "LH", "b": "LH", "c": "MID", "d": "HL", "e": "HL"}
    assert categories(given, received, 0) == {"a": "LH", "b": "MID", "c": "MID", "d": "MID", "e": "HL"}
    assert categories(given, received, 50) == {"a": "LH", "b": "LH", "c": "LH", "d": "HL", "e": "HL"}
    assert categories(given, received, 75)["d"] == "LH"
    # In the middle on one axis is enough.
    assert categories(given, {**received, "a": 2.5, "c": 5.0}, 25)["a"] == "MID"


def test_equal_scores_put_every_model_into_c_and_say_so() -> None:
    found = relate(LETTERS, {j: dict.fromkeys(LETTERS, 0.1 + 0.2) for j in LETTERS}, Settings())
    assert found.anchors == LETTERS
    assert found.voters["a"] == LETTERS[1:]
    assert found.flags == ("degenerate",)


def test_what_is_missing_is_in_no_mean_and_on_no_edge() -> None:
    scores = {"a": {"b": 4, "c": None, "d": 2}, "b": {"a": 9, "c": 8}, "c": {"a": 8, "b": 6}}
    found = relate(("a", "b", "c", "d", "e"), scores, Settings())
    assert found.given == {"a": 3.0, "b": 8.5, "c": 7.0, "d": None, "e": None}
    assert found.received == {"a": 8.5, "b": 5.0, "c": 8.0, "d": 2.0, "e": None}
    assert found.category == {"a": "LH", "b": "HL", "c": "LH", "d": None, "e": None}
    assert found.voters == {"a": ("c",), "b": ("a",), "c": (), "d": ("a",), "e": ("a", "c")}
    assert found.flags == ("missing_scores", "unclassified")


def test_what_a_model_scores_itself_is_left_out() -> None:
    scores = {
        j: {i: 10.0 if i == j else float(row) for i, row in WORKED["scores"][j].items()} | {j: 10.0} for j in MODELS
    }
    assert relate(MODELS, scores, Settings()) == relate(MODELS, WORKED["scores"], Settings())


def test_of_two_models_there_is_no_graph() -> None:
    with pytest.raises(ValueError, match="at least 3 models, got 2"):
        relate(("a", "b"), {}, Settings())


@pytest.mark.parametrize("settings", [(-1, 50), (50, 101)])
def test_percentiles_lie_between_0_and_100(settings: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be from 0 to 100"):
        Settings(*settings)


def test_judge_centred_edges_do_not_make_a_strict_judge_look_at_everybody() -> None:
    scores = {  # a is strict with all, and likes c best
        "a": {"b": 3.0, "c": 5.0, "d": 1.0},
        "b": {"a": 9.0, "c": 7.0, "d": 6.0},
        "c": {"a": 9.0, "b": 8.0, "d": 7.0},
        "d": {"a": 9.0, "b": 6.0, "c": 8.0},
    }
    raw = relate(LETTERS[:4], scores, Settings(50, 34))
    centred = relate(LETTERS[:4], scores, Settings(50, 34, "judge_centered"))
    assert raw.category == centred.category
    assert "a" in raw.voters["c"]
    assert "a" not in centred.voters["c"]
    assert "a" in centred.voters["d"]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=9), st.floats(0, 100))
def test_a_percentile_lies_where_numpy_puts_it(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(float(numpy.percentile(values, percent)), abs=1e-6)


whole = st.integers(1, 10)
matrices = st.integers(3, 6).flatmap(
    lambda n: st.lists(st.lists(st.none() | whole | whole, min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(matrices, st.sampled_from([10, 25, 50, 70]), st.sampled_from(["raw", "judge_centered"]), st.randoms())
def test_laws(rows: list[list[int | None]], d1: int, edge: str, dice: random.Random) -> None:
    models = LETTERS[: len(rows)]
    scores = {j: dict(zip(models, row, strict=True)) for j, row in zip(models, rows, strict=True)}
    by_d2 = [relate(models, scores, Settings(d1, d2, edge)) for d2 in (10, 25, 50, 75, 100)]  # type: ignore[arg-type]
    for found in by_d2:
        assert not set(found.anchors) & set(found.idiosyncratic)
        for author in models:
            assert set(found.voters[author]) <= set(found.anchors) - {author}
            assert set(found.others[author]) <= set(found.idiosyncratic) - {author}
    # More of an author's scores are low: nobody stops looking at its answers.
    for less, more in pairwise(by_d2):
        assert all(set(less.voters[m]) <= set(more.voters[m]) for m in models)
    # Neither the order of the models nor the unit of the scores matters.
    shuffled = dice.sample(models, len(models))
    again = relate(shuffled, {j: {i: None if v is None else v * 8.0 for i, v in row.items()} for j, row in scores.items()},
                   Settings(d1, 50, edge))  # type: ignore[arg-type]  # fmt: skip
    assert again.category == by_d2[2].category
    assert {m: set(v) for m, v in again.voters.items()} == {m: set(v) for m, v in by_d2[2].voters.items()}
    # Somebody gives little.
    if d1 >= 50 and all(by_d2[0].category.values()):
        assert {cell for cell in by_d2[0].category.values() if cell} & {"LH", "LL"}
