"""Reasoning of another provider, carried through a client of Responses inside `encrypted_content`.

A client of Responses returns reasoning items untouched, so what only the issuer can read (a signature, redacted thinking,
`reasoning_details`) travels there and is whole again on the next turn, whatever the client did to the readable summary.
"""

import base64
import binascii

import msgspec
from msgspec import Struct

from turnout.conversation import Reasoning

_MARK = "turnout-reasoning-1."
_MARK_BYTES = _MARK.encode()
_DECODER: msgspec.json.Decoder["_Sealed"]


class _Sealed(Struct, omit_defaults=True):
    part: Reasoning


_DECODER = msgspec.json.Decoder(_Sealed)


def needs_seal(part: Reasoning) -> bool:
    """Whether `part` holds something that only its issuer, not the Responses API, can read."""
    return part.origin != "openai_responses" and (
        part.signature is not None or part.encrypted is not None or part.redacted or part.details is not None
    )


def seal(part: Reasoning) -> str:
    """`part` as an `encrypted_content`."""
    return _MARK + base64.urlsafe_b64encode(msgspec.json.encode(_Sealed(part))).decode()


def holds_seal(body: bytes) -> bool:
    """Whether sealed reasoning may be somewhere in this JSON text."""
    return _MARK_BYTES in body


def is_sealed(encrypted: object) -> bool:
    """Whether `seal` wrote this."""
    return isinstance(encrypted, str) and encrypted.startswith(_MARK)


def unseal(encrypted: str) -> Reasoning | None:
    """The reasoning that `seal` put there; None for what any other party wrote."""
    if not encrypted.startswith(_MARK):
        return None
    try:
        return _DECODER.decode(base64.urlsafe_b64decode(encrypted[len(_MARK) :])).part
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
