"""An agent's lane in tests of routers that remember: turns in, events folded by the rules of the session store."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from tests.story import Story

from turnout.conversation import Reply, Settings, Text
from turnout.routing import AgentInfo, Ask, Decision, Failure, Forward, Lane, Outcome, Router, Turn, Why
from turnout.routing.core import TargetFacts, TargetName
from turnout.sessions.store import folded
from turnout.signals import observe
from turnout.steps import Run

SMALL, LARGE, JUDGE = TargetName("small"), TargetName("large"), TargetName("judge")
LANE = Lane("", "s", "", "header")
Answers = Callable[[Ask], Outcome]


def facts(*names: str) -> dict[TargetName, TargetFacts]:
    """Facts of targets that are merely there."""
    return {TargetName(name): TargetFacts(TargetName(name), name, "openai_chat") for name in names}


class Played:
    """A router in one lane. `answers` gives the outcome of each ask; `asked` keeps them all."""

    def __init__(
        self, router: Router, answers: Answers | None = None, lane: Lane = LANE, agent: AgentInfo | None = None
    ) -> None:
        self.router = router
        self.answers = answers or (lambda ask: Reply((Text("done"),)))
        self.lane = lane
        self.agent = agent or AgentInfo()
        self.story = Story()
        self.states: dict[str, Any] = {}
        self.asked: list[Ask] = []
        self.turns = 0
        self.targets = facts("small", "large", "judge")

    def turn(self, **more: Any) -> Turn:
        """The turn that would come next."""
        self.turns += 1
        conversation = self.story.conversation
        known = {
            "lane": self.lane,
            "settings": Settings(),
            "memory": self.states,
            "now": 1e9 + self.turns,
            "agent": self.agent,
            "targets": self.targets,
        }
        return Turn(
            id=f"t{self.turns}",
            conversation=conversation,
            signals=observe(conversation),
            **{**known, **more},
        )

    def replayed(self, turn: Turn, run: "Run[Ask, Outcome, Decision]") -> None:
        """The same turn and outcomes give the same asks and the same decision."""
        second: Run[Ask, Outcome, Decision] = Run(self.router.route(turn))
        for asks, outcomes in run.log:
            assert second.pending == asks
            second.feed(outcomes)
        assert second.result == run.result

    def play(self, commit: bool = True, **more: Any) -> Decision:
        """Route the next turn; `commit` False: the client hung up before anything was remembered."""
        turn = self.turn(**more)
        run: Run[Ask, Outcome, Decision] = Run(self.router.route(turn))
        while not run.done:
            self.asked += run.pending
            run.feed([self.answers(ask) for ask in run.pending])
        if "Choosing(" not in repr(self.router):  # those count
            self.replayed(turn, run)
        if commit:
            # As a store would keep them: what cannot be written and read again must not be remembered.
            self.states = folded(self.states, [again(event) for event in run.result.remember])
        return run.result


def again(event: Any) -> Any:
    """An event after a round through JSON."""
    return msgspec.json.decode(msgspec.json.encode(event), type=type(event)) if not hasattr(event, "place") else event


def failing(kind: Any = "unavailable", status: int | None = None) -> Answers:
    """Answers of targets that all fail."""
    return lambda ask: Failure(kind, "no answer", status)


class Choosing(msgspec.Struct, frozen=True, tag="choosing", tag_field="type"):
    """A router whose choices a test dictates, in order; the last one repeats. `abstained`: those turns it abstains on."""

    choices: Sequence[str] = ("small",)
    abstained: Sequence[int] = ()
    count: list[int] = msgspec.field(default_factory=list)

    @property
    def otherwise(self) -> TargetName:
        return TargetName(self.choices[-1])

    def route(self, turn: Turn) -> Forward:
        n = len(self.count)
        self.count.append(n)
        target = TargetName(self.choices[min(n, len(self.choices) - 1)])
        return Forward(target, Why("classifier", f"choice {n}", abstained=n in self.abstained))
