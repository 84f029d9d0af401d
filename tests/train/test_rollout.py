"""Lockstep rollouts: the tokens of a trajectory are what was sampled and shown, whatever the others do."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.routing.retrieval.protocol import Role
from turnout.train.rollout import Limits, Rollout, Turned, rollouts

ASK = "<think>t</think><query>ada</query>"
TELL = "<think>t</think><answer>Ostby</answer>"
PLAIN = Limits()
FACTS = (Fact("f1", "Ada was born in Ostby."), Fact("f2", "Ostby is in Norland."))


class Characters:
    """A model whose tokens are characters, with a template of its own."""

    def prompt(self, text: str) -> list[int]:
        return [ord(c) for c in f"[{text}]"]

    def shown(self, text: str) -> list[int]:
        return [ord(c) for c in f"({text})"]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


def searched(lookups: Sequence[Lookup]) -> list[Found | Failure]:
    return [Failure("timeout", "slow") if one.query == "slow" else Found(FACTS) for one in lookups]


def played(plays: Sequence[Sequence[str]], limits: Limits = PLAIN) -> list[Rollout]:
    """Rollouts of models that say what they are told to, each according to the number at the end of its prompt."""

    def generate(contexts: list[list[int]], most: int) -> list[Turned]:
        turns = []
        for context in contexts:
            text = "".join(map(chr, context))
            row = int(text[1 : text.index("]")])
            said = text.count("(<")
            words = plays[row][said] if said < len(plays[row]) else "and so on"
            turns.append(Turned([ord(c) for c in words][:most], len(words) > most))
        return turns

    names = [str(i) for i in range(len(plays))]
    return rollouts(names, names, Characters(), generate, searched, limits)


def text(rollout: Rollout, roles: Sequence[Role]) -> str:
    return "".join(chr(id) for id, role in zip(rollout.completion, rollout.roles, strict=True) if role in roles)


def test_a_completion_is_what_was_said_and_shown_in_turn() -> None:
    (one,) = played([[ASK, TELL]])
    assert one.trajectory.answer == "Ostby"
    assert text(one, list(Role)).startswith(ASK + "(<knowledge>[{")
    assert text(one, list(Role)).endswith("</knowledge>)" + TELL)
    assert text(one, [Role.ANSWER]) == "<answer>Ostby</answer>"
    assert text(one, [Role.QUERY]) == "<query>ada</query>"
    assert text(one, [Role.REASONING]) == "<think>t</think>" * 2
    assert [bool(s) for s in one.sampled] == [role != Role.OBSERVATION for role in one.roles]
    assert one.prompt == Characters().prompt("0")


def test_a_long_observation_shows_the_facts_that_fit() -> None:
    (whole,) = played([[ASK, TELL]], Limits(style="lines"))
    (one,) = played([[ASK, TELL]], Limits(style="lines", shown_tokens=60))
    assert len(whole.trajectory.facts) == 2
    assert one.trajectory.facts == FACTS[:1]
    assert "Norland" not in text(one, [Role.OBSERVATION])


def test_no_room_ends_it_with_what_there_is() -> None:
    (one,) = played([[ASK, TELL]], Limits(tokens=len(ASK) + 10))
    assert one.trajectory.ended == "failed"
    assert one.trajectory.failure is not None
    assert one.trajectory.failure.kind == "overflow"
    assert text(one, list(Role)) == ASK
    (cut,) = played([[ASK, TELL]], Limits(tokens=len(ASK) - 3))
    assert (cut.trajectory.ended, len(cut.completion)) == ("cut", len(ASK) - 3)


PLAYS = st.lists(
    st.lists(st.sampled_from([ASK, TELL, "hm", "<think>t</think><query>slow</query>"]), max_size=4),
    min_size=1,
    max_size=5,
)


@given(PLAYS, st.integers(1, 4), st.integers(20, 400))
def test_rows_do_not_depend_on_one_another(plays: list[list[str]], turns: int, tokens: int) -> None:
    limits = Limits(turns=turns, tokens=tokens, turn_tokens=50)
    together = played(plays, limits)
    assert len(together) == len(plays)
    for i, rollout in enumerate(together):
        alone = played([*[[]] * i, plays[i]], limits)[i]
        assert alone == rollout
        assert len(rollout.completion) == len(rollout.sampled) == len(rollout.roles) == len(rollout.logprobs) <= tokens


def test_a_process_without_work_keeps_making_calls() -> None:
    calls: list[int] = []
    left = iter([True, True, True, False])

    def generate(contexts: list[list[int]], most: int) -> list[Turned]:
        calls.append(len(contexts))
        return [Turned([ord(c) for c in TELL]) for _ in contexts]

    (one,) = rollouts(["0"], ["0"], Characters(), generate, searched, Limits(), go_on=lambda active: next(left))
    assert calls == [1, 1, 1]
    assert text(one, list(Role)) == TELL
