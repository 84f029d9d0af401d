"""The retrieval router, driven by literals: what it asks, what it answers, and what it does not take."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.routing.lanes import facts

from turnout.conversation import (
    Conversation,
    Image,
    Media,
    Message,
    OutputFormat,
    Reasoning,
    Reply,
    Settings,
    Text,
    Tool,
    Usage,
)
from turnout.errors import ClientError, UpstreamError
from turnout.routing import Answer, Ask, Decision, Failure, Forward, Lane, Retrieval, TargetName, Turn
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.routing.retrieval.protocol import REMINDER, STOPS, instructions, write_knowledge
from turnout.signals import observe
from turnout.steps import Run

POLICY, OTHER = TargetName("small"), TargetName("large")
BORN = Fact("f1", "Ada was born in Ostby.", 0.9, ("p1",))
TOWN = Fact("f2", "Ostby is in Norland.", 0.8, ("p2", "https://example.org/ostby"))
ASK = '<think>t</think><query>{"query": "Ada"}</query>'
TELL = "<think>t</think><answer>Norland</answer>"


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def turn_of(*messages: Message, settings: Settings | None = None, **more: Any) -> Turn:
    conversation = Conversation(messages or (user("Where is Ada from?"),), **more)
    signals = observe(conversation)
    return Turn("t1", Lane(), conversation, settings or Settings(), signals, facts("small", "large"))


def said(text: str, stop: Any = "end", tokens: int = 10) -> Reply:
    return Reply((Text(text),), stop, Usage(tokens, 2), id=f"r{len(text)}", model="m")


def driven(router: Retrieval, outcomes: Sequence[Any], turn: Turn | None = None) -> tuple[Decision, list[Any]]:
    run: Run[Any, Any, Decision] = Run(router.route(turn or turn_of()))
    calls: list[Any] = []
    left = iter(outcomes)
    while not run.done:
        calls += run.pending
        run.feed([next(left) for _ in run.pending])
    assert next(left, None) is None
    return run.result, calls


ROUTER = Retrieval(POLICY, "facts")
WITH_OTHER = Retrieval(POLICY, "facts", otherwise=OTHER)


def test_it_asks_as_the_agent_does_and_cites_what_the_answer_rests_on() -> None:
    decision, calls = driven(ROUTER, [said(ASK), Found((BORN, TOWN)), said(TELL)])
    assert isinstance(decision, Answer)
    first, lookup, second = calls
    assert lookup == Lookup("Ada", "facts", 10, 10.0)
    assert isinstance(first, Ask)
    assert (first.target, first.purpose, first.tells) == (POLICY, "step", "")
    assert first.settings == Settings(max_tokens=1024, stop=STOPS)
    assert [m.text for m in first.conversation.messages] == [instructions("Where is Ada from?")]
    assert second.tells == "looked up: Ada (2 facts)"
    assert [(m.role, m.text) for m in second.conversation.messages[1:]] == [
        ("assistant", ASK),
        ("user", write_knowledge((BORN, TOWN))),
    ]
    assert decision.reply.text == "Norland [1]\n\n[1] p2, https://example.org/ostby: Ostby is in Norland."
    assert decision.reply.usage == Usage(20, 4)
    assert (decision.why.source, decision.why.rule) == ("retrieval", "answered")
    assert decision.why.values["cited"] == ["f2"]
    assert decision.why.values["sources"] == ["p2", "https://example.org/ostby"]


def test_the_tag_at_which_a_model_stopped_is_put_back_and_what_it_rambles_on_is_cut() -> None:
    begun = ASK.removesuffix("</query>")
    rambling = f"{ASK}<knowledge>[made up]</knowledge><answer>Sudland</answer>"
    for text in (begun, rambling):
        decision, calls = driven(ROUTER, [said(text, "stop_sequence"), Found((TOWN,)), said(TELL)])
        assert calls[2].conversation.messages[1].text == ASK
        assert decision.why.rule == "answered"


def test_thinking_that_a_server_took_out_of_the_text_is_put_back() -> None:
    apart = Reply((Reasoning("t"), Text(ASK.removeprefix("<think>t</think>"))), "stop_sequence", Usage(10, 2))
    _, calls = driven(ROUTER, [apart, Found((TOWN,)), said(TELL)])
    assert calls[2].conversation.messages[1].text == ASK


def test_a_look_up_is_told_once() -> None:
    _, calls = driven(ROUTER, [said(ASK), Found((TOWN,)), said("Well,"), said(TELL)])
    assert [call.tells for call in calls if isinstance(call, Ask)] == ["", "looked up: Ada (1 fact)", ""]


def test_a_model_that_does_nothing_is_reminded_until_its_turns_are_over() -> None:
    decision, calls = driven(Retrieval(POLICY, "facts", max_turns=2), [said("Well,"), said("let me see.")])
    assert calls[1].conversation.messages[-1].text == REMINDER
    assert isinstance(decision, Answer)
    assert decision.reply.text == "No answer was found: all 2 turns were used up."
    assert (decision.why.rule, decision.why.sentence) == ("turns", "not answered: all 2 turns were used up")


def test_a_turn_that_is_cut_and_an_empty_answer_are_no_answers() -> None:
    decision, _ = driven(ROUTER, [said("<think>on and on", "length")])
    assert decision.why.rule == "cut"
    decision, _ = driven(ROUTER, [said("<think>t</think><answer> </answer>")])
    assert decision.why.rule == "empty"
    assert isinstance(decision, Answer)
    assert decision.reply.text == "No answer was found: the model gave an empty answer."


def test_a_look_up_that_fails_shows_nothing_and_is_counted() -> None:
    decision, calls = driven(ROUTER, [said(ASK), Failure("timeout", "slow"), said(ASK), Found((TOWN,)), said(TELL)])
    assert calls[2].tells == "looked up: Ada (failed: timeout)"
    assert calls[2].conversation.messages[-1].text == write_knowledge(())
    assert decision.why.values["failed_lookups"] == 1
    assert decision.why.rule == "answered"


def test_an_answer_that_no_fact_names_says_so() -> None:
    decision, _ = driven(ROUTER, [said(ASK), Found((BORN,)), said(TELL)])
    assert isinstance(decision, Answer)
    assert decision.why.rule == "unsupported"
    assert decision.reply.text.startswith("Norland\n\nNone of the facts that were found names this answer.")
    decision, _ = driven(ROUTER, [said(TELL)])
    assert isinstance(decision, Answer)
    assert decision.why.rule == "unsearched"
    assert decision.reply.text == "Norland\n\nNothing was found before this answer was given."
    decision, _ = driven(Retrieval(POLICY, "facts", citations="none"), [said(TELL)])
    assert isinstance(decision, Answer)
    assert decision.reply.text == "Norland"


def test_a_model_that_fails_is_the_clients_error_or_anothers_turn() -> None:
    down = Failure("rate_limit", "slow down", 429, 7.0)
    with pytest.raises(UpstreamError, match="failed in turn 2: slow down") as raised:
        driven(ROUTER, [said(ASK), Found((TOWN,)), down])
    assert (raised.value.kind, raised.value.status, raised.value.retry_after_s) == ("rate_limit", 429, 7.0)
    decision, _ = driven(WITH_OTHER, [down])
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.source, decision.why.rule) == (OTHER, "fallback", "policy_failed")


def test_time_that_is_up_is_no_failure_of_the_models() -> None:
    late = Failure("timeout", "late", reason="deadline")
    decision, calls = driven(Retrieval(POLICY, "facts", within_s=5.0), [said(ASK), Found((TOWN,)), late])
    assert calls[0].by_s == 5.0
    assert isinstance(decision, Answer)
    assert decision.why.rule == "deadline"
    assert decision.reply.text == "No answer was found: the time for it was up."


IMAGE = Message("user", (Text("What is this?"), Image(Media("url", "https://example.org/a.png"))))
UNSUITED: list[tuple[str, Turn]] = [
    ("tools", turn_of(tools=(Tool("bash"),))),
    ("media", turn_of(IMAGE)),
    ("output_format", turn_of(settings=Settings(output=OutputFormat("json_object")))),
    ("several", turn_of(settings=Settings(n=2))),
    ("detached", turn_of(settings=Settings(background=True))),
    ("no_question", turn_of(user("Hello"), Message("assistant", (Text("Hi"),)))),
    ("no_question", turn_of(user("  "))),
]


@pytest.mark.parametrize(("rule", "turn"), UNSUITED)
def test_what_is_no_question_goes_elsewhere_or_is_refused(rule: str, turn: Turn) -> None:
    decision, calls = driven(WITH_OTHER, [], turn)
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.source, decision.why.rule, calls) == (OTHER, "default", rule, [])
    with pytest.raises(ClientError, match="answers questions from a knowledge, and the request") as raised:
        driven(ROUTER, [], turn)
    assert (raised.value.status, raised.value.code) == (400, "unsupported_capability")


def test_earlier_questions_and_instructions_stand_before_this_one() -> None:
    story = [
        Message("system", (Text("Be brief."),)),
        user("one"),
        Message("assistant", (Text("1"),)),
        user("two"),
        Message("assistant", (Text("2"),)),
        user("three"),
    ]
    for earlier, expected in ((4, ["one", "1", "two", "2"]), (1, ["two", "2"]), (0, [])):
        _, calls = driven(Retrieval(POLICY, "facts", earlier=earlier), [said(TELL)], turn_of(*story))
        asked = calls[0].conversation
        assert [m.text for m in asked.messages] == [*expected, instructions("three")]
        assert [part.text for part in asked.system] == ["Be brief."]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("openai_chat", [("https://example.org/ostby", None)]),
        ("openai_responses", [("", "file_citation"), ("https://example.org/ostby", None)]),
        ("anthropic_messages", [("", "search_result_location")] * 2),
    ],
)
def test_sources_are_cited_as_the_clients_format_cites(form: Any, expected: list[tuple[str, str | None]]) -> None:
    turn = turn_of(format=form)
    decision, _ = driven(ROUTER, [said(ASK), Found((TOWN,)), said(TELL)], turn)
    assert isinstance(decision, Answer)
    (text,) = decision.reply.parts
    assert isinstance(text, Text)
    assert [(c.url, c.extra.get("type")) for c in text.annotations] == expected
