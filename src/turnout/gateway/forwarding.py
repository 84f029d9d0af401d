"""Carries out a decision to forward: calls the target, falls to others while nothing has gone out, relays the answer."""

import time
from typing import TYPE_CHECKING

import msgspec

from turnout.conversation import Reply
from turnout.errors import ClientError, TurnoutError, UpstreamError, afresh
from turnout.gateway.accounts import Account
from turnout.gateway.artefacts import hygiene, made_in, makers
from turnout.gateway.fitting import unable
from turnout.gateway.handing import note_for
from turnout.gateway.holdings import CODE, held_elsewhere
from turnout.gateway.playing import rewritten, send_body, streamed
from turnout.gateway.relay import ANOTHER_MAY, relay_native, relay_translated
from turnout.gateway.routes import Route
from turnout.routing.core import Forward, TargetName
from turnout.upstream.credentials import returned_headers
from turnout.upstream.models import Model, Opened
from turnout.upstream.prepare import Prepared, prepare
from turnout.wire.codec import Counted, Request
from turnout.wire.drops import refuse_drops

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving

TRANSIENT_S = 5.0
"""The wait that a client is told when one of its targets may be back at any moment."""
REPLY_LIMIT = 64 << 20
"""Largest buffered reply taken from an upstream, in bytes."""


class Candidates:
    """The targets a turn may still be sent to, in order: the decision's own, then what a failure adds.

    Each is tried once; one that broke off before any content may be tried once more (`again`).
    """

    def __init__(self, decision: Forward) -> None:
        self._waiting = [decision.target, *decision.fallbacks]
        self._tried: set[TargetName] = set()
        self._again = False

    def next(self) -> TargetName | None:
        """The next target to try."""
        while self._waiting:
            name = self._waiting.pop(0)
            if name not in self._tried:
                self._tried.add(name)
                return name
        return None

    def add(self, names: list[TargetName]) -> None:
        """Further targets, after those that wait."""
        self._waiting += names

    def again(self, name: TargetName) -> bool:
        """Try `name` once more, first; granted once a turn."""
        if self._again:
            return False
        self._again = True
        self._tried.discard(name)
        self._waiting.insert(0, name)
        return True


async def forward(serving: "Serving", request: Request, route: Route, decision: Forward) -> None:
    """Answer the turn from the decision's target, or from one that can take its place.

    Raises the last target's UpstreamError, or the first ClientError when no target can take the request as it is; at once where
    the decision says that there is nothing more to be called.
    """
    if (failure := decision.failure) is not None:
        raise UpstreamError(
            failure.kind,
            failure.message,
            status=failure.status,
            retry_after_s=failure.retry_after_s,
            target=decision.target,
        )
    candidates = Candidates(decision)
    refusal: TurnoutError | None = None
    failures: list[UpstreamError] = []
    try:
        while (name := candidates.next()) is not None:
            model = serving.gateway.models[name]
            try:
                fits = unable(model, request, serving.conversation or request.conversation)
                if fits is not None:
                    candidates.add(list(route.targets))
                    raise afresh(fits)
                prepared = prepared_for(serving, request, route, model, decision)
            except ClientError as error:
                # What one target cannot take another may: only the first refusal is the client's to know.
                refusal = refusal or error
                last = makers(serving.loaded.states).last
                if error.code == CODE and last in route.targets:
                    candidates.add([TargetName(last)])  # what the turn needs lies there
                continue
            opened: Opened | None = None
            account = Account(model, "answer", serving.began)
            serving.accounts.append(account)
            serving.served_by(model, prepared.drops)
            serving.await_content()
            try:
                opened = await model.open(
                    prepared.body,
                    request.format,
                    serving.headers,
                    serving.gateway.redactor,
                    serving.attended.deadline,
                    account.retried,
                )
                account.status = opened.response.status
                await answer(serving, request, opened, account)
                opened.succeeded()
                return
            except UpstreamError as error:
                account.failed(error)
                if opened is not None:
                    opened.failed(error)
                if serving.outlet.content_sent or error.kind not in ANOTHER_MAY:
                    raise
                refusal = error
                failures.append(error)
                cut = error.kind == "unavailable" or (error.kind == "malformed" and account.first_byte is None)
                if opened is not None and cut:
                    candidates.again(name)
                elif error.kind == "overflow":
                    candidates.add(roomier(serving, model, route))
            except BaseException:
                if opened is not None:
                    opened.abort()
                raise
        assert refusal is not None  # a decision names at least one target
        if failures and refusal is failures[-1]:
            failures[-1].retry_after_s = soonest_s(failures)
        raise refusal
    finally:
        # An error knows this frame by its traceback; were the frame to know the error, only a collection would free them.
        del refusal, failures


