"""Everything that is not a model call: listings, counts, health, metrics, the ledger, outcomes, decisions without calls."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast, get_args

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from turnout.conversation import Format
from turnout.errors import ClientError, TurnoutError
from turnout.gateway import counting, dashboard, deciding, listing
from turnout.gateway.live import Live
from turnout.gateway.opened import Gateway
from turnout.gateway.receiving import ClientGone, read_body
from turnout.ledger.outcome import Outcome
from turnout.ledger.reading import By, Page, Stats, TurnFilter
from turnout.routing.stage.explain import explain
from turnout.wire import CODECS

Handler = Callable[[Request], Awaitable[Response]]
_JSON = msgspec.json.Encoder(enc_hook=str)


def pages(live: Live) -> Starlette:
    """The cold pages of whatever gateway is `live`."""
    page = Pages(live)
    table: list[tuple[str, list[str], Handler]] = [
        ("/messages/count_tokens", ["POST"], page.count_messages),
        ("/responses/input_tokens", ["POST"], page.count_responses),
        ("/responses/compact", ["POST"], page.compact),
        ("/models", ["GET"], page.models),
        ("/models/{model:path}", ["GET"], page.model),
        ("/route", ["POST"], page.route),
        ("/stats", ["GET"], page.stats),
        ("/turns", ["GET"], page.turns),
        ("/turns/{id}", ["GET"], page.turn),
        ("/outcomes", ["POST"], page.outcomes),
        ("/health", ["GET"], page.health),
        ("/ready", ["GET"], page.ready),
        ("/metrics", ["GET"], page.metrics),
        ("/dashboard", ["GET"], page.dashboard),
    ]
    routes: list[BaseRoute] = [Route("/", page.root, methods=["GET", "HEAD"])]
    for path, methods, handler in table:
        routes += [Route(prefix + path, guarded(live, handler), methods=methods) for prefix in ("/v1", "")]
    return Starlette(routes=routes, exception_handlers={404: page.missing, 405: page.missing})


def guarded(live: Live, handler: Handler) -> Handler:
    """`handler` with errors answered in the caller's dialect, its own faults too."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except TurnoutError as error:
            return error_response(error, dialect(request))
        except RecursionError:
            return error_response(ClientError("the body is nested too deeply", code="invalid_json"), dialect(request))
        except Exception as error:
            # The boundary of the cold pages, as `Serving.serve` is that of turns.
            live.gateway.internal_error(error)
            return error_response(TurnoutError(f"internal error ({type(error).__name__})"), dialect(request))

    return answer


def dialect(request: Request) -> Format:
    """The dialect a caller of a shared page expects."""
    if "anthropic-version" in request.headers or "/messages" in request.url.path:
        return "anthropic_messages"
    return "openai_responses" if "/responses" in request.url.path else "openai_chat"


def error_response(error: TurnoutError, dialect: Format) -> Response:
    """An error in a dialect's envelope."""
    reply = CODECS[dialect].write_error(error)
    headers = {name.decode(): value.decode("latin-1") for name, value in reply.headers}
    return Response(reply.body, reply.status, headers)


def as_json(value: Any, status: int = 200) -> Response:
    """A JSON response of anything msgspec can encode."""
    return Response(_JSON.encode(value), status, media_type="application/json")


