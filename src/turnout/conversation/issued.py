"""What only its issuer can read: signatures, redacted thinking, encrypted reasoning. Who made which is told by marks."""

import hashlib
from collections.abc import Sequence
from typing import Any

from turnout.conversation.parts import Part, Reasoning, ToolCall

MARK_BYTES = 6


def mark(payload: str) -> str:
    """A short digest of an opaque payload: the same wherever that is seen again, and nothing can be read from it."""
    return hashlib.blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=MARK_BYTES).hexdigest()


def payloads(part: Part) -> tuple[str, ...]:
    """The opaque payloads of a part, none for what anybody can read."""
    if isinstance(part, Reasoning):
        own = tuple(text for text in (part.signature, part.encrypted) if text)
        return own + details_payloads(part.details) if part.details else own
    if isinstance(part, ToolCall) and part.extra:
        found = thought_signature(part.extra)
        return (found,) if found else ()
    return ()


def details_payloads(details: Sequence[Any]) -> tuple[str, ...]:
    """The opaque payloads among `reasoning_details` of Chat-compatible servers."""
    return tuple(
        text
        for detail in details
        if isinstance(detail, dict)
        for text in (detail.get("signature"), detail.get("data"))
        if isinstance(text, str) and text
    )


def thought_signature(call: dict[str, Any]) -> str:
    """The signature that Gemini behind Chat puts on a call (its fields, decoded); "" for none."""
    extra = call.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    found = google.get("thought_signature") if isinstance(google, dict) else None
    return found if isinstance(found, str) else ""


def without_thought_signature(call: dict[str, Any]) -> dict[str, Any]:
    """A call's fields without that signature, and without what held nothing else."""
    extra = call["extra_content"]
    google = {key: value for key, value in extra["google"].items() if key != "thought_signature"}
    rest = {**extra, "google": google} if google else {key: value for key, value in extra.items() if key != "google"}
    if rest:
        return {**call, "extra_content": rest}
    return {key: value for key, value in call.items() if key != "extra_content"}
