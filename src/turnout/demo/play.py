"""Drives a session through the gateway, turn by turn."""

from collections.abc import Iterator

from msgspec import Struct

from turnout.demo.clients import Answered, talk
from turnout.demo.session import Session, Step
from turnout.errors import TurnoutError


class Played(Struct, frozen=True):
    """A turn that was played: its number in the session from 1, the recording, and what came back."""

    number: int
    step: Step
    answered: Answered


def play(session: Session, url: str, route: str, lane: str) -> Iterator[Played]:
    """Play `session` on `route`. Raises TurnoutError when the replies are not those of the recording."""
    conversation = talk(session, url, route, lane)
    for number, step in enumerate(session.steps, 1):
        if step.user:
            conversation.say(step.user)
        answered = conversation.answer()
        if [(c.name, c.arguments) for c in answered.calls] != [(c.name, c.arguments) for c in step.calls]:
            raise TurnoutError(f"turn {number} of {session.title!r} came back with other tool calls than recorded")
        if answered.calls:
            conversation.results(answered.calls, step.results)
        yield Played(number, step, answered)