class Pages:
    """Handlers that share the gateway that is live."""

    def __init__(self, live: Live) -> None:
        self._live = live

    @property
    def gateway(self) -> Gateway:
        """The gateway that serves now. A handler that waits may find another one afterwards."""
        return self._live.gateway

    async def root(self, request: Request) -> Response:
        """A probe, or a person with a browser."""
        if "text/html" in request.headers.get("accept", "") and request.method == "GET":
            return RedirectResponse("/dashboard")
        return JSONResponse({"service": "turnout", "routes": list(self.gateway.config.routes)})

    async def missing(self, request: Request, error: Exception) -> Response:
        """No such page, or not with this method."""
        status = getattr(error, "status_code", 404)
        if status == 405:
            message = f"{request.method} is not supported on {request.url.path}"
            return error_response(ClientError(message, status=405, code="method_not_allowed"), dialect(request))
        message = (
            f"there is nothing at {request.method} {request.url.path}; models are served at /v1/chat/completions, "
            "/v1/responses and /v1/messages"
        )
        return error_response(ClientError(message, status=404, code="not_found"), dialect(request))

    async def _body(self, request: Request) -> bytes:
        headers = dict(request.scope["headers"])
        try:
            async with asyncio.timeout(self.gateway.config.server.deadline_s):
                return await read_body(request.receive, headers, self.gateway.max_body)
        except TimeoutError:
            message = "the request body did not arrive in time; send it again"
            raise ClientError(message, status=408, code="request_timeout") from None
        except ClientGone:
            raise ClientError("the client hung up", status=499, code="client_gone") from None

    def _check_key(self, request: Request) -> None:
        self.gateway.tenant(dict(request.scope["headers"]), dialect(request))

    def _only(self, request: Request) -> str:
        """The tenant whose turns alone the caller may see; "" for all. Raises ClientError (401) where keys are used and
        none is known."""
        if not self.gateway.client_keys:
            return ""
        tenant = self.gateway.tenant(dict(request.scope["headers"]), dialect(request))
        if not tenant:
            raise ClientError(
                "turns are shown to tenants only: send a tenant's key as `Authorization: Bearer` or `x-api-key`",
                status=401,
                code="invalid_api_key",
            )
        return "" if tenant in self.gateway.config.server.operators else tenant

    async def count_messages(self, request: Request) -> Response:
        """Input tokens of a Messages request, counted here."""
        return await self._count(request, "anthropic_messages")

    async def count_responses(self, request: Request) -> Response:
        """Input tokens of a Responses request, counted here."""
        return await self._count(request, "openai_responses")

    async def _count(self, request: Request, form: Format) -> Response:
        self._check_key(request)
        counted = counting.count(CODECS[form].read_request(await self._body(request)))
        if form == "openai_responses":
            body: dict[str, Any] = {"object": "response.input_tokens", "input_tokens": counted}
        else:
            body = {"input_tokens": counted}
        return JSONResponse(body, headers={"x-turnout-estimate": "true"})

    async def compact(self, request: Request) -> Response:
        """Server-side compaction is not offered; clients compact by an ordinary call."""
        raise ClientError(
            "compaction by the server is not offered here; compact with an ordinary request",
            code="compaction_not_supported",
        )

    async def models(self, request: Request) -> Response:
        """The routes, listed as models in the caller's dialect."""
        body = listing.models(self.gateway, request.scope["headers"], dict(request.query_params))
        etag = listing.etag(body)
        headers = {"etag": etag, "x-models-etag": etag}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    async def model(self, request: Request) -> Response:
        """One route, as a model."""
        route = self.gateway.route(request.path_params["model"])
        return as_json(listing.card(self.gateway, route.name, request.scope["headers"]))

    async def route(self, request: Request) -> Response:
        """The decision for a request, without any call."""
        self._check_key(request)
        return as_json(await deciding.decide(self.gateway, await self._body(request), request.scope["headers"]))

    async def stats(self, request: Request) -> Response:
        """Totals of the ledger in all and by group, most turns first.

        `by`: names to group by, split at commas (route, target and source if absent). `top`: how many groups at most. `hours`:
        only the newest, instead of `since`. Else filtered by any field of `TurnFilter`."""
        only = self._only(request)
        query = dict(request.query_params)
        hours = number(request, "hours")
        by = tuple(name for name in query.pop("by", "route,target,source").split(",") if name)
        if unknown := [name for name in by if name not in get_args(By)]:
            raise ClientError(f"cannot group by {unknown[0][:40]!r}; choose of {', '.join(get_args(By))}", param="by")
        top = whole(request, "top", 1000, 100_000)
        which = within(turn_filter(query, "hours", "top"), only)
        if hours is not None:
            which = msgspec.structs.replace(which, since=time.time() - hours * 3600)
        found = await self.gateway.read_ledger(lambda ledger: ledger.stats(by=cast("tuple[By, ...]", by), which=which))
        return as_json(Stats(found.total, found.groups[:top]))

    async def turns(self, request: Request) -> Response:
        """Newest turns first, filtered by any field of `TurnFilter`; `limit` and `before` (the last page's `next`) page on.

        `brief=true` leaves out what only the page of one turn needs: signals, memory, drop report."""
        only = self._only(request)
        query = dict(request.query_params)
        limit = whole(request, "limit", 50, 1000)
        before = query.get("before", "")
        which = within(turn_filter(query, "limit", "before", "brief"), only)
        page = await self.gateway.read_ledger(lambda ledger: ledger.turns(which, limit=limit, before=before))
        return as_json(brief(page) if query.get("brief") == "true" else page)

    async def turn(self, request: Request) -> Response:
        """One turn, whole, and its decision taken apart where its router can; options at today's prices."""
        only = self._only(request)
        wanted = request.path_params["id"]
        found = await self.gateway.read_ledger(lambda ledger: ledger.turn(wanted))
        if found is None or (only and found.tenant != only):
            raise ClientError(f"no turn {wanted[:80]!r} in the ledger", status=404, code="turn_not_found")
        explained = (
            explain(found.why, found.signals, found.memory, self.gateway.models.facts(), found.at)
            if found.why
            else None
        )
        return as_json({**msgspec.to_builtins(found, enc_hook=str), "explained": explained} if explained else found)

    async def outcomes(self, request: Request) -> Response:
        """What became of a turn or session, told by whoever knows."""
        only = self._only(request)
        try:
            outcome = msgspec.json.decode(await self._body(request), type=Outcome)
        except msgspec.DecodeError as error:
            known = f"; known: {', '.join(Outcome.__struct_fields__)}" if "unknown field" in str(error) else ""
            raise ClientError(f"not an outcome: {error}{known}", code="invalid_outcome") from None
        if only:
            outcome = msgspec.structs.replace(outcome, tenant=only)
            if outcome.turn:
                turn = await self.gateway.read_ledger(lambda ledger: ledger.turn(outcome.turn))
                if turn is not None and turn.tenant != only:
                    raise ClientError(f"no turn {outcome.turn[:80]!r} in the ledger", status=404, code="turn_not_found")
        await self.gateway.read_ledger(lambda ledger: ledger.add_outcome(outcome))
        return as_json(outcome, 201)

    async def health(self, request: Request) -> Response:
        """Alive."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Able to serve: the ledger writes, and some target of every route is not cooling down. Whether the session store answers
        is told beside it: turns are served without it too."""
        await self.gateway.sessions.look()
        state = self.gateway.readiness()
        return as_json(state, 200 if state["ready"] else 503)

    async def metrics(self, request: Request) -> Response:
        """Prometheus text."""
        if not self.gateway.sessions.reachable:
            await self.gateway.sessions.look()
        return Response(self.gateway.metrics.render(), media_type="text/plain; version=0.0.4")

    async def dashboard(self, request: Request) -> Response:
        """The dashboard. It asks for a key itself where one is needed, so the page is open to all."""
        body, headers = dashboard.page()
        return Response(body, media_type="text/html; charset=utf-8", headers=headers)


