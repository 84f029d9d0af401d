"""The journal of an extraction: what is kept of each of its calls."""

from typing import Literal

from msgspec import Struct

from turnout.knowledge.extraction.prompt import Facts
from turnout.routing.judging import FailOpen
from turnout.upstream.buying.journal import Form

_FINISHED = frozenset(("ok", "parse_error", "invalid_response"))


class Entry(Struct, frozen=True, omit_defaults=True):
    """A call that is over.

    `key`: hash of all that the reply depends on. `passage`: the first that it was made for. `facts`: as they were read, None
    where none could be. `status`: "ok", or why there are none (`message`). `model`: the target; `served`: the model by its
    server's name. `at`: when it ended, Unix seconds. `tries`: requests that were sent. `input_tokens`, `output_tokens`, `usd`:
    what it used, as reported; `estimated`: as assumed, for want of a report. `usd` None: no price is known.
    """

    key: str
    passage: str
    model: str
    facts: Facts | None = None
    status: Literal["ok"] | FailOpen = "ok"
    message: str = ""
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


FORM = Form("turnout knowledge build", "a build", Entry)
