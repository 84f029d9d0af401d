"""Keeps what only one model can read away from the others.

Signed thinking and encrypted reasoning are valid for the model that made them; another model's server refuses the request
that holds them. The gateway notes, per lane, which targets have answered with reasoning. While that is one target, its
artefacts go back to it byte for byte; once it is another's turn, they are left out of what that one is sent.
"""

from typing import Any, ClassVar

from msgspec import Struct

from turnout.conversation import DropForeignReasoning, Edit
from turnout.routing.core import Placed, State
from turnout.upstream.models import Model
from turnout.wire.codec import Request

PLACE = "gateway"
_KEY = f"{PLACE}/Reasoners"
_UNSIGNED = b'"signature":""'
_DROP: tuple[Edit, ...] = (DropForeignReasoning(),)


class Reasoned(Struct, frozen=True, tag="reasoned", tag_field="event"):
    """`target` answered this lane with reasoning."""

    target: str


class Reasoners(State, frozen=True):
    """The targets whose reasoning the conversation may hold."""

    events: ClassVar[tuple[type[Struct], ...]] = (Reasoned,)

    targets: tuple[str, ...] = ()

    def after(self, event: Any) -> "Reasoners":
        """With the event's target among them."""
        return self if event.target in self.targets else Reasoners((*self.targets, event.target))


def reasoners(states: Any) -> tuple[str, ...]:
    """The targets whose reasoning the conversation of these states may hold."""
    state = states.get(_KEY)
    return state.targets if isinstance(state, Reasoners) else ()


def hygiene(request: Request, model: Model, known: tuple[str, ...]) -> tuple[Edit, ...]:
    """The edits that keep other models' artefacts from `model`."""
    if any(name != model.name for name in known):
        return _DROP
    # Thinking without a signature was written for the client by a translation; no Messages server takes it back.
    if model.format == "anthropic_messages" == request.format and _UNSIGNED in request.body:
        return _DROP
    return ()


def shows_reasoning(data: bytes) -> bool:
    """Whether bytes of a reply, in any format, may hold reasoning."""
    return b'"signature' in data or b"reasoning" in data or b'"encrypted_' in data or b'"redacted_' in data


def reasoned(target: str) -> Placed:
    """The event that `target` answered with reasoning."""
    return Placed(PLACE, Reasoned(target))
