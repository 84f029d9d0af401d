"""Knowledge over HTTP: POST /search with {"queries": [...]}, as Graph-R1 asks its retriever."""

import asyncio
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnout.knowledge.opening import Knowledge
from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Found, Lookup

MOST_QUERIES = 4096
MOST_FACTS = 1000


class Asked(msgspec.Struct):
    """The body of a request. `at_most`: facts for each query, Graph-R1's 10 unless said."""

    queries: list[str]
    at_most: int = 10


def application(knowledge: Knowledge, about: dict[str, Any]) -> Starlette:
    """The service. `about`: what GET / tells, such as how much there is.

    The answer is a list with one text for each query, in order: a JSON object whose `results` are {"<knowledge>", "<coherence>"},
    as Graph-R1's own service gives; beside them `id`, `sources` and `entities` of each fact.
    """

    async def told(_: Request) -> Response:
        return _json(about)

    async def search(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await request.body(), type=Asked)
        except msgspec.DecodeError as error:
            return _json({"error": f'{error}; the body is {{"queries": ["...", ...]}}'}, 400)
        if len(asked.queries) > MOST_QUERIES or not 0 < asked.at_most <= MOST_FACTS:
            limits = f"at most {MOST_QUERIES} queries, and `at_most` from 1 to {MOST_FACTS}"
            return _json({"error": limits}, 400)
        lookups = [Lookup(query, at_most=asked.at_most) for query in asked.queries]
        found = await asyncio.to_thread(knowledge.look_up, lookups)
        if failed := next((one for one in found if isinstance(one, Failure)), None):
            return _json({"error": failed.message or failed.kind}, 503)
        return _json([_written(one) for one in found if isinstance(one, Found)])

    return Starlette(routes=[Route("/", told), Route("/search", search, methods=["POST"])])


def _written(found: Found) -> str:
    results = [
        {
            "<knowledge>": fact.text,
            "<coherence>": round(fact.score, 3),
            "id": fact.id,
            "sources": fact.sources,
            "entities": fact.entities,
        }
        for fact in found.facts
    ]
    return msgspec.json.encode({"results": results}).decode()


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
