"""The journal of a review: what is kept of each of its calls."""

from typing import Literal

from msgspec import Struct

from turnout.routing.judging import FailOpen
from turnout.upstream.buying.journal import Form

_FINISHED = frozenset(("ok", "parse_error", "invalid_response"))


class Entry(Struct, frozen=True, omit_defaults=True):
    """A call that is over.

    `key`: hash of all that the reply depends on. `kind`: an answer to a question, or a score of one. `model`: who was asked.
    `author`: whose answer it was; another author's, word for word the same, has the same score. `status`: `ok`, or why there is
    nothing (`message`). `text`: the answer. `score`, `reason`, `flags`: the judge's. `cut`: the answer stopped at its limit of
    tokens. `served`: the model by its server's name. `at`: when it ended, Unix seconds. `tries`: requests that were sent.
    `input_tokens`, `output_tokens`, `usd`: what it used, as reported; `estimated`: as assumed, for want of a report. `usd` None:
    no price is known.
    """

    key: str
    kind: Literal["answer", "score"]
    question: str
    model: str
    author: str = ""
    status: Literal["ok"] | FailOpen = "ok"
    message: str = ""
    text: str = ""
    score: int | None = None
    reason: str = ""
    flags: tuple[str, ...] = ()
    cut: bool = False
    served: str = ""
    at: float = 0.0
    took_s: float = 0.0
    tries: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    estimated: bool = False

    @property
    def finished(self) -> bool:
        """Whether a model replied: what it wrote counts, for better or worse, and is not asked for again."""
        return self.status in _FINISHED


FORM = Form("turnout peers review", "a review", Entry)
