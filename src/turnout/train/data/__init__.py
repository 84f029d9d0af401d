"""Questions with their answers and gold passages, read from the formats they are published in."""

from turnout.train.data.hub import questions_of
from turnout.train.data.question import Question, Step
from turnout.train.data.reading import Read, read_questions

__all__ = ["Question", "Read", "Step", "questions_of", "read_questions"]
