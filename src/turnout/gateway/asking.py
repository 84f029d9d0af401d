"""Performs the model calls a router asks for while it decides: streamed from the upstream, given back whole."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from turnout.conversation import Edit, Folding, Reply
from turnout.errors import ClientError, UpstreamError
from turnout.gateway.accounts import Account
from turnout.gateway.artefacts import NOBODY, Makers, hygiene
from turnout.gateway.fitting import unable
from turnout.gateway.holdings import held_elsewhere
from turnout.gateway.opened import Gateway
from turnout.routing.core import ANSWERING, Ask, Decision, Failure, Outcome
from turnout.routing.judging import failed
from turnout.upstream.models import Model, Opened
from turnout.upstream.prepare import Prepared, prepare
from turnout.wire.codec import Request
from turnout.wire.drops import refuse_drops

ANSWER_AT_MOST = 64 << 20
"""Bytes of a reply that is given back whole."""
OPINION_AT_MOST = 4 << 20
"""Bytes of a judge's: whoever writes more rambles."""


def _ever(name: str) -> bool:
    return True


class Asker:
    """Performs `Ask`s for one turn and keeps account of each. `record`: takes each with its outcome.

    An ask without settings of its own asks as the client did, and its reply may become the turn's answer: it is prepared as a
    forwarded request would be. `known`: who made what in the lane. `strict`: such an ask fails
    rather than lose part of the request. `route`: its name, whose judges are counted together. `note_for`: the edits that hand
    the work over to a model, for such asks. `tell`: tells a client that waits what goes on.
    """

    def __init__(
        self,
        gateway: Gateway,
        request: Request,
        accounts: list[Account],
        headers: Sequence[tuple[bytes, bytes]],
        turn_began: float,
        until: float | None,
        known: Makers = NOBODY,
        strict: bool = False,
        alone: Callable[[str], bool] = _ever,
        route: str = "",
        note_for: Callable[[Model], tuple[Edit, ...]] | None = None,
        record: Callable[[Ask, Outcome], None] | None = None,
        tell: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._gateway = gateway
        self._request = request
        self._accounts = accounts
        self._headers = headers
        self._turn_began = turn_began
        self._until = until
        self._known = known
        self._strict = strict
        self._alone = alone
        self._route = route
        self._note_for = note_for
        self._record = record
        self._tell = tell

    async def perform(self, ask: Ask) -> Outcome:
        """The outcome of one ask: a reply, or a failure of the closed set."""
        if ask.tells and self._tell is not None:
            await self._tell(ask.tells)
        outcome = await self._perform(ask)
        if isinstance(outcome, Failure) and outcome.kind == "timeout" and self._left_s(ask) <= 0:
            outcome = msgspec.structs.replace(outcome, reason="deadline")
        if self._record is not None:
            self._record(ask, outcome)
        return outcome

    async def _perform(self, ask: Ask) -> Outcome:
        if ask.target not in self._gateway.models:
            return Failure("request", f"unknown target {ask.target}")
        if ask.once and not self._alone(ask.once):
            return Failure("cancelled", "a concurrent turn of this agent makes this call")
        if ask.purpose not in ANSWERING:
            return await self._judged(ask)
        model = self._gateway.models[ask.target]
        account, left_s = self._account(model, ask.purpose), min(ask.within_s, self._left_s(ask))
        return await self._called(ask, model, account, left_s) if left_s > 0 else self._too_late(ask, account)

    def _left_s(self, ask: Ask) -> float:
        """Seconds until the time by which the ask must have been answered."""
        return math.inf if ask.by_s is None else self._turn_began + ask.by_s - time.monotonic()

    def _too_late(self, ask: Ask, account: Account) -> Failure:
        error = UpstreamError("timeout", f"no time was left for {ask.purpose} on {ask.target}")
        error.sent = False
        return self._failure(error, None, account)

    def _account(self, model: Model, purpose: str) -> Account:
        account = Account(model, purpose, self._turn_began)
        self._accounts.append(account)
        return account

    async def _judged(self, ask: Ask) -> Outcome:
        """The outcome of an ask for an opinion, which is not made at all while that is useless or too dear."""
        judges, route = self._gateway.judges, self._route
        model = judges.models[ask.target]
        account = self._account(model, ask.purpose)
        late = self._left_s(ask) <= 0
        outcome: Outcome | None = self._too_late(ask, account) if late else judges.refusal(route, ask.target)
        if outcome is None:
            outcome = await self._in_turn(ask, model, account)
        if isinstance(outcome, Failure):
            account.unheard = failed(outcome).reason
            if outcome.reason:
                account.skipped(outcome.reason)
        if account.unheard:
            judges.unheard(route, ask.target, account.unheard)
        return outcome

    async def _in_turn(self, ask: Ask, model: Model, account: Account) -> Outcome:
        """The outcome of an ask for an opinion once it is its turn: a judge's upstream gets so many at once."""
        judges, route, slots = self._gateway.judges, self._route, self._gateway.judges.slots[ask.target]
        within_s = left_s = self._patience_s(ask)
        if not slots.locked():
            await slots.acquire()  # at once
        else:
            try:
                async with asyncio.timeout(within_s):
                    await slots.acquire()
            except TimeoutError:
                error = UpstreamError("timeout", f"{ask.target} was busy with other judgements for {within_s:.3g} s")
                error.sent = False
                return self._failure(error, None, account)
            left_s += account.began - time.monotonic()
        try:
            # Those before may have found out that it is of no use, or have spent the money.
            refusal = judges.refusal(route, ask.target) if left_s != within_s else None
            if refusal is not None:
                return refusal
            held = judges.hold(route)
            try:
                return await self._called(ask, model, account, left_s)
            finally:
                judges.settle(route, held, account)
        finally:
            slots.release()

    def _patience_s(self, ask: Ask) -> float:
        """The longest to wait for an opinion: a turn can do without, but not without its answer, so it takes half of the time
        that the turn has left at most."""
        within_s = min(ask.within_s, self._left_s(ask))
        if self._until is None:
            return within_s
        return min(within_s, max(self._until - time.monotonic(), 0.0) / 2)

    def concluded(self, decision: Decision) -> None:
        """The router has decided. What it found to be no judgement, though the reply was as expected, is known from its word."""
        reason = decision.why.values.get("judge_failure", "")
        judged = [account for account in self._accounts if account.purpose not in ANSWERING]
        if reason and judged and not any(account.unheard for account in judged):
            judged[-1].unheard = str(reason)
            self._gateway.judges.unheard(self._route, judged[-1].model.name, str(reason))

    async def _called(self, ask: Ask, model: Model, account: Account, left_s: float) -> Outcome:
        opened: Opened | None = None
        try:
            async with asyncio.timeout(left_s):
                prepared = self._prepared(ask, model, account)
                opened = await model.open(
                    prepared.body,
                    self._request.format,
                    self._headers_for(ask, model),
                    self._gateway.redactor,
                    self._until,
                    account.retried,
                )
                account.status, account.headers = opened.response.status, opened.response.headers
                reply = await self._collect(opened, account, self._request)
        except TimeoutError:
            error = UpstreamError("timeout", f"{ask.purpose} on {ask.target} took longer than {left_s:.3g} s")
            if opened is None and ask.purpose not in ANSWERING and left_s > ask.within_s / 2:
                # How long to wait is the router's choice, so it says nothing of a target that answers; of a judge it does, but
                # for one that was left too little of its time.
                model.health.failed(error, time.monotonic())
            return self._failure(error, opened, account)
        except UpstreamError as error:
            return self._failure(error, opened, account)
        except ClientError as error:
            account.refused(error)
            return Failure("request", error.message)
        except BaseException:
            if opened is not None:
                opened.abort()
            raise
        account.unheard = ask.expects.missed(reply) if ask.expects is not None else ""
        if account.unheard:
            model.health.failed(UpstreamError("malformed", account.unheard), time.monotonic())
        else:
            opened.succeeded()
        return reply

    def _prepared(self, ask: Ask, model: Model, account: Account) -> Prepared:
        """The body for `model`. Raises ClientError for what it cannot take, or may not lose."""
        request, settings, stream = self._request, ask.settings, True
        own = ask.conversation is request.conversation
        if settings is None:
            refusal = unable(model, request, ask.conversation) or held_elsewhere(
                request, ask.conversation, model, self._known, self._gateway.models, whole=own
            )
            if refusal is not None:
                raise refusal
            # Whole where the client wants it whole and the format is its own, so that it can have it byte for byte.
            stream = request.settings.stream or model.format != request.format
            if not own:
                # The conversation is whole as it is: state kept elsewhere must not come on top of it.
                settings = msgspec.structs.replace(request.settings, previous_response_id=None, conversation_id=None)
        clean = hygiene(request, ask.conversation, model, self._known, self._gateway.models)
        noted = self._note_for(model) if self._note_for is not None and ask.settings is None else ()
        edits = (*clean.edits, *ask.edits, *noted)
        prepared = prepare(
            request, model, edits, rewrite=None if own else ask.conversation, settings=settings, stream=stream
        )
        if ask.settings is None:
            if self._strict and prepared.drops:
                refuse_drops(prepared.drops)
            # What this model could not have read is no loss of the translation, so `strict` does not refuse it.
            account.drops, account.edits = (*clean.drops, *prepared.drops), edits
        return prepared

    def _headers_for(self, ask: Ask, model: Model) -> Sequence[tuple[bytes, bytes]]:
        """The client's headers, of which the upstream's rules let some pass. A question of the router's own has none of them: it
        belongs to no session of the client's. Only where the client's credentials are to pay for it may they go along."""
        return self._headers if ask.settings is None or model.upstream.forward_auth else ()

    def _failure(self, error: UpstreamError, opened: Opened | None, account: Account) -> Failure:
        account.failed(error)
        if opened is not None:
            opened.failed(error)
        message = self._gateway.redactor.clean(error.message)
        return Failure(error.kind, message, error.status, error.retry_after_s)

    async def _collect(self, opened: Opened, account: Account, request: Request) -> Reply:
        model, response = opened.model, opened.response
        limit = ANSWER_AT_MOST if account.purpose in ANSWERING else OPINION_AT_MOST
        content_type = response.header(b"content-type") or b"text/event-stream"
        if not content_type.startswith(b"text/event-stream"):
            body = await response.read(limit)
            account.first_byte = time.monotonic()
            whole = model.codec.read_reply(body, request)
            return self._counted(
                msgspec.structs.replace(whole, frames=body, format=model.format, streamed=False), account
            )
        reader, folding, frames, size = model.codec.reader(request), Folding(), [], 0
        try:
            while (chunk := await response.next()) is not None:
                account.first_byte = account.first_byte or time.monotonic()
                frames.append(chunk)
                size += len(chunk)
                if size > limit:
                    raise UpstreamError("malformed", f"the answer is longer than {limit >> 20} MiB")
                for delta in reader.feed(chunk):
                    folding.feed(delta)
            for delta in reader.close():
                folding.feed(delta)
        except BaseException:
            account.usage = folding.reply.usage
            raise
        if not folding.complete:
            raise UpstreamError("malformed", "the stream ended without a terminal event")
        reply = msgspec.structs.replace(folding.reply, frames=b"".join(frames), format=model.format, streamed=True)
        return self._counted(reply, account)

    def _counted(self, reply: Reply, account: Account) -> Reply:
        account.usage, account.reply, account.ended = reply.usage, reply.id, time.monotonic()
        return reply
