"""What a judge wrote, as records keep it."""

import json

import pytest

from turnout.conversation import Reply, Text
from turnout.routing.classifier.capability import QUESTION
from turnout.routing.judging import Unanswered, kept, read

SECRET = "sk-ant-api03-0123456789abcdef"


def test_secrets_are_taken_out_wherever_they_stand() -> None:
    said = {"reason": f"it printed {SECRET}", SECRET: 1, "steps": [{"a": f"Bearer {SECRET}"}]}
    assert SECRET not in json.dumps(kept(said))
    assert kept(f"it printed {SECRET} twice") == "it printed [secret] twice"


def test_it_is_small_whatever_the_judge_wrote() -> None:
    deep: dict[str, object] = {}
    for _ in range(500):
        deep = {"a": deep}
    said = {"text": "x" * 3_000_000, "list": list(range(100_000)), "deep": deep, **{f"k{i}": i for i in range(1000)}}
    assert len(json.dumps(kept(said))) < 2_000
    assert kept("x" * 501) == "x" * 500


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "a word", [], {}, {"a": [1, {"b": None}]}])
def test_what_is_small_stays_as_it_is(value: object) -> None:
    assert kept(value) == value


def test_an_answer_that_does_not_fit_is_told_without_its_words() -> None:
    said = {"crux": "c", "primary_rule": SECRET, "capability_boundary": "supported", "p_solve": 0.5}
    found = read(Reply((Text(json.dumps(said)),), "stop"), QUESTION)
    assert isinstance(found, Unanswered)
    assert SECRET not in found.message
    assert "$.primary_rule" in found.message