def soonest_s(failures: list[UpstreamError]) -> float | None:
    """Seconds after which the first of several failed targets may serve again; None when none said.

    A target that is merely down, without a word on for how long, may be back soon: it shortens a long wait.
    """
    waits = [error.retry_after_s for error in failures if error.retry_after_s is not None]
    if not waits:
        return None
    transient = any(e.kind in ("unavailable", "timeout", "rate_limit") and e.retry_after_s is None for e in failures)
    return min(*waits, TRANSIENT_S) if transient else min(waits)


def prepared_for(serving: "Serving", request: Request, route: Route, model: Model, decision: Forward) -> Prepared:
    """The body for `model`. Raises ClientError for what may not be lost or cannot be continued there."""
    rewrite, settings, sources = decision.rewrite, None, serving.sources
    if sources and (rewrite is not None or not all(s.native and s.target == model.name for s in sources)):
        rewrite = rewrite or serving.conversation
        settings = msgspec.structs.replace(request.settings, previous_response_id=None)
    elif request.settings.conversation_id is not None and model.format != request.format:
        raise ClientError(
            f"`conversation` is state on another server; target {model.name} cannot continue it",
            code="unsupported_feature",
            param="conversation",
        )
    conversation = serving.conversation or request.conversation
    known = makers(serving.loaded.states)
    elsewhere = held_elsewhere(request, conversation, model, known, serving.gateway.models, whole=not sources)
    if elsewhere is not None:
        raise elsewhere
    clean = hygiene(request, conversation, model, known, serving.gateway.models)
    edits = (*clean.edits, *decision.edits, *note_for(serving, model))
    serving.edits = edits
    prepared = prepare(request, model, edits, rewrite=rewrite, settings=settings)
    if prepared.drops and route.strict:
        refuse_drops(prepared.drops)
    if clean.drops:
        # What this model could not have read is no loss of the translation, so `strict` does not refuse it.
        prepared = msgspec.structs.replace(prepared, drops=(*clean.drops, *prepared.drops))
    return prepared


def roomier(serving: "Serving", full: Model, route: Route) -> list[TargetName]:
    """Targets of the route into which a prompt may fit that overflowed `full`."""
    limit = full.target.context_window
    found = []
    for name in route.targets:
        window = serving.gateway.models[name].target.context_window
        if name != full.name and (limit is None or window is None or window > limit):
            found.append(name)
    return found


async def answer(serving: "Serving", request: Request, opened: Opened, account: Account) -> None:
    """Give the client what an opened response holds. Raises UpstreamError when it breaks or carries a failure."""
    model, response = opened.model, opened.response
    redactor = serving.gateway.redactor
    if model.upstream.forward_auth:
        redactor = redactor.with_credentials(serving.headers)
    serving.outlet.head += [(n, redactor.clean_header(v)) for n, v in returned_headers(response.headers)]
    content_type = response.header(b"content-type")
    if request.settings.stream and (content_type is None or content_type.startswith(b"text/event-stream")):
        if model.format == request.format and serving.begun is None:
            await relay_native(serving, request, opened, account)
        else:
            await relay_translated(serving, request, opened, account)
        return
    body = await response.read(REPLY_LIMIT)
    account.first_byte = time.monotonic()
    serving.made += made_in(body, model.format)
    if model.format == request.format and not request.settings.stream:
        counted = model.codec.count_reply(body, request)
        serving.finished(account, counted.usage, counted.stop, counted.id)
        if serving.must_commit:
            reply = kept_reply(model, request, body, counted) if serving.keeps_reply else None
            await serving.commit(reply, body)
        await send_body(serving, body)
        return
    reply = model.codec.read_reply(body, request)
    if model.format != request.format:
        reply = msgspec.structs.replace(reply, id=serving.continuable(reply.id))
    account.usage = reply.usage
    if request.settings.stream:
        # A stream was asked for and one body came: some servers do that.
        body = streamed(serving, request, reply, model.target.model)
    else:
        body = rewritten(serving, request, reply, model.target.model)
    serving.finished(account, reply.usage, reply.stop, reply.id)
    if serving.must_commit:
        await serving.commit(reply, body)
    if request.settings.stream:
        serving.keep_response(body)
        await serving.outlet.write(body, last=True)
    else:
        await send_body(serving, body)


def kept_reply(model: Model, request: Request, body: bytes, counted: Counted) -> Reply:
    """The reply to keep of a body that is relayed as it is, whatever it holds: nothing said where it cannot be read."""
    try:
        return model.codec.read_reply(body, request)
    except UpstreamError:
        return Reply((), counted.stop, counted.usage, id=counted.id)
