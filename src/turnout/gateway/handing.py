"""Gives a model that takes over the hand-over note, where the route asks for one."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turnout.conversation import Edit, Note
from turnout.gateway.artefacts import makers, same_model
from turnout.routing.handover.note import HandOver, handover
from turnout.upstream.models import Model

if TYPE_CHECKING:
    from turnout.gateway.serving import Serving


def handed(serving: "Serving", model: Model) -> HandOver | None:
    """The note that `model` gets of this turn: None unless the route wants notes and another model served the lane last.

    It is made for this call only. Nothing of it reaches the client, so the next turn's body comes without it.
    """
    route, conversation = serving.route, serving.conversation
    if route is None or not route.handover_note or conversation is None or serving.agent.kind == "background":
        return None
    last = makers(serving.loaded.states).last
    if not last or same_model(last, model, serving.gateway.models):
        return None
    if serving.handover is None:
        made, clean = handover(conversation, serving.signals), serving.gateway.redactor.clean
        serving.handover = replace(made, lines=tuple(replace(line, text=clean(line.text)) for line in made.lines))
    return serving.handover if serving.handover.lines else None


def note_for(serving: "Serving", model: Model) -> tuple[Edit, ...]:
    """The edit that puts the note at the end of what `model` is sent."""
    note = handed(serving, model)
    return (Note(note.text),) if note is not None else ()
