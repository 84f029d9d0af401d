"""The routes, listed as models in the caller's dialect."""

import datetime
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from turnout.errors import ClientError
from turnout.gateway import cards
from turnout.gateway.opened import Gateway

_PAGE = 1000


def models(gateway: Gateway, headers: Iterable[tuple[bytes, bytes]], query: Mapping[str, str]) -> bytes:
    """The model list: Anthropic's shape where the caller sends `anthropic-version`, else OpenAI's, with the cards in
    `models` that Codex reads instead of `data` (it alone sends `client_version`). Paging (`limit`, `after_id`) is Anthropic's.
    Raises ClientError."""
    names = gateway.models_offered()
    if not _is_anthropic(headers):
        data = [card(gateway, name, headers) for name in names]
        described = cards.cards(gateway.config, names) if "client_version" in query else []
        return msgspec.json.encode({"object": "list", "data": data, "models": described})
    limit = _limit(query)
    after = query.get("after_id")
    start = names.index(after) + 1 if after in names else 0
    shown = names[start : start + limit]
    return msgspec.json.encode(
        {
            "data": [card(gateway, name, headers) for name in shown],
            "first_id": shown[0] if shown else None,
            "last_id": shown[-1] if shown else None,
            "has_more": start + limit < len(names),
        }
    )


def card(gateway: Gateway, name: str, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """One model in the caller's shape."""
    route = gateway.route(name)
    created = int(gateway.began)
    if _is_anthropic(headers):
        at = datetime.datetime.fromtimestamp(created, datetime.UTC)
        label = route.description or f"Turnout route {route.name}"
        return {"type": "model", "id": name, "display_name": label, "created_at": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"id": name, "object": "model", "created": created, "owned_by": "turnout"}


def etag(body: bytes) -> str:
    """A strong validator of a listing."""
    return f'"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'


def _is_anthropic(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"anthropic-version" for name, _ in headers)


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "20")
    if not text.isdigit() or not 1 <= int(text) <= _PAGE:
        raise ClientError(f"limit must be a whole number from 1 to {_PAGE}", param="limit")
    return int(text)
