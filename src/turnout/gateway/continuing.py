"""What a request continues: the conversation that a `previous_response_id` stands for, and the lane it belongs to."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from turnout.conversation import Conversation
from turnout.errors import ClientError
from turnout.gateway.opened import Gateway
from turnout.routing.core import AgentInfo, Lane
from turnout.sessions.identity import identify
from turnout.sessions.responses import StoredResponse
from turnout.wire.codec import Request


class Continued(NamedTuple):
    """A request in its place: the whole conversation, the response it continues (None when it stands alone), whose it is."""

    conversation: Conversation
    stored: StoredResponse | None
    lane: Lane
    agent: AgentInfo


async def continued(gateway: Gateway, request: Request, headers: Mapping[bytes, bytes], tenant: str) -> Continued:
    """The place of `request`. `headers`: names in lower case. Raises ClientError for what cannot be continued here."""
    settings = request.settings
    if settings.background:
        raise ClientError(
            "background responses cannot be polled through this gateway; send the request without `background`",
            code="unsupported_feature",
            param="background",
        )
    conversation = request.conversation
    stored = None
    if settings.previous_response_id is not None:
        stored = await gateway.responses.find(settings.previous_response_id)
        if stored is None or stored.lane.tenant != tenant:
            raise ClientError(
                f"previous_response_id {settings.previous_response_id[:80]!r} is not known here (never issued by this "
                "gateway, not stored, or expired); send the whole conversation instead",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        conversation = msgspec.structs.replace(
            conversation, messages=(*stored.messages, *conversation.messages), roles=()
        )
    lane, agent = identify(headers, conversation, settings, tenant)
    if stored is not None and lane.rung in ("fingerprint", "none"):
        lane = msgspec.structs.replace(stored.lane, rung="chain")
    return Continued(conversation, stored, lane, agent)
