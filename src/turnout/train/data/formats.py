"""The published formats of question sets, a row at a time. Pure.

HotpotQA and 2WikiMultihopQA (JSON lists; also with the columns of their hub versions), MuSiQue (JSON Lines), NQ (simplified,
open and DPR forms), PopQA (TSV), TriviaQA (`Data`), Graph-R1's `qa_*.json`, and our own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from turnout.knowledge.passage import Passage
from turnout.train.data.question import Question, Step

FormatName: TypeAlias = Literal[
    "hotpotqa", "2wikimultihopqa", "musique", "nq", "popqa", "triviaqa", "graph_r1", "turnout"
]
Row: TypeAlias = Mapping[str, Any]


class BadRow(Exception):
    """A row that is not of its format; the text says why."""


def detected(row: Row) -> FormatName:
    """The format of a row, by its fields. Raises BadRow for none."""
    for name, signs in _SIGNS:
        if all(sign in row for sign in signs):
            return name
    raise BadRow(f"no known format has the fields {', '.join(sorted(map(str, row))[:8])}")


_SIGNS: tuple[tuple[FormatName, tuple[str, ...]], ...] = (
    ("turnout", ("dataset", "question", "gold_passages")),
    ("musique", ("question", "paragraphs", "answer")),
    ("2wikimultihopqa", ("question", "supporting_facts", "evidences")),
    ("hotpotqa", ("question", "supporting_facts", "context")),
    ("popqa", ("question", "possible_answers")),
    ("triviaqa", ("Question", "Answer")),
    ("nq", ("question_text", "annotations")),
    ("nq", ("question", "positive_ctxs")),
    ("graph_r1", ("question", "golden_answers")),
    ("nq", ("question", "answer")),
)


def _hotpotqa(row: Row, _: str) -> Question:
    return _supported(row, "hotpotqa")


def _2wiki(row: Row, _: str) -> Question:
    return _supported(row, "2wikimultihopqa")


def _supported(row: Row, dataset: str) -> Question:
    """HotpotQA's layout: titled lists of sentences, some of them named as supporting."""
    name = _text(row, "_id" if "_id" in row else "id")
    context: dict[str, Passage] = {}
    for title, sentences in _pairs(row.get("context"), "title", "sentences"):
        if not isinstance(title, str) or not isinstance(sentences, Sequence):
            raise BadRow("`context` is not a list of [title, sentences]")
        text = "".join(_spaced([str(sentence) for sentence in sentences]))
        context.setdefault(title, Passage(f"{name}-{len(context)}", title, text))
    titles = [str(title) for title, _ in _pairs(row.get("supporting_facts"), "title", "sent_id")]
    gold = list(dict.fromkeys(titles))
    return Question(
        name,
        dataset,
        _text(row, "question"),
        _answers([row.get("answer")]),
        tuple(context[title] for title in gold if title in context),
        all(title in context for title in gold) and bool(gold),
        tuple(context.values()),
        len(gold) or None,
        str(row.get("type", "")),
        facts=_triples(row),
    )


def _pairs(value: Any, first: str, second: str) -> list[tuple[Any, Any]]:
    """[[a, b], ...], or the columns {first: [a, ...], second: [b, ...]} that hub versions have."""
    if isinstance(value, Mapping):
        firsts, seconds = value.get(first), value.get(second)
        if not isinstance(firsts, Sequence) or not isinstance(seconds, Sequence) or len(firsts) != len(seconds):
            raise BadRow(f"`{first}` and `{second}` are not lists of one length")
        return list(zip(firsts, seconds, strict=True))
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BadRow(f"no list of [{first}, {second}]")
    if any(not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 for pair in value):
        raise BadRow(f"not every entry is [{first}, {second}]")
    return [(pair[0], pair[1]) for pair in value]


def _spaced(sentences: list[str]) -> list[str]:
    """Sentences with one space between them; some files have it at their beginnings, some not at all."""
    return [sentence if i == 0 or sentence[:1].isspace() else f" {sentence}" for i, sentence in enumerate(sentences)]


