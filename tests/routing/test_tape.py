"""A tape answers the calls it holds and no others."""

import msgspec
import pytest

from turnout.conversation import Conversation, Message, Note, Reply, Settings, Text, Tool, ToolCall, Usage
from turnout.errors import TapeMiss
from turnout.routing import Answer, Ask, Failure, TargetName, Why
from turnout.routing.asked import Asked, asked, asked_key
from turnout.routing.core import Asking, Decision, ask, ask_all
from turnout.routing.tape import Tape, played

SMALL, LARGE = TargetName("small"), TargetName("large")
TURN = Conversation((Message("user", (Text("fix it"),)),), tools=(Tool("bash"),))
OTHER = Conversation((Message("user", (Text("is it fixed?"),)),), system=(Text("You judge."),))
REPLY = Reply((Text("done"), ToolCall("c1", "bash", '{"a": 1.50}')), usage=Usage(3, 4), id="r", frames=b"data: x\n\n")


def test_an_outcome_comes_back_without_the_bytes_of_the_wire():
    for outcome in (REPLY, Failure("rate_limit", "slow down", 429, 2.5)):
        kept = msgspec.json.decode(msgspec.json.encode(asked(Ask(SMALL, TURN), TURN, outcome)), type=Asked)
        expected = msgspec.structs.replace(outcome, frames=None) if isinstance(outcome, Reply) else outcome
        assert Tape([kept]).play(Ask(SMALL, TURN), TURN) == expected


@pytest.mark.parametrize(
    "other",
    [
        Ask(LARGE, OTHER, "judge"),
        Ask(SMALL, OTHER, "draft"),
        Ask(SMALL, TURN, "judge"),
        Ask(SMALL, msgspec.structs.replace(OTHER, system=(Text("You judge harshly."),)), "judge"),
        Ask(SMALL, msgspec.structs.replace(OTHER, messages=(Message("user", (Text("Is it fixed?"),)),)), "judge"),
        Ask(SMALL, msgspec.structs.replace(OTHER, tools=(Tool("bash"),)), "judge"),
        Ask(SMALL, OTHER, "judge", settings=Settings(max_tokens=9)),
        Ask(SMALL, OTHER, "judge", edits=(Note("hurry"),)),
    ],
)
def test_another_question_is_a_miss(other: Ask):
    made = Ask(SMALL, OTHER, "judge", settings=Settings(max_tokens=8))
    tape = Tape([asked(made, TURN, REPLY)])
    with pytest.raises(TapeMiss, match=f"{other.target}.*{other.purpose}"):
        tape.play(other, TURN)
    assert len(tape.left) == 1
    assert tape.play(msgspec.structs.replace(made, within_s=1.0), TURN).text == "done"  # type: ignore[union-attr]
    with pytest.raises(TapeMiss):
        tape.play(made, TURN)
    assert tape.left == ()


def test_the_turns_own_conversation_is_told_from_one_that_says_the_same():
    """A call with the turn's own conversation goes out as the client wrote it, one with a copy is written anew."""
    copy = msgspec.structs.replace(TURN)
    assert asked_key(Ask(SMALL, TURN), TURN) != asked_key(Ask(SMALL, copy), TURN)


def test_calls_made_at_once_are_told_apart_and_equal_ones_keep_their_order():
    asks = (Ask(SMALL, TURN), Ask(LARGE, TURN), Ask(SMALL, TURN))

    def route() -> Asking[Decision]:
        outcomes = yield from ask_all(*asks)
        texts = [outcome.text if isinstance(outcome, Reply) else outcome.kind for outcome in outcomes]
        last = yield from ask(LARGE, OTHER, "judge")
        assert isinstance(last, Reply)
        return Answer(last, LARGE, Why("vote", " ".join(texts)))

    outcomes = [Reply((Text("one"),)), Failure("timeout"), Reply((Text("two"),))]
    recorded = [asked(one, TURN, outcome) for one, outcome in zip(asks, outcomes, strict=True)]
    judged = asked(Ask(LARGE, OTHER, "judge"), TURN, Reply((Text("three"),)))
    tape = Tape([judged, recorded[1], recorded[0], recorded[2]])
    assert played(route(), tape, TURN).why.sentence == "one timeout two"


def test_a_miss_unwinds_the_router():
    unwound = []

    def route() -> Asking[Decision]:
        try:
            yield from ask(SMALL, TURN)
        finally:
            unwound.append(True)
        raise AssertionError("it went on")

    with pytest.raises(TapeMiss):
        played(route(), Tape([]), TURN)
    assert unwound == [True]