def number(request: Request, name: str) -> float | None:
    """A numeric query parameter, None when absent. Raises ClientError."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ClientError(f"{name} must be a number, got {text[:40]!r}", param=name)
    return found


def whole(request: Request, name: str, default: int, most: int) -> int:
    """A whole number from 1 to `most` among the query parameters. Raises ClientError."""
    found = number(request, name)
    if found is None:
        return default
    if not 1 <= found <= most or found != int(found):
        raise ClientError(f"{name} must be a whole number from 1 to {most}", param=name)
    return int(found)


def turn_filter(query: dict[str, str], *others: str) -> TurnFilter:
    """The filter in `query`, whose `others` belong to the page. Raises ClientError."""
    try:
        return msgspec.convert({k: v for k, v in query.items() if k not in others}, TurnFilter, strict=False)
    except msgspec.ValidationError as error:
        raise ClientError(f"not a filter of turns: {error}") from None


def brief(page: Page) -> Page:
    """A page without what explains its turns in full."""
    replace = msgspec.structs.replace
    return Page(
        tuple(replace(t, signals=None, memory={}, remembered=(), drop_report=()) for t in page.turns), page.next
    )


def within(which: TurnFilter, only: str) -> TurnFilter:
    """`which`, narrowed to the one tenant the caller may see ("" for all)."""
    return msgspec.structs.replace(which, tenant=only) if only else which
