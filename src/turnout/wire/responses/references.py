"""Items that a client names by id instead of sending them again: the ids a reply gave it, and what they stand for."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw, Struct

from turnout.conversation import Conversation, Message, Opaque, Reply
from turnout.wire.drops import Drops
from turnout.wire.responses.content import FORMAT
from turnout.wire.responses.reading import read_item
from turnout.wire.responses.write_reply import Ids, output_items
from turnout.wire.sse import SSEParser

LEAST_ID = 20
"""Characters of an id that names one item only: some servers count the items of every reply from 0."""
_DONE = b'"response.output_item.done"'


class _Body(Struct):
    output: list[Raw] = []


class _Done(Struct):
    item: Raw


class _Named(Struct):
    id: str = ""


_BODY = msgspec.json.Decoder(_Body)
_EVENT = msgspec.json.Decoder(_Done)
_NAMED = msgspec.json.Decoder(_Named)
_encode = msgspec.json.encode


def given_items(reply: Reply, frames: bytes) -> dict[str, Raw]:
    """The output items of a reply that a client got, by their ids.

    `frames`: the bytes it got (a JSON body or a stream); b"" where `reply` is still being written for it. What cannot be read
    or has no id of its own is left out: it has been delivered all the same.
    """
    if frames:
        found: dict[str, Raw] = {}
        try:
            for item in _items_in(frames):
                name = _NAMED.decode(item).id
                if len(name) >= LEAST_ID:
                    found[name] = Raw(bytes(item))
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        return found
    return {
        item["id"]: Raw(_encode(item)) for item in output_items(reply.parts, Ids(reply.id), Drops()) if "id" in item
    }


def _items_in(frames: bytes) -> Iterator[Raw]:
    if frames.lstrip().startswith(b"{"):
        yield from _BODY.decode(frames).output
        return
    parser = SSEParser()
    for event in (*parser.feed(frames), *parser.rest()):
        if _DONE in event.data:
            yield _EVENT.decode(event.data).item


def names_items(body: bytes) -> bool:
    """Whether a request may name items by id. Costs one pass over the bytes."""
    return body.find(b'item_reference"') >= 0


def named_items(conversation: Conversation) -> list[str]:
    """The ids of items that a conversation names instead of holding them."""
    return [name for i in _candidates(conversation) if (name := _name(conversation.messages[i]))]


def with_items(conversation: Conversation, items: Mapping[str, Raw]) -> Conversation:
    """`conversation` with each item that it names replaced by the item itself, where `items` has it."""
    messages = list(conversation.messages)
    for i in _candidates(conversation):
        raw = items.get(_name(messages[i]))
        if raw is not None:
            messages[i] = read_item(raw, i)
    return msgspec.structs.replace(conversation, messages=tuple(messages))


def _candidates(conversation: Conversation) -> list[int]:
    if conversation.format != FORMAT:
        return []
    return [i for i, role in enumerate(conversation.roles) if role == "assistant"]


def _name(message: Message) -> str:
    part = message.parts[0] if len(message.parts) == 1 else None
    if not isinstance(part, Opaque) or part.type != "item_reference" or not isinstance(part.value, dict):
        return ""
    name = part.value.get("id")
    return name if isinstance(name, str) else ""
