"""What a request continues: the conversation that a `previous_response_id` and the ids of items stand for, and its lane."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Raw

from turnout.conversation import Conversation
from turnout.errors import ClientError
from turnout.gateway.opened import Gateway
from turnout.routing.core import AgentInfo, Lane
from turnout.sessions.identity import identify
from turnout.sessions.responses import ResponseStore, StoredResponse
from turnout.wire.codec import Request
from turnout.wire.responses.references import named_items, names_items, with_items


class Continued(NamedTuple):
    """A request in its place: the whole conversation, the responses it was completed from (none when it stands alone), whose
    it is."""

    conversation: Conversation
    sources: tuple[StoredResponse, ...]
    lane: Lane
    agent: AgentInfo


async def continued(gateway: Gateway, request: Request, headers: Mapping[bytes, bytes], tenant: str) -> Continued:
    """The place of `request`. `headers`: names in lower case. Raises ClientError for what cannot be continued here.

    An item's id that is not known here stays: the server that the request goes to may know it.
    """
    settings = request.settings
    if settings.background:
        raise ClientError(
            "background responses cannot be polled through this gateway; send the request without `background`",
            code="unsupported_feature",
            param="background",
        )
    conversation = request.conversation
    stored: StoredResponse | None = None
    if settings.previous_response_id is not None:
        stored = await gateway.responses.find(settings.previous_response_id)
        if stored is None or stored.id != settings.previous_response_id or stored.lane.tenant != tenant:
            raise ClientError(
                f"previous_response_id {settings.previous_response_id[:80]!r} is not known here (never issued by this "
                "gateway, not stored, or expired); send the whole conversation instead",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        conversation = msgspec.structs.replace(
            conversation, messages=(*stored.messages, *conversation.messages), roles=()
        )
    sources: tuple[StoredResponse, ...] = (stored,) if stored is not None else ()
    if request.format == "openai_responses" and names_items(request.body):
        conversation, named = await _spelled_out(gateway.responses, conversation, tenant)
        sources = (*sources, *named)
    lane, agent = identify(headers, conversation, settings, tenant)
    if stored is not None and lane.rung in ("fingerprint", "none"):
        lane = msgspec.structs.replace(stored.lane, rung="chain")
    return Continued(conversation, sources, lane, agent)


async def _spelled_out(
    responses: ResponseStore, conversation: Conversation, tenant: str
) -> tuple[Conversation, tuple[StoredResponse, ...]]:
    items: dict[str, Raw] = {}
    sources: list[StoredResponse] = []
    for name in named_items(conversation):
        if name in items:
            continue
        source = await responses.find(name)
        if source is not None and source.lane.tenant == tenant and name in source.items:
            sources.append(source)
            items.update(source.items)
    return (with_items(conversation, items) if items else conversation), tuple(sources)
