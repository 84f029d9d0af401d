"""Keeps account of the model calls a turn makes, until they become part of its record."""

import time

from turnout.conversation import Edit, Usage
from turnout.errors import ClientError, UpstreamError
from turnout.ledger.trace import Call
from turnout.pricing.rates import cost
from turnout.upstream.models import Model
from turnout.wire.codec import Tally
from turnout.wire.drops import Drop

BROKEN_OFF = "unknown: the reply broke off, and the usage is what had been reported by then"


class Account:
    """One call in progress. Times are seconds since the turn began on the monotonic clock.

    `tally`: what watches the reply while it is relayed. `charged`: whether a call may be billed though nothing came of it:
    its server may have been at work already. `drops`, `edits`, `headers`: what the request lost on its way, what was changed of
    it, and the response's headers, where the reply may become the answer. `unheard`: why the router cannot use what came of it.
    """

    __slots__ = (
        "began",
        "charged",
        "drops",
        "edits",
        "ended",
        "error",
        "first_byte",
        "headers",
        "model",
        "purpose",
        "reply",
        "retries",
        "served",
        "status",
        "tally",
        "turn_began",
        "unheard",
        "usage",
    )

    def __init__(self, model: Model, purpose: str, turn_began: float) -> None:
        self.model = model
        self.purpose = purpose
        self.turn_began = turn_began
        self.began = time.monotonic()
        self.first_byte: float | None = None
        self.ended: float | None = None
        self.usage: Usage | None = None
        self.error = ""
        self.status: int | None = None
        self.retries = 0
        self.served = False
        self.reply = ""
        self.charged = True
        self.tally: Tally | None = None
        self.drops: tuple[Drop, ...] = ()
        self.edits: tuple[Edit, ...] = ()
        self.headers: list[tuple[bytes, bytes]] = []
        self.unheard = ""

    def retried(self, error: UpstreamError) -> None:
        """The target is tried again after this failure."""
        self.retries += 1

    def failed(self, error: UpstreamError) -> None:
        """The call failed."""
        self.error = error.kind
        if error.status is not None:
            self.status = error.status
        self.charged = error.kind == "timeout" and error.sent
        self.ended = time.monotonic()

    def refused(self, error: ClientError) -> None:
        """The call was never made: the request cannot be put to this target."""
        self.error, self.charged, self.ended = error.code, False, time.monotonic()

    def skipped(self, reason: str) -> None:
        """The call was never made: a judge is not to be asked now."""
        self.error = self.unheard = reason
        self.charged, self.ended = False, time.monotonic()

    def call(self, at: float) -> Call:
        """The account as the ledger keeps it, priced at the rates of `at` (Unix seconds)."""
        model, zero = self.model, self.turn_began
        if self.usage is None and self.tally is not None:
            self.usage = self.tally.usage
        usd: float | None
        if self.error and not self.charged and self.usage is None and self.first_byte is None:
            usd, note = 0.0, ""  # it never produced anything that could be billed
        elif self.error and self.usage is not None:
            usd, note = None, BROKEN_OFF
        else:
            charged = cost(self.usage, model.rates(at))
            usd, note = charged.usd, charged.note
        return Call(
            target=model.name,
            model=model.target.model,
            purpose=self.purpose,
            served=self.served,
            status=self.status,
            error=self.error,
            usage=self.usage,
            cost_usd=usd,
            cost_note=note,
            started_s=self.began - zero,
            first_byte_s=None if self.first_byte is None else self.first_byte - zero,
            ended_s=None if self.ended is None else self.ended - zero,
            retries=self.retries,
            reply=self.reply,
            unheard=self.unheard,
        )
