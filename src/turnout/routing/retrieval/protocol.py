"""The text protocol of the retrieval agent: think, then query or answer; knowledge comes back. Pure.

As in Graph-R1 and PathRouter: `<think>...</think>`, then `<query>{"query": "..."}</query>` or `<answer>...</answer>`; what is
found comes back as a JSON list in `<knowledge>...</knowledge>`.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from turnout.routing.retrieval.facts import Fact

STOPS = ("</query>", "</answer>")
"""Where a turn of the model ends."""

Action: TypeAlias = Literal["query", "answer", "none"]

_FIRST_ACTION = re.compile(r"<(query|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_WELL_FORMED = re.compile(
    r"\s*<think>(?:(?!</?(?:think|query|answer|knowledge)>).)*</think>\s*"
    r"<(query|answer)>(?:(?!</?(?:think|query|answer|knowledge)>).)+</\1>\s*",
    re.DOTALL,
)
_PARTS = re.compile(r"<(think|query|answer|knowledge)>.*?(?:</\1>|\Z)", re.DOTALL)


class Role(StrEnum):
    """What a stretch of a trajectory is. Tags belong to what they enclose."""

    REASONING = "reasoning"
    QUERY = "query"
    OBSERVATION = "observation"
    ANSWER = "answer"
    OTHER = "other"
    """Of the model's, outside of any tag."""


_ROLES = {
    "think": Role.REASONING,
    "query": Role.QUERY,
    "answer": Role.ANSWER,
    # A model that writes its own knowledge observes nothing.
    "knowledge": Role.OTHER,
}


class Move(Struct, frozen=True):
    """What a turn of the model does. `text`: the query or the answer. `well_formed`: it thought first and did one thing only."""

    action: Action
    text: str
    well_formed: bool


def read_move(text: str, cut: bool = False) -> Move:
    """Read one turn of the model, as much of it as can be understood.

    The first query or answer counts. One that lacks its closing tag counts where the text ends there because generation
    stopped at that tag; `cut`: it ended because no tokens were left, so it does not.
    """
    well_formed = _WELL_FORMED.fullmatch(closed(text)) is not None and not (cut and closed(text) != text)
    found = _FIRST_ACTION.search(text, max(text.find("</think>"), 0)) or _FIRST_ACTION.search(text)
    if found is None or (cut and not found.group(0).endswith(f"</{found.group(1)}>")):
        return Move("none", "", False)
    inner = found.group(2).strip()
    if found.group(1) == "answer":
        return Move("answer", inner, well_formed and bool(inner))
    query = _query_of(inner)
    return Move("query", query, well_formed and bool(query)) if query else Move("none", "", False)


def closed(text: str) -> str:
    """`text` with the closing tag that a stop sequence took away."""
    opened = max(("query", "answer"), key=lambda tag: text.rfind(f"<{tag}>"))
    start = text.rfind(f"<{opened}>")
    if start < 0 or f"</{opened}>" in text[start:]:
        return text
    return f"{text}</{opened}>"


def _query_of(inner: str) -> str:
    """The query of a `<query>`: the field of a JSON object, or the text as it stands."""
    if not inner.startswith("{"):
        return inner
    try:
        value = msgspec.json.decode(inner)
    except msgspec.DecodeError:
        return inner
    query = value.get("query") if isinstance(value, dict) else None
    return query.strip() if isinstance(query, str) else ""


Style: TypeAlias = Literal["json", "lines"]
"""How facts are shown. `json`: a list of objects with text and score, as in Graph-R1. `lines`: texts alone, one a line."""


def write_knowledge(facts: Sequence[Fact], style: Style = "json") -> str:
    """What the model is shown of a look-up."""
    if style == "lines":
        return "\n".join(("<knowledge>", *(fact.text for fact in facts), "</knowledge>"))
    shown = [{"knowledge": fact.text, "score": round(fact.score, 3)} for fact in facts]
    return f"<knowledge>{msgspec.json.encode(shown).decode()}</knowledge>"


NOTHING = "<knowledge>[]</knowledge>"
REMINDER = (
    "<knowledge>[]</knowledge>\nThat was neither a query nor an answer. Think in <think>...</think>, then write either "
    '<query>{"query": "..."}</query> or <answer>...</answer>.'
)
"""What a model is told whose turn did neither."""


def spans(text: str) -> list[tuple[int, int, Role]]:
    """The stretches of one turn of the model: (start, end, role), gapless, in order, over all of `text`."""
    found: list[tuple[int, int, Role]] = []
    at = 0
    for match in _PARTS.finditer(text):
        if match.start() > at:
            found.append((at, match.start(), Role.OTHER))
        found.append((match.start(), match.end(), _ROLES[match.group(1)]))
        at = match.end()
    if at < len(text):
        found.append((at, len(text), Role.OTHER))
    return found


def instructions(question: str) -> str:
    """The prompt of a question."""
    return f"{_INSTRUCTIONS}\nQuestion: {question}"


def gold_instructions(question: str, gold_passages: Sequence[str]) -> str:
    """The prompt of the frozen teacher, which scores what a student wrote knowing the gold evidence (PathRouter, Eq. 5-6)."""
    evidence = "\n".join(f"- {passage}" for passage in gold_passages)
    return f"{_INSTRUCTIONS}\nThe evidence that answers the question:\n{evidence}\nQuestion: {question}"


def closed_book_instructions(question: str) -> str:
    """The prompt of a model that may look nothing up: a baseline."""
    return f"{_FROM_MEMORY}\nQuestion: {question}"


def one_shot_instructions(question: str, facts: Sequence[Fact], style: Style = "json") -> str:
    """The prompt of a model that is shown one look-up of the question itself: a baseline."""
    return f"{_FROM_ONE}\n{write_knowledge(facts, style)}\nQuestion: {question}"


_FROM_MEMORY = """Answer the question from memory. First think in <think>...</think>, then write <answer>...</answer> with the
answer alone, in as few words as it takes."""

_FROM_ONE = """Answer the question with the facts below, which a search for it found. First think in <think>...</think>, then
write <answer>...</answer> with the answer alone, in as few words as it takes."""

_INSTRUCTIONS = """Answer the question with facts from a knowledge base, which you search in steps.
In each step, first think in <think>...</think> about what is known and what is missing. Then do one of two things: write
<query>{"query": "..."}</query> to look something up, and you will be shown what was found in <knowledge>...</knowledge>; or, once
the facts shown to you settle it, write <answer>...</answer> with the answer alone, in as few words as it takes."""