def _musique(row: Row, _: str) -> Question:
    name = _text(row, "id")
    if row.get("answerable") is False:
        raise BadRow("marked as unanswerable")
    context: list[Passage] = []
    gold: list[Passage] = []
    by_index: dict[Any, str] = {}
    for paragraph in _list(row, "paragraphs"):
        if not isinstance(paragraph, Mapping):
            raise BadRow("a paragraph is not an object")
        passage = Passage(f"{name}-{len(context)}", _text(paragraph, "title"), _text(paragraph, "paragraph_text"))
        by_index[_index(paragraph.get("idx", len(context)))] = passage.id
        context.append(passage)
        if paragraph.get("is_supporting"):
            gold.append(passage)
    steps = tuple(
        Step(
            _text(step, "question"),
            str(step.get("answer", "")),
            by_index.get(_index(step.get("paragraph_support_idx"))),
        )
        for step in _objects(row, "question_decomposition")
    )
    answers = _answers([row.get("answer"), *_listed(row.get("answer_aliases"))])
    question = _text(row, "question")
    return Question(
        name,
        "musique",
        question,
        answers,
        tuple(gold),
        bool(gold),
        tuple(context),
        len(steps) or len(gold) or None,
        "",
        steps,
    )


def _nq(row: Row, fallback: str) -> Question:
    if "annotations" in row:
        return _nq_simplified(row)
    answers = row.get("answers", row.get("answer"))
    listed = [answers] if isinstance(answers, str) else answers
    contexts = row.get("positive_ctxs") or ()
    name = str(row.get("id", fallback))
    gold = tuple(
        Passage(f"{name}-{i}", str(passage.get("title", "")), _text(passage, "text"))
        for i, passage in enumerate(contexts[:1])
    )
    return Question(name, "nq", _text(row, "question"), _answers(listed), gold, bool(gold), gold, 1)


def _nq_simplified(row: Row) -> Question:
    """NQ's own form: answers and the passage are spans of tokens of the page."""
    name = str(row.get("example_id", ""))
    words = _text(row, "document_text").split(" ")
    annotation = next(iter(_objects(row, "annotations")), None)
    if annotation is None:
        raise BadRow("no annotation")
    answers = [_span(words, span) for span in _objects(annotation, "short_answers")]
    if not answers and str(annotation.get("yes_no_answer", "NONE")) in ("YES", "NO"):
        answers = [str(annotation["yes_no_answer"]).lower()]
    long = annotation.get("long_answer")
    text = _span(words, long) if isinstance(long, Mapping) else ""
    gold = (Passage(f"{name}-0", str(row.get("document_title", "")), text),) if text else ()
    return Question(name, "nq", _text(row, "question_text"), _answers(answers), gold, bool(gold), gold, 1)


def _span(words: list[str], span: Mapping[str, Any]) -> str:
    start, end = span.get("start_token", -1), span.get("end_token", -1)
    if not isinstance(start, int) or not isinstance(end, int) or start < 0:
        return ""
    return " ".join(word for word in words[start:end] if not (word.startswith("<") and word.endswith(">")))


def _popqa(row: Row, fallback: str) -> Question:
    answers = row.get("possible_answers")
    if isinstance(answers, str):  # the TSV holds a JSON list
        try:
            answers = msgspec.json.decode(answers)
        except msgspec.DecodeError:
            raise BadRow("`possible_answers` is not a JSON list") from None
    facts: tuple[tuple[str, str, str], ...] = ()
    if all(isinstance(row.get(key), str) for key in ("subj", "prop", "obj")):
        facts = ((row["subj"], row["prop"], row["obj"]),)
    found = _answers(answers)
    question = _text(row, "question")
    return Question(str(row.get("id", fallback)), "popqa", question, found, (), False, hops=1, facts=facts)


