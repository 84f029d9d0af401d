"""Asking a model for a judgement: what it is shown, how it is asked, and what of its answer counts.

Routers that consult a model share this: the transcript of an agent's work, the one question, the checked answer, and the closed
set of reasons for which there is none.
"""

from turnout.routing.judging.consult import (
    FAIL_OPEN,
    Answered,
    FailOpen,
    Judging,
    Question,
    Unanswered,
    Verdict,
    consult,
    failed,
    question_of,
    read,
)
from turnout.routing.judging.doubts import doubts, unfinished
from turnout.routing.judging.fence import mark
from turnout.routing.judging.kept import kept
from turnout.routing.judging.structured import NotStructured, read_object
from turnout.routing.judging.transcript import Excerpt, shortened, transcript

__all__ = [
    "FAIL_OPEN",
    "Answered",
    "Excerpt",
    "FailOpen",
    "Judging",
    "NotStructured",
    "Question",
    "Unanswered",
    "Verdict",
    "consult",
    "doubts",
    "failed",
    "kept",
    "mark",
    "question_of",
    "read",
    "read_object",
    "shortened",
    "transcript",
    "unfinished",
]
