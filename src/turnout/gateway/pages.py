"""Everything that is not a model call: listings, counts, health, metrics, the ledger, outcomes, decisions without calls."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from turnout.conversation import Format
from turnout.errors import ClientError, TurnoutError
from turnout.gateway import counting, deciding, listing
from turnout.gateway.opened import Gateway
from turnout.gateway.receiving import ClientGone, read_body
from turnout.ledger.outcome import Outcome
from turnout.ledger.reading import TurnFilter
from turnout.wire import CODECS

Handler = Callable[[Request], Awaitable[Response]]
_JSON = msgspec.json.Encoder(enc_hook=str)
DASHBOARD = Path(__file__).parent / "dashboard" / "index.html"


def pages(gateway: Gateway) -> Starlette:
    """The cold pages of `gateway`."""
    page = Pages(gateway)
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
        routes += [Route(prefix + path, guarded(gateway, handler), methods=methods) for prefix in ("/v1", "")]
    return Starlette(routes=routes, exception_handlers={404: page.missing, 405: page.missing})


def guarded(gateway: Gateway, handler: Handler) -> Handler:
    """`handler` with errors answered in the caller's dialect, its own faults too."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except TurnoutError as error:
            return error_response(error, dialect(request))
        except Exception as error:
            # The boundary of the cold pages, as `Serving.serve` is that of turns.
            gateway.internal_error(error)
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
    """Handlers that share one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

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
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"etag": etag})
        return Response(body, media_type="application/json", headers={"etag": etag})

    async def model(self, request: Request) -> Response:
        """One route, as a model."""
        route = self.gateway.route(request.path_params["model"])
        return as_json(listing.card(self.gateway, route.name, request.scope["headers"]))

    async def route(self, request: Request) -> Response:
        """The decision for a request, without any call."""
        self._check_key(request)
        return as_json(await deciding.decide(self.gateway, await self._body(request), request.scope["headers"]))

    async def stats(self, request: Request) -> Response:
        """Totals of the ledger, in all and by route, target and source; `?since=` in Unix seconds or `?hours=`."""
        self._check_key(request)
        hours = number(request, "hours")
        since = number(request, "since") if hours is None else time.time() - hours * 3600
        return as_json(await self.gateway.read_ledger(lambda ledger: ledger.stats(since)))

    async def turns(self, request: Request) -> Response:
        """Newest turns first, filtered by any field of `TurnFilter`; `limit` and `before` (the last page's `next`) page on."""
        self._check_key(request)
        query = dict(request.query_params)
        limit = int(number(request, "limit") or 50)
        if not 1 <= limit <= 1000:
            raise ClientError("limit must be from 1 to 1000", param="limit")
        before = query.pop("before", "")
        query.pop("limit", None)
        try:
            which = msgspec.convert(query, TurnFilter, strict=False)
        except msgspec.ValidationError as error:
            raise ClientError(f"not a filter of turns: {error}") from None
        return as_json(await self.gateway.read_ledger(lambda ledger: ledger.turns(which, limit=limit, before=before)))

    async def turn(self, request: Request) -> Response:
        """One turn, whole."""
        self._check_key(request)
        wanted = request.path_params["id"]
        found = await self.gateway.read_ledger(lambda ledger: ledger.turn(wanted))
        if found is None:
            raise ClientError(f"no turn {wanted[:80]!r} in the ledger", status=404, code="turn_not_found")
        return as_json(found)

    async def outcomes(self, request: Request) -> Response:
        """What became of a turn or session, told by whoever knows."""
        self._check_key(request)
        try:
            outcome = msgspec.json.decode(await self._body(request), type=Outcome)
        except msgspec.DecodeError as error:
            raise ClientError(f"not an outcome: {error}", code="invalid_outcome") from None
        await self.gateway.read_ledger(lambda ledger: ledger.add_outcome(outcome))
        return as_json(outcome, 201)

    async def health(self, request: Request) -> Response:
        """Alive."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Able to serve: the ledger writes, and some target of every route is not cooling down."""
        state = self.gateway.readiness()
        return as_json(state, 200 if state["ready"] else 503)

    async def metrics(self, request: Request) -> Response:
        """Prometheus text."""
        return Response(self.gateway.metrics.render(), media_type="text/plain; version=0.0.4")

    async def dashboard(self, request: Request) -> Response:
        """The dashboard."""
        return Response(DASHBOARD.read_bytes(), media_type="text/html; charset=utf-8")


def number(request: Request, name: str) -> float | None:
    """A numeric query parameter, None when absent. Raises ClientError."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise ClientError(f"{name} must be a number, got {text[:40]!r}", param=name) from None
