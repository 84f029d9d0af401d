"""Published question formats, each by a hand-made row, and files that are not what they should be."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recorded import needs_recordings, shared

from turnout.errors import ClientError
from turnout.knowledge.passage import Passage
from turnout.train.data import Step, questions_of, read_questions
from turnout.train.data.formats import FORMATS, BadRow, detected

HOTPOT: dict[str, Any] = {
    "_id": "h1",
    "type": "bridge",
    "question": "Where is the Lamp House?",
    "answer": "Ostby",
    "supporting_facts": [["Lamp House", 0], ["Ostby", 1], ["Lamp House", 1]],
    "context": [
        ["Lamp House", ["It is white.", " It stands in Ostby."]],
        ["Ostby", ["A town.", "By the sea."]],
        ["X", ["No."]],
    ],
}
MUSIQUE: dict[str, Any] = {
    "id": "m1",
    "paragraphs": [
        {"idx": 0, "title": "A", "paragraph_text": "a text", "is_supporting": False},
        {"idx": 1, "title": "B", "paragraph_text": "b text", "is_supporting": True},
    ],
    "question": "Who?",
    "question_decomposition": [{"id": 7, "question": "B >> author", "answer": "Z", "paragraph_support_idx": 1}],
    "answer": "Z",
    "answer_aliases": ["Zed", "Z"],
    "answerable": True,
}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def test_hotpotqa_as_published_and_with_hub_columns(tmp_path: Path) -> None:
    read = read_questions(written(tmp_path, "h.json", json.dumps([HOTPOT])))
    assert read.format == "hotpotqa"
    question = read.questions[0]
    assert [passage.title for passage in question.gold_passages] == ["Lamp House", "Ostby"]
    assert question.gold_passages[1].text == "A town. By the sea."
    assert (question.hops, question.gold_complete, len(question.context)) == (2, True, 3)
    hub = {
        **HOTPOT,
        "id": "h1",
        "supporting_facts": {"title": ["Lamp House", "Ostby", "Lamp House"], "sent_id": [0, 1, 1]},
        "context": {"title": [t for t, _ in HOTPOT["context"]], "sentences": [s for _, s in HOTPOT["context"]]},
    }
    del hub["_id"]
    assert read_questions(written(tmp_path, "hub.jsonl.gz", json.dumps(hub))).questions == (question,)


def test_2wiki_has_facts_and_says_when_gold_is_missing(tmp_path: Path) -> None:
    row = {**HOTPOT, "evidences": [["Lamp House", "place", "Ostby"]], "context": HOTPOT["context"][:1]}
    question = read_questions(written(tmp_path, "w.json", json.dumps([row]))).questions[0]
    assert (question.dataset, question.facts) == ("2wikimultihopqa", (("Lamp House", "place", "Ostby"),))
    assert (question.gold_complete, len(question.gold_passages)) == (False, 1)


def test_musique_points_from_steps_to_passages(tmp_path: Path) -> None:
    unanswerable = {**MUSIQUE, "id": "m2", "answerable": False}
    read = read_questions(written(tmp_path, "m.jsonl", f"{json.dumps(MUSIQUE)}\n{json.dumps(unanswerable)}\n"))
    question = read.questions[0]
    assert question.answers == ("Z", "Zed")
    assert question.gold_passages == (Passage("m1-1", "B", "b text"),)
    assert question.steps == (Step("B >> author", "Z", "m1-1"),)
    assert read.skipped == {"marked as unanswerable": 1}
    assert read.problems == ("m.jsonl, line 2: marked as unanswerable",)


def test_nq_in_three_forms(tmp_path: Path) -> None:
    simplified = {
        "example_id": 5,
        "question_text": "who",
        "document_title": "T",
        "document_text": "x <P> It was Ada . </P> y",
        "annotations": [
            {
                "long_answer": {"start_token": 1, "end_token": 7},
                "short_answers": [{"start_token": 4, "end_token": 5}],
                "yes_no_answer": "NONE",
            }
        ],
    }
    question = read_questions(written(tmp_path, "s.jsonl", json.dumps(simplified))).questions[0]
    assert (question.id, question.answers, question.gold_passages[0].text) == ("5", ("Ada",), "It was Ada .")
    dpr = {
        "question": "who",
        "answers": ["Ada"],
        "positive_ctxs": [{"title": "T", "text": "It was Ada."}, {"text": "no"}],
    }
    question = read_questions(written(tmp_path, "d.json", json.dumps([dpr]))).questions[0]
    assert (question.id, [p.text for p in question.gold_passages]) == ("d-0", ["It was Ada."])
    plain = read_questions(
        written(tmp_path, "o.jsonl", json.dumps({"question": "who", "answer": ["Ada", "A"]}))
    ).questions[0]
    assert (plain.dataset, plain.answers, plain.gold_complete) == ("nq", ("Ada", "A"), False)


def test_popqa_triviaqa_and_graph_r1(tmp_path: Path) -> None:
    tsv = 'id\tsubj\tprop\tobj\tquestion\tpossible_answers\n4\tX\tcapital\tY\tCapital of X?\t["Y", "Why"]\n'
    question = read_questions(written(tmp_path, "p.tsv", tsv)).questions[0]
    assert (question.id, question.answers, question.facts) == ("4", ("Y", "Why"), (("X", "capital", "Y"),))
    trivia = {
        "Data": [{"Question": "Q?", "QuestionId": "t1", "Answer": {"Value": "V", "Aliases": ["W"]}}],
        "Domain": "Web",
    }
    for indent in (None, 2):
        found = read_questions(written(tmp_path, f"t{indent}.json", json.dumps(trivia, indent=indent)))
        assert found.questions[0].answers == ("V", "W")
    r1 = {"question": "Q?", "golden_answers": ["V"], "context": ["Gold text."]}
    question = read_questions(written(tmp_path, "qa_train.json", json.dumps([r1]))).questions[0]
    assert (question.answers, question.gold_passages[0].text) == (("V",), "Gold text.")


def test_our_own_form_comes_back_as_it_was_written(tmp_path: Path) -> None:
    question = read_questions(written(tmp_path, "h.json", json.dumps([HOTPOT]))).questions[0]
    path = written(tmp_path, "own.jsonl", msgspec.json.encode(question).decode())
    assert read_questions(path).questions == (question,)


def test_bad_rows_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    rows = [
        json.dumps(HOTPOT),
        '{"cut": ',
        "[1]",
        json.dumps({**HOTPOT, "_id": "h2", "answer": ""}),
        json.dumps(HOTPOT),
    ]
    read = read_questions(written(tmp_path, "x.jsonl", "\n".join(rows)))
    assert len(read.questions) == 1
    assert sum(read.skipped.values()) == 4
    assert read.problems[0].startswith("x.jsonl, line 2: ")
    assert read.problems[-1] == "x.jsonl, line 5: the id was used before"


@pytest.mark.parametrize("text", ["", "[]", "{", "[{]", '{"a": 1}', "\n\n"])
def test_a_file_without_questions_is_an_error_that_says_what_was_found(tmp_path: Path, text: str) -> None:
    with pytest.raises(ClientError, match=r"no question could be read from .*Known formats: hotpotqa"):
        read_questions(written(tmp_path, "x.json", text))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["", "t", "a b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["title", "text", "Value"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize(
    "sound", [HOTPOT, {**HOTPOT, "evidences": [["a", "b", "c"]]}, MUSIQUE], ids=["hotpot", "2wiki", "musique"]
)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_damaged_row_is_read_or_refused(sound: dict[str, Any], data: st.DataObject) -> None:
    row = {**sound, data.draw(st.sampled_from(sorted(sound))): data.draw(VALUES)}
    for name in (detected(sound), "nq", "popqa", "graph_r1", "turnout"):
        with suppress(BadRow):
            assert FORMATS[name](row, "x").answers


@needs_recordings
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("raw/hotpotqa_sample.json", 3),
        ("raw/musique_sample.jsonl", 3),
        ("raw/2wikimultihopqa_sample.json", 3),
        ("hotpotqa_train100.jsonl.gz", 100),
        ("musique_train100.jsonl.gz", 100),
    ],
)
def test_recorded_question_sets_are_read_whole(name: str, rows: int) -> None:
    folder = shared()
    assert folder is not None
    read = read_questions(folder / "data" / "qa" / name)
    assert (len(read.questions), read.skipped) == (rows, {})
    assert all(question.gold_complete and len(question.gold_passages) >= 2 for question in read.questions)


def test_a_data_set_of_the_hub_is_read_by_its_columns(tmp_path: Path) -> None:
    """A folder stands for one that was downloaded: the library reads both alike."""
    pytest.importorskip("datasets", reason="needs the extra `train`")
    rows = [{"question": f"who {i}", "golden_answers": ["Ada"], "context": ["It was Ada."]} for i in range(5)]
    written(tmp_path, "train.jsonl", "\n".join(map(json.dumps, rows)))
    read = questions_of(f"hub:{tmp_path}", limit=3)
    assert (read.format, [question.question for question in read.questions]) == (
        "graph_r1",
        ["who 0", "who 1", "who 2"],
    )
    assert questions_of(f"hub:{tmp_path}:default:train").questions[4].answers == ("Ada",)
    with pytest.raises(ClientError, match="could not be had from the hub"):
        questions_of(f"hub:{tmp_path / 'nothing'}")
    with pytest.raises(ClientError, match=r"not hub:NAME"):
        questions_of("hub:a:b:c:d")
