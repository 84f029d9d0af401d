"""A question with what is known of its answer and evidence."""

from msgspec import Struct

from turnout.knowledge.passage import Passage


class Step(Struct, frozen=True):
    """One hop of a decomposed question. `#1` in `question` stands for the answer of the first step. `passage`: the id of the
    passage that holds it, where known."""

    question: str
    answer: str
    passage: str | None = None


class Question(Struct, frozen=True, omit_defaults=True):
    """`answers`: right answers, the canonical one first. `gold_passages`: what the answer rests on; `gold_complete` is False
    where some of it is not in the file. `context`: all passages the row came with, gold and distractors. `facts`: (subject,
    relation, object) triples, where the data set gives them. `hops`: how many facts must be joined, where known."""

    id: str
    dataset: str
    question: str
    answers: tuple[str, ...]
    gold_passages: tuple[Passage, ...] = ()
    gold_complete: bool = True
    context: tuple[Passage, ...] = ()
    hops: int | None = None
    kind: str = ""
    steps: tuple[Step, ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()
