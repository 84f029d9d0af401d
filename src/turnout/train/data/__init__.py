"""Questions with their answers and gold passages, read from the formats they are published in."""

from turnout.train.data.question import Question, Step
from turnout.train.data.reading import Read, read_questions

__all__ = ["Question", "Read", "Step", "read_questions"]
