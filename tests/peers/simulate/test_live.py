"""What a simulation plays is what the router does: both decide the same questions, given the same answers, votes and draws."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.peers.worked import WORKED

from turnout.conversation import Conversation, Message, Reply, Settings, Text
from turnout.peers.graph import relations
from turnout.peers.simulate.playing import CallPrices, Playing
from turnout.peers.simulate.recorded import Question
from turnout.routing.collaboration.chain import Ended
from turnout.routing.collaboration.electorate import Electorate
from turnout.routing.collaboration.graph import Graph, Manifest, Relations
from turnout.routing.collaboration.router import Collaboration
from turnout.routing.core import Answer, Ask, Decision, Lane, TargetName, Turn
from turnout.signals import Signals
from turnout.steps import Run

POOL = ("a", "b", "c", "d", "e")
PRICES = CallPrices((5.0, 1.0, 3.0, 2.0, 4.0))
ASKED = Conversation((Message("user", (Text("What is it?"),)),))


def question(marks: tuple[int, ...]) -> Question:
    return Question("q", "", marks, tuple(float(mark == 0) for mark in marks), ())


def said(place: int, marks: tuple[int, ...]) -> str:
    """An answer that nobody else gives to the letter, though others may say the same."""
    return f"it is{' ' * (place + 1)}{marks[place]}"


def live(router: Collaboration, turn: Turn, marks: tuple[int, ...]) -> Decision:
    """The router's decision where everybody gives its recorded answer and approves of those that say the same."""
    run: Run[Ask, Any, Decision] = Run(router.route(turn))
    texts = {said(place, marks): marks[place] for place in range(len(POOL))}

    def outcome(ask: Ask) -> Reply:
        place = POOL.index(ask.target)
        if ask.purpose != "vote":
            return Reply((Text(said(place, marks)),), "end")
        shown = next(text for text in texts if f"\n{text}\n" in ask.conversation.messages[0].parts[0].text)  # type: ignore[union-attr]
        opinion = {"reason": "", "severity": "none", "approve": texts[shown] == marks[place]}
        return Reply((Text(json.dumps(opinion)),), "end")

    while not run.done:
        run.feed([outcome(ask) for ask in run.pending])
    return run.result


def bound(found: Relations, **settings: Any) -> Collaboration:
    own = {name: getattr(found, name) for name in Relations.__struct_fields__}
    graph = Graph(**own, models=POOL, manifest=Manifest(made_at=datetime.now(UTC).isoformat()))
    models = {name: TargetName(name) for name in POOL}
    router = msgspec.convert(
        {"type": "collaboration", "graph": "-", "models": models, "caps": {"calls": 1000}, **settings}, Collaboration
    )
    router.bind(graph)
    return router


def simulated(router: Collaboration, found: Relations, turn: Turn, marks: tuple[int, ...], first: str) -> Ended:
    """The chain that a simulation plays, with the turn's dice."""
    electorate = Electorate(POOL, found.known_received, found.anchors, found.voters, found.others)
    playing = Playing(router.rules, POOL, lambda _: electorate, PRICES, optimistic=False, shared=False)
    return playing._run(question(marks), electorate, POOL.index(first), router._dice(turn))


def agree(router: Collaboration, found: Relations, turn: Turn, marks: tuple[int, ...], first: str) -> None:
    decision, ended = live(router, turn, marks), simulated(router, found, turn, marks, first)
    assert isinstance(decision, Answer)
    hops = decision.why.values["hops"]
    assert [hop["author"] for hop in hops] == [hop.author for hop in ended.hops]
    assert [
        [(v["voter"], v["rung"], v["approve"], v.get("copied", False)) for v in hop.get("votes", ())] for hop in hops
    ] == [[(b.voter, b.rung, b.vote, b.copied) for b in hop.ballots] for hop in ended.hops]
    assert decision.why.values["status"] == ended.status
    assert decision.why.values["chosen"] == ended.chosen
    assert decision.why.values["supporters"] == list(ended.supporters)
    assert decision.reply.text == said(POOL.index(ended.hops[ended.chosen].author), marks)


def turned(name: str) -> Turn:
    return Turn(name, Lane(), ASKED, Settings(), Signals(said_at=0), {}, now=datetime.now(UTC).timestamp())


@pytest.mark.parametrize("mode", ["paper", "default"])
@pytest.mark.parametrize("first", POOL)
def test_on_the_worked_example(mode: str, first: str) -> None:
    rename = dict(zip(WORKED["models"], POOL, strict=True))
    scores = {rename[j]: {rename[i]: s for i, s in row.items()} for j, row in WORKED["scores"].items()}
    found = relations.relate(POOL, scores, relations.Settings())
    for number, marks in enumerate(
        [(0, 0, 0, 1, 1), (0, 1, 2, 3, 4), (0, 1, 0, 1, 0), (1, 0, 1, 0, 0), (0, 0, 0, 0, 0)]
    ):
        agree(bound(found, mode=mode, prefer=[first]), found, turned(f"t{number}"), marks, first)


cells = st.lists(st.lists(st.integers(1, 10), min_size=5, max_size=5), min_size=5, max_size=5)


@given(
    cells,
    st.sampled_from([25.0, 50.0, 100.0]),
    st.sampled_from(
        [
            {"mode": "paper"},
            {},
            {"picker": "weighted"},
            {"picker": "max_received", "approval": 0.5},
            {"supplement": True},
        ]
    ),
    st.integers(0, 5),
    st.tuples(*[st.integers(0, 2)] * 5),
    st.sampled_from(POOL),
    st.text(max_size=3),
)
def test_on_any_graph(
    rows: list[list[int]],
    d2: float,
    settings: dict[str, Any],
    alpha: int,
    marks: tuple[int, ...],
    first: str,
    name: str,
) -> None:
    scores = {
        judge: {author: float(rows[j][i]) for i, author in enumerate(POOL) if i != j} for j, judge in enumerate(POOL)
    }
    found = relations.relate(POOL, scores, relations.Settings(d2=d2))
    agree(bound(found, alpha=alpha, prefer=[first], **settings), found, turned(name), marks, first)
