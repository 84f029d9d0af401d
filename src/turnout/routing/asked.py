"""What a router asked for while it decided, and what came of it, in a form that can be kept and played again."""

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Reply
from turnout.routing.core import Ask, Failure, Outcome


class Asked(Struct, frozen=True, omit_defaults=True):
    """An ask and its outcome: a reply or a failure. `key`: of `asked_key`."""

    key: str
    target: str
    purpose: str
    reply: Reply | None = None
    failure: Failure | None = None

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if self.reply is not None:
            return self.reply
        return self.failure or Failure("unavailable", "the recording does not say what came of this call")


def asked(ask: Ask, conversation: Conversation, outcome: Outcome) -> Asked:
    """An ask made on behalf of a turn with this conversation, to be kept. The upstream's own bytes are left out: no decision
    rests on them."""
    key = asked_key(ask, conversation)
    if isinstance(outcome, Failure):
        return Asked(key, ask.target, ask.purpose, failure=outcome)
    reply = msgspec.structs.replace(outcome, frames=None) if outcome.frames is not None else outcome
    return Asked(key, ask.target, ask.purpose, reply=reply)


def asked_key(ask: Ask, conversation: Conversation) -> str:
    """A digest of all that the model is asked: the same for the same question about the same conversation, whoever asks it.
    How long the answer was waited for does not count."""
    digest = blake2b(digest_size=12)
    digest.update(_encoder.encode((ask.target, ask.purpose, ask.edits, ask.settings)))
    own = ask.conversation
    if own is conversation:
        digest.update(b"the turn's own")
    else:
        for part in own.system:
            digest.update(_encoder.encode(part))
        for message in own.messages:
            digest.update(_encoder.encode(message))
        digest.update(b"the turn's own" if own.tools is conversation.tools else _encoder.encode(list(own.tools)))
    return digest.hexdigest()


def _plain(value: Any) -> str:
    return repr(value)


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
