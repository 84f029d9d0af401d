"""A tape: the outcomes of calls that were made once, played to a router that asks for the same calls again."""

from collections import defaultdict, deque
from collections.abc import Iterable

from turnout.conversation import Conversation
from turnout.errors import TapeMiss
from turnout.routing.asked import Asked, asked_key
from turnout.routing.core import Ask, Decision, Outcome, Routed
from turnout.steps import Run


class Tape:
    """Recorded outcomes of one turn. Each is played once; equal asks get theirs in the order they were recorded. `heard`: those
    that were asked for so far."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self.heard: list[Asked] = []
        self._left: dict[str, deque[Asked]] = defaultdict(deque)
        for one in asked:
            self._left[one.key].append(one)

    def play(self, ask: Ask, conversation: Conversation) -> Outcome:
        """The outcome of an ask made for a turn with this conversation. Raises TapeMiss for one that was not recorded: an answer
        to another question is never passed off as this one's."""
        recorded = self._left[asked_key(ask, conversation)]
        if not recorded:
            raise TapeMiss(f"the recording holds no answer of {ask.target} to this {ask.purpose} call")
        found = recorded.popleft()
        self.heard.append(found)
        return found.outcome

    @property
    def left(self) -> tuple[Asked, ...]:
        """What has not been asked for."""
        return tuple(one for queue in self._left.values() for one in queue)


def played(work: Routed, tape: Tape, conversation: Conversation) -> Decision:
    """The decision of a router whose calls the tape answers. Raises TapeMiss, and whatever the router raises."""
    run: Run[Ask, Outcome, Decision] = Run(work)
    try:
        while not run.done:
            run.feed([tape.play(ask, conversation) for ask in run.pending])
        return run.result
    finally:
        run.close()
