"""Reading recorded answers and verdicts: who says the same, what that is worth, what voters say, what scores follow."""

from pathlib import Path
from typing import Any

import pytest
from tests.peers.simulate.tables import MODELS, rows, written
from tests.recorded import needs_recordings, shared

from turnout.errors import ConfigError
from turnout.peers.simulate.recorded import proxy_scores, read


def test_answers(tmp_path: Path) -> None:
    line = {
        "question_id": 7,
        "gold": "B",
        "category": "law",
        "answers": {"a": "B", "b": None, "c": "C", "d": None, "e": "B"},
    }
    table = read(written(tmp_path, [line], "answers.jsonl.gz"))
    question = table.questions[0]
    assert (table.kind, table.models, question.id, question.category) == ("answers", tuple("abcde"), "7", "law")
    assert question.values == (1.0, 0.0, 0.0, 0.0, 1.0)
    assert question.vote(0, 4) is True
    assert question.vote(0, 2) is False
    assert question.vote(1, 3) is False  # two that could not be read agree on nothing
    assert not table.has_samples


def test_scores_without_labels_are_directional() -> None:
    # Two agree, one is alone, one could not be read.
    scores = proxy_scores((0, 0, 1, -4))
    assert scores[0] == (None, 10.0, pytest.approx(10 * 2 / 3), pytest.approx(10 * 2 / 3))
    assert scores[2] == (10.0, 10.0, None, 10.0)
    assert scores[3] == (None,) * 4


def test_a_gold_answer_nobody_gave_and_one_that_is_missing(tmp_path: Path) -> None:
    lines = [{"question_id": at, "gold": gold, "answers": {"a": "1", "b": "2"}} for at, gold in enumerate(["9", None])]
    table = read(written(tmp_path, lines))
    assert [q.values for q in table.questions] == [(0.0, 0.0)]
    assert table.skipped == {"questions without a gold answer": 1}


def test_models_are_chosen_and_stand_in_the_order_they_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, rows(5))
    table = read(path, ["odd", "large", "small"])
    assert table.models == ("odd", "large", "small")
    assert read(path).models == MODELS
    whole = {q.id: dict(zip(MODELS, q.values, strict=True)) for q in read(path).questions}
    for question in table.questions:
        assert question.values == tuple(whole[question.id][model] for model in table.models)


def test_samples(tmp_path: Path) -> None:
    line = {
        "question_id": 1,
        "gold": "B",
        "answers": dict.fromkeys("abc", "A"),
        "samples": {m: ["B", "A", "B"] for m in "abc"},
    }
    question = read(written(tmp_path, [line])).questions[0]
    assert question.samples[0] == ((0, 1.0), (1, 0.0), (0, 1.0))


def verdict(judge: str, first: str, second: str, score: int) -> dict[str, Any]:
    return {"question_id": 1, "judge": judge, "first": first, "second": second, "score": score}


def test_verdicts(tmp_path: Path) -> None:
    lines = [verdict("human", "a", "b", 1), verdict("human", "a", "b", 3), verdict("human", "c", "a", 1)]
    lines += [verdict("human", "b", "c", 2), verdict("a", "a", "b", 1), verdict("a", "b", "a", 1)]
    lines += [
        verdict("a", "a", "c", 1),
        verdict("a", "c", "a", 2),
        verdict("b", "c", "a", 2),
        verdict("zz", "a", "b", 1),
    ]
    table = read(written(tmp_path, lines), ["a", "b", "c"])
    question = table.questions[0]
    # a won 3/4 against b and nothing against c; c won everything.
    assert question.values == (0.375, 0.125, 1.0)
    assert question.vote(0, 1) is True  # once for its own, once against: on balance for neither
    assert question.vote(0, 2) is False
    assert question.vote(1, 2) is None  # it never compared its own with c's
    assert question.scores[0] == (None, 5.0, 0.0)
    assert question.scores[1] == (10.0, None, 0.0)
    assert table.skipped == {"verdicts by or on other models": 1}


@needs_recordings
def test_prd_has_every_verdict() -> None:
    folder = shared()
    assert folder
    table = read(folder / "data" / "peers" / "prd_vicuna80.jsonl.gz")
    assert (table.kind, len(table.models), len(table.questions), table.skipped) == ("verdicts", 5, 39, {})
    for question in table.questions:
        assert None not in {vote for row in question.approves for vote in row}
        assert sum(question.values) == pytest.approx(2.5)  # whatever is won is lost


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "there is no row"),
        ([{"question_id": 1}], "line 1: not a row: expected `answers`, or `judge`"),
        ([verdict("a", "b", "c", 4)], "not a row: expected `answers`"),
        ([{"question_id": 1, "gold": "A", "answers": [1]}], "Expected `object | null`, got `array`"),
        ([{"question_id": 1, "gold": "A", "answers": {"a": "A"}}, verdict("a", "b", "c", 1)], "do not go together"),
        ([{"question_id": 1, "gold": "A", "answers": {"a": "A"}}] * 2, "question 1 is there twice"),
    ],
)
def test_what_is_wrong_is_said(lines: list[dict[str, Any]], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(written(tmp_path, lines))
    assert said.removeprefix("line 1: ") in str(raised.value)


def test_a_model_nobody_knows_and_a_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no row knows the model 'x'; there are: large, middle"):
        read(written(tmp_path, rows(3)), ["large", "x"])
    with pytest.raises(ConfigError, match="a model is named twice"):
        read(written(tmp_path, rows(3)), ["large", "large"])
    damaged = tmp_path / "cut.jsonl.gz"
    damaged.write_bytes(written(tmp_path, rows(50), "whole.jsonl.gz").read_bytes()[:-20])
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        read(damaged)