def _triviaqa(row: Row, fallback: str) -> Question:
    answer = row["Answer"]
    if not isinstance(answer, Mapping):
        raise BadRow("`Answer` is not an object")
    answers = _answers([answer.get("Value"), *_listed(answer.get("Aliases"))])
    return Question(
        str(row.get("QuestionId", fallback)), "triviaqa", _text(row, "Question"), answers, (), False, hops=1
    )


def _graph_r1(row: Row, fallback: str) -> Question:
    name = str(row.get("id", fallback))
    context = row.get("context")
    listed = [context] if isinstance(context, str) else _listed(context)
    gold = tuple(Passage(f"{name}-{i}", "", text) for i, text in enumerate(listed) if isinstance(text, str))
    return Question(
        name,
        str(row.get("data_source", "graph_r1")),
        _text(row, "question"),
        _answers(_list(row, "golden_answers")),
        gold,
        bool(gold),
        gold,
    )


def _turnout(row: Row, _: str) -> Question:
    """Our own form, as `Question` is written, or with `answer`, `aliases` and `decomposition` beside `gold_passages`."""
    if "answers" in row:
        try:
            return msgspec.convert(row, Question)
        except msgspec.ValidationError as error:
            raise BadRow(str(error)) from None
    try:
        gold = tuple(msgspec.convert(passage, Passage) for passage in _list(row, "gold_passages"))
    except msgspec.ValidationError as error:
        raise BadRow(f"gold_passages: {error}") from None
    steps = tuple(
        Step(_text(step, "question"), str(step.get("answer", "")), _index(step.get("passage_id")))
        for step in _objects(row, "decomposition")
    )
    answers = _answers([row.get("answer"), *_listed(row.get("aliases"))])
    name, dataset, question = _text(row, "id"), _text(row, "dataset"), _text(row, "question")
    complete, kind = bool(row.get("gold_complete", True)), str(row.get("type", ""))
    hops = row.get("hops")
    return Question(
        name,
        dataset,
        question,
        answers,
        gold,
        complete,
        gold,
        hops if isinstance(hops, int) else None,
        kind,
        steps,
        _triples(row),
    )


FORMATS: dict[FormatName, Callable[[Row, str], Question]] = {
    "hotpotqa": _hotpotqa,
    "2wikimultihopqa": _2wiki,
    "musique": _musique,
    "nq": _nq,
    "popqa": _popqa,
    "triviaqa": _triviaqa,
    "graph_r1": _graph_r1,
    "turnout": _turnout,
}
"""How a row of each format is read; the text is an id for rows that have none."""


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadRow(f"`{key}` is not a text" if value is not None else f"no `{key}`")
    return value


def _list(row: Row, key: str) -> Sequence[Any]:
    value = row.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BadRow(f"`{key}` is not a list")
    return value


def _listed(value: Any) -> Sequence[Any]:
    """A list that may be missing."""
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise BadRow("not a list where one belongs")
    return value


def _objects(row: Row, key: str) -> list[Row]:
    """A list of objects that may be missing."""
    found = _listed(row.get(key))
    if any(not isinstance(one, Mapping) for one in found):
        raise BadRow(f"`{key}` is not a list of objects")
    return list(found)


def _index(value: Any) -> str | None:
    """The name of something pointed at by a number or a text."""
    return str(value) if isinstance(value, str | int) else None


def _triples(row: Row) -> tuple[tuple[str, str, str], ...]:
    found = _listed(row.get("evidences"))
    if any(not isinstance(fact, Sequence) or isinstance(fact, str) or len(fact) != 3 for fact in found):
        raise BadRow("`evidences` is not a list of [subject, relation, object]")
    return tuple((str(subject), str(relation), str(object)) for subject, relation, object in found)


def _answers(found: Any) -> tuple[str, ...]:
    """The distinct texts among `found`, in order."""
    listed = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
    texts = tuple(dict.fromkeys(text for text in listed if isinstance(text, str) and text.strip()))
    if not texts:
        raise BadRow("no answer")
    return texts
