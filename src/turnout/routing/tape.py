"""A tape: the outcomes of calls that were made once, played to a router that asks for the same calls again."""

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

from turnout.conversation import Conversation
from turnout.errors import TapeMiss
from turnout.routing.asked import Asked, asked_key
from turnout.routing.core import Ask, Decision, Outcome, Routed
from turnout.routing.retrieval.facts import Lookup, LookupOutcome
from turnout.routing.retrieval.looked_up import LookedUp
from turnout.steps import Run


class Tape:
    """Recorded outcomes of one turn: of calls of models, and of look-ups. Each is played once; equal asks get theirs in the order
    they were recorded. `heard`: those that were asked for so far."""

    def __init__(self, asked: Iterable[Asked], lookups: Iterable[LookedUp] = ()) -> None:
        self.heard: list[Asked] = []
        self._left: dict[str, deque[Asked]] = defaultdict(deque)
        for one in asked:
            self._left[one.key].append(one)
        self._lookups = list(lookups)

    def play(self, ask: Ask, conversation: Conversation) -> Outcome:
        """The outcome of an ask made for a turn with this conversation. Raises TapeMiss for one that was not recorded: an answer
        to another question is never passed off as this one's."""
        recorded = self._left[asked_key(ask, conversation)]
        if not recorded:
            raise TapeMiss(f"the recording holds no answer of {ask.target} to this {ask.purpose} call")
        found = recorded.popleft()
        self.heard.append(found)
        return found.outcome

    def look_up(self, lookup: Lookup) -> LookupOutcome:
        """The outcome of a look-up. Raises TapeMiss for one that was not recorded, or not with its facts."""
        for at, one in enumerate(self._lookups):
            if one.answers(lookup):
                outcome = one.outcome
                del self._lookups[at]
                return outcome
        raise TapeMiss("the recording holds nothing of what is looked up here")

    @property
    def left(self) -> tuple[Asked, ...]:
        """What has not been asked for."""
        return tuple(one for queue in self._left.values() for one in queue)


def played(work: Routed, tape: Tape, conversation: Conversation) -> Decision:
    """The decision of a router whose calls the tape answers. Raises TapeMiss, and whatever the router raises."""
    run: Run[Any, Any, Decision] = Run(work)
    try:
        while not run.done:
            run.feed(
                [
                    tape.look_up(call) if isinstance(call, Lookup) else tape.play(call, conversation)
                    for call in run.pending
                ]
            )
        return run.result
    finally:
        run.close()
