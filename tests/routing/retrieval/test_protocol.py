"""What a turn of the retrieval agent says, and which stretch of it is what."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.routing.retrieval.facts import Fact
from turnout.routing.retrieval.protocol import (
    Move,
    Role,
    closed,
    gold_instructions,
    instructions,
    read_move,
    spans,
    write_knowledge,
)


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ('<think>a</think><query>{"query": "who"}</query>', Move("query", "who", True)),
        ("<think>a</think>\n<query>who</query>\n", Move("query", "who", True)),
        ("<think>a</think><answer> Oslo </answer>", Move("answer", "Oslo", True)),
        # A stop sequence takes the closing tag away.
        ("<think>a</think><query>who", Move("query", "who", True)),
        ("<query>who</query>", Move("query", "who", False)),
        ("<think>a<answer>x</answer></think><query>who</query>", Move("query", "who", False)),
        ("<think>a</think><query>who</query><answer>me</answer>", Move("query", "who", False)),
        ("<think>a</think><query>{}</query>", Move("none", "", False)),
        ("<think>a</think><query></query>", Move("none", "", False)),
        ("<think>a</think><answer></answer>", Move("answer", "", False)),
        ("Oslo, I think.", Move("none", "", False)),
        ("", Move("none", "", False)),
        ('<think>a</think><query>{"query": </query>', Move("query", '{"query":', True)),
    ],
)
def test_moves(text: str, move: Move) -> None:
    assert read_move(text) == move


def test_what_is_cut_short_of_tokens_is_no_move() -> None:
    assert read_move("<think>a</think><query>who", cut=True) == Move("none", "", False)
    assert read_move("<think>a</think><query>who</query>", cut=True) == Move("query", "who", True)


def test_knowledge_is_shown_as_json() -> None:
    shown = write_knowledge([Fact("f1", 'A "b" of C.', 0.61234)])
    assert json.loads(shown.removeprefix("<knowledge>").removesuffix("</knowledge>")) == [
        {"knowledge": 'A "b" of C.', "score": 0.612}
    ]
    assert write_knowledge([Fact("f1", "one"), Fact("f2", "two")], "lines") == "<knowledge>\none\ntwo\n</knowledge>"


def test_the_teacher_sees_the_students_prompt_and_the_evidence() -> None:
    asked, taught = instructions("Who?"), gold_instructions("Who?", ["B is C.", "C is D."])
    assert asked.endswith("Question: Who?")
    assert "- B is C.\n- C is D." in taught
    assert taught.startswith(asked.removesuffix("\nQuestion: Who?"))


def test_spans_by_role() -> None:
    text = "so <think>a</think> <query>b</query><answer>c"
    assert [(text[start:end], role) for start, end, role in spans(text)] == [
        ("so ", Role.OTHER),
        ("<think>a</think>", Role.REASONING),
        (" ", Role.OTHER),
        ("<query>b</query>", Role.QUERY),
        ("<answer>c", Role.ANSWER),
    ]


TAGGED = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<query>", "</query>", "<answer>", "</answer>", "<knowledge>", "x", " ", "é"]
    ),
    max_size=12,
).map("".join)


@given(TAGGED)
def test_spans_cover_everything_once_and_reading_never_fails(text: str) -> None:
    found = spans(text)
    assert "".join(text[start:end] for start, end, _ in found) == text
    assert [start for start, _, _ in found] == [0, *(end for _, end, _ in found)][: len(found)]
    move = read_move(text)
    assert not (move.well_formed and move.action == "none")
    assert closed(closed(text)) == closed(text)
