"""Escalation: who serves a turn, what is asked on the way, and what is remembered of it."""

import json
from typing import Any

import msgspec
import pytest

from turnout.conversation import (
    Conversation,
    Message,
    Note,
    Opaque,
    Reply,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from turnout.errors import UpstreamFault
from turnout.routing import (
    AgentInfo,
    Answer,
    Ask,
    Decision,
    Escalation,
    Failure,
    Forward,
    Lane,
    Outcome,
    Rung,
    TargetName,
    Turn,
)
from turnout.routing.escalation.memory import EscalationHeld, EscalationMemory, EscalationRearmed, EscalationVoted
from turnout.signals import BUILT_IN, observe
from turnout.steps import Run
from turnout.wire import CODECS

W, S, J = TargetName("weak"), TargetName("strong"), TargetName("judge")
DRAFT = Reply((Text("Working on it."), ToolCall("c9", "bash", '{"command":"pytest"}')), "tool_calls", id="draft")


def router(**fields: Any) -> Escalation:
    return msgspec.convert({"type": "escalation", "weak": W, "strong": S, "judge": J, **fields}, Escalation)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def step(number: int, output: str = "ok", command: str = "") -> tuple[Message, Message]:
    arguments = json.dumps({"command": command or f"step {number}"})
    return (
        Message("assistant", (ToolCall(f"c{number}", "bash", arguments),)),
        Message("tool", (ToolResult(f"c{number}", (Text(output),)),)),
    )


CALM = (user("Fix the parser"), *step(0), *step(1))
FAILING = "Traceback (most recent call last):\nKeyError: 'a'\n\nProcess exited with code 1"
LOOP = (user("Fix the parser"), *(message for i in range(6) for message in step(i, FAILING, "python a.py")))


def turn(
    memory: EscalationMemory | None = None,
    *,
    messages: tuple[Message, ...] = CALM,
    rung: Rung = "header",
    kind: str = "main",
    tools: tuple[Tool, ...] = (),
    number: int = 1,
    **settings: Any,
) -> Turn:
    conversation = Conversation(messages, tools=tools)
    return Turn(
        f"t{number}",
        Lane("", "session", "", rung),
        conversation,
        Settings(**settings),
        observe(conversation, BUILT_IN, ""),
        {},
        memory={} if memory is None else {"/EscalationMemory": memory},
        agent=AgentInfo(kind=kind),  # type: ignore[arg-type]
    )


def verdict(escalate: bool, reason: str = "because") -> Reply:
    return Reply((Text(json.dumps({"reason": reason, "escalate": escalate})),))


YES, NO = verdict(True, "it repeats itself"), verdict(False)


def decided(router: Escalation, turn: Turn, *outcomes: Outcome) -> tuple[Decision, list[Ask]]:
    """The decision once the asks have had these outcomes, all of which must be used; and the asks."""
    run: Run[Ask, Outcome, Decision] = Run(router.route(turn))
    asks, left = [], list(outcomes)
    while not run.done:
        assert left, f"asks more: {run.pending}"
        asks += run.pending
        run.feed([left.pop(0) for _ in run.pending])
    assert not left, "asked less"
    return run.result, asks


def test_the_draft_is_served_when_the_judge_declines() -> None:
    decision, (draft, judge) = decided(router(), turn(), DRAFT, NO)
    assert isinstance(decision, Answer)
    assert (decision.target, decision.reply) == (W, DRAFT)
    assert decision.remember == (EscalationVoted("t1", False, 2),)
    assert (draft.target, draft.purpose, draft.settings) == (W, "draft", None)
    assert (judge.target, judge.purpose) == (J, "judge")
    text = judge.conversation.messages[0].text
    assert "Fix the parser" in text
    assert text.endswith('agent: Working on it.\nagent calls bash({"command":"pytest"})')
    assert (decision.why.source, decision.why.rule, decision.why.values["verdict"]) == ("judge", "declined", "decline")


def test_a_first_vote_is_counted_and_a_second_in_a_row_latches() -> None:
    first, _ = decided(router(), turn(), DRAFT, YES)
    assert isinstance(first, Answer)
    assert (first.why.rule, first.why.values["streak"]) == ("voted", 1)
    memory = EscalationMemory().after(first.remember[0])
    assert memory == EscalationMemory(1)
    second, _ = decided(router(), turn(memory, number=2), DRAFT, YES)
    assert isinstance(second, Forward)
    assert (second.target, second.why.source, second.why.rule) == (S, "judge", "latched")
    assert second.why.values["verdict_reason"] == "it repeats itself"
    latched = memory.after(second.remember[0])
    assert latched == EscalationMemory(2, True, "t2")
    third, asks = decided(router(), turn(latched, number=3))
    assert isinstance(third, Forward)
    assert (third.target, third.why.source, asks) == (S, "latch", [])
    assert third.remember == (EscalationHeld("t3", "t2"),)
    # Also a store that has lost the lane meanwhile has the latch from then on.
    assert EscalationMemory().after(third.remember[0]) == EscalationMemory(0, True, "t2")
    assert "t2" in third.why.sentence


def test_a_vote_against_breaks_the_streak() -> None:
    decision, _ = decided(router(), turn(EscalationMemory(1)), DRAFT, NO)
    assert EscalationMemory(1).after(decision.remember[0]) == EscalationMemory()


def test_a_latch_is_never_opened_by_a_vote() -> None:
    latched = EscalationMemory(2, True, "t0")
    assert latched.after(EscalationVoted("t1", False)) == latched
    assert latched.after(EscalationVoted("t1", True)) == latched


def test_a_latch_is_folded_from_votes_that_came_at_once() -> None:
    """Two turns of a lane in flight: each saw no vote yet, and together they latch."""
    votes = [decided(router(), turn(number=n), DRAFT, YES)[0].remember[0] for n in (1, 2)]
    memory = EscalationMemory()
    for vote in votes:
        memory = memory.after(vote)
    assert memory.latched


FAILED: list[tuple[Outcome, str]] = [
    (Failure("timeout"), "timeout"),
    (Failure("rate_limit", status=429), "rate_limit"),
    (Failure("unavailable", status=500), "upstream_5xx"),
    (Failure("unavailable"), "transport"),
    (Failure("auth", status=401), "upstream_non_5xx"),
    (Failure("request"), "client_error"),
    (Reply((Text("Well, let me think."),)), "parse_error"),
    (Reply((Text('{"escalate":"maybe"}'),)), "invalid_response"),
]


@pytest.mark.parametrize(("outcome", "reason"), FAILED)
def test_a_judge_that_fails_changes_nothing(outcome: Outcome, reason: str) -> None:
    decision, _ = decided(router(), turn(EscalationMemory(1)), DRAFT, outcome)
    assert isinstance(decision, Answer)
    assert (decision.target, decision.remember) == (W, ())
    assert (decision.why.rule, decision.why.values["judge_failure"]) == ("judge_failed", reason)


@pytest.mark.parametrize(("outcome", "reason"), FAILED)
def test_the_cautious_go_to_the_strong_target_when_the_judge_fails(outcome: Outcome, reason: str) -> None:
    decision, _ = decided(router(on_judge_failure="strong", note="Take over."), turn(), DRAFT, outcome)
    assert isinstance(decision, Forward)
    assert (decision.target, decision.remember, decision.edits) == (S, (), ())
    assert decision.why.values["judge_failure"] == reason


@pytest.mark.parametrize(
    "kind", ["overflow", "unavailable", "timeout", "rate_limit", "malformed", "refused", "request"]
)
def test_a_weak_target_that_fails_is_replaced_without_judge_note_or_vote(kind: UpstreamFault) -> None:
    decision, asks = decided(router(note="Take over."), turn(EscalationMemory(1)), Failure(kind))
    assert isinstance(decision, Forward)
    assert (decision.target, decision.edits, decision.remember, len(asks)) == (S, (), (), 1)
    assert (decision.why.source, decision.why.rule, decision.why.values["draft_failure"]) == (
        *("fallback", "weak_failed", kind),
    )


def test_the_note_comes_with_the_turn_that_is_done_again_and_no_other() -> None:
    noted = router(note="Take over.", strong_fallbacks=["third"])
    redone, _ = decided(noted, turn(EscalationMemory(1)), DRAFT, YES)
    assert isinstance(redone, Forward)
    assert (redone.edits, redone.fallbacks) == ((Note("Take over."),), ("third",))
    later, _ = decided(noted, turn(EscalationMemory(2, True, "t0")))
    assert isinstance(later, Forward)
    assert later.edits == ()


@pytest.mark.parametrize("rung", ["none", "fingerprint"])
def test_without_a_sure_identity_no_judge_is_paid_and_the_turn_says_so(rung: Rung) -> None:
    decision, asks = decided(router(), turn(EscalationMemory(2, True, "t0"), rung=rung))
    assert isinstance(decision, Forward)
    assert (decision.target, decision.fallbacks, decision.remember, asks) == (W, (S,), (), [])
    assert decision.why.rule == "unidentified"
    assert "nothing latches" in decision.why.sentence
    assert any(field == "confirmations" for field, _ in router().concerns())


def test_with_one_confirmation_every_turn_is_judged_by_itself() -> None:
    one = router(confirmations=1)
    assert one.concerns() == []
    decision, _ = decided(one, turn(rung="none"), DRAFT, YES)
    assert isinstance(decision, Forward)
    assert (decision.target, decision.remember, decision.why.rule) == (S, (), "escalated")
    decision, _ = decided(one, turn(rung="header"), DRAFT, YES)
    assert (decision.why.rule, decision.remember) == ("latched", (EscalationVoted("t1", True, 1),))


def test_fingerprints_count_only_where_trusted() -> None:
    trusting = router(trust_fingerprints=True)
    assert trusting.concerns() == []
    decision, _ = decided(trusting, turn(EscalationMemory(1), rung="fingerprint"), DRAFT, YES)
    assert decision.why.rule == "latched"
    decision, asks = decided(trusting, turn(rung="none"))
    assert (decision.why.rule, asks) == ("unidentified", [])


def test_background_calls_are_not_judged() -> None:
    decision, asks = decided(router(), turn(EscalationMemory(1), kind="background"))
    assert (decision.target, decision.why.rule, decision.remember, asks) == (W, "background", (), [])


def test_upkeep_in_the_lane_of_a_latched_agent_goes_where_the_agent_goes() -> None:
    for rearm in (False, True):
        decision, _ = decided(router(rearm=rearm), turn(LATCHED, messages=ASKED_ANEW, kind="background"))
        assert (decision.target, decision.why.source) == (S, "latch")


def test_sub_agents_are_judged_in_a_lane_of_their_own() -> None:
    decision, _ = decided(router(), turn(kind="subagent"), DRAFT, NO)
    assert decision.why.rule == "declined"


def test_a_reply_that_the_provider_stores_is_forwarded() -> None:
    decision, asks = decided(router(), turn(store=True))
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.rule, asks) == (W, "stored", [])
    assert decided(router(), turn(store=False), DRAFT, NO)[0].why.rule == "declined"


SEARCHED = Reply((Opaque("anthropic_messages", "server_tool_use", {}), Text("Found it.")))


def test_work_the_provider_has_done_is_never_discarded() -> None:
    decision, _ = decided(router(), turn(EscalationMemory(1)), SEARCHED, YES)
    assert isinstance(decision, Answer)
    assert (decision.why.rule, decision.reply) == ("done", SEARCHED)
    assert EscalationMemory(1).after(decision.remember[0]).latched
    decision, _ = decided(router(on_judge_failure="strong"), turn(), SEARCHED, Failure("timeout"))
    assert isinstance(decision, Answer)


DEPLOY = Reply((ToolCall("c", "deploy_site", "{}"),), "tool_calls")


@pytest.mark.parametrize(
    ("patterns", "call", "grave"),
    [
        (("deploy*",), ToolCall("c", "deploy_site"), True),
        (("DEPLOY*",), ToolCall("c", "Deploy_site"), True),
        (("*__delete_*",), ToolCall("c", "mcp__db__delete_rows"), True),
        (("db__delete",), ToolCall("c", "delete", namespace="db"), True),
        (("delete",), ToolCall("c", "delete", namespace="db"), True),
        (("deploy",), ToolCall("c", "deploy_site"), False),
        ((), ToolCall("c", "deploy_site"), False),
    ],
)
def test_before_an_irreversible_call_one_vote_is_enough(patterns: tuple[str, ...], call: ToolCall, grave: bool) -> None:
    decision, _ = decided(router(irreversible=patterns), turn(), Reply((call,), "tool_calls"), YES)
    assert isinstance(decision, Forward if grave else Answer)
    memory = EscalationMemory().after(decision.remember[0])
    assert memory.latched is grave
    assert decision.why.values.get("irreversible") == (call.name if grave else None)


def test_an_irreversible_call_the_judge_finds_right_is_let_through() -> None:
    decision, _ = decided(router(irreversible=["deploy*"]), turn(), DEPLOY, NO)
    assert isinstance(decision, Answer)


TOOLS: dict[str, Any] = {
    "openai_chat": [
        {
            "type": "function",
            "function": {"name": "wipe", "parameters": {"type": "object"}, "annotations": {"destructiveHint": True}},
        },
        {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}},
    ],
    "openai_responses": [
        {
            "type": "function",
            "name": "wipe",
            "parameters": {"type": "object"},
            "annotations": {"destructiveHint": True},
        },
        {"type": "function", "name": "bash", "parameters": {"type": "object"}},
    ],
    "anthropic_messages": [
        {"name": "wipe", "input_schema": {"type": "object"}, "annotations": {"destructiveHint": True}},
        {"name": "bash", "input_schema": {"type": "object"}, "annotations": {"destructiveHint": False}},
    ],
}


@pytest.mark.parametrize("form", TOOLS)
def test_a_tool_annotated_as_destructive_is_irreversible_in_every_format(form: Any) -> None:
    body: dict[str, Any] = {"model": "r", "max_tokens": 9, "tools": TOOLS[form]}
    body["input" if form == "openai_responses" else "messages"] = [{"role": "user", "content": "go"}]
    conversation = CODECS[form].read_request(json.dumps(body).encode()).conversation
    asked = msgspec.structs.replace(turn(), conversation=conversation)
    for name in ("wipe", "bash"):
        decision, _ = decided(router(), asked, Reply((ToolCall("c", name),), "tool_calls"), YES)
        assert isinstance(decision, Forward if name == "wipe" else Answer)


def test_unidentified_turns_are_judged_before_an_irreversible_call_only() -> None:
    tools = (Tool("deploy_site"),)
    careful = router(irreversible=["deploy*"])
    decision, asks = decided(careful, turn(rung="none", tools=tools), DRAFT)
    assert isinstance(decision, Answer)
    assert (decision.why.rule, len(asks)) == ("unidentified", 1)
    decision, _ = decided(careful, turn(rung="none", tools=tools), DEPLOY, YES)
    assert isinstance(decision, Forward)
    assert (decision.why.rule, decision.remember) == ("escalated", ())
    decision, _ = decided(careful, turn(rung="none", tools=(Tool("bash"),)))
    assert isinstance(decision, Forward)
    assert decision.target == W


def test_when_doubtful_calm_turns_stream_without_a_judge() -> None:
    gated = router(judge_when="doubtful")
    decision, asks = decided(gated, turn(EscalationMemory(1)))
    assert isinstance(decision, Forward)
    assert (decision.target, decision.why.source, decision.why.rule, asks) == (W, "signals", "no_doubt", [])
    assert decision.why.values["algorithm"] == "escalation_when_doubtful"
    assert EscalationMemory(1).after(decision.remember[0]) == EscalationMemory()
    assert decided(gated, turn())[0].remember == ()
    assert decided(router(), turn(), DRAFT, NO)[0].why.values["algorithm"] == "escalation"


def test_when_doubtful_a_loop_is_judged() -> None:
    decision, _ = decided(router(judge_when="doubtful"), turn(EscalationMemory(1), messages=LOOP), DRAFT, YES)
    assert (decision.target, decision.why.rule) == (S, "latched")
    assert "repeated" in decision.why.values["doubts"]


def test_when_doubtful_a_claim_of_done_over_a_failure_is_judged() -> None:
    failing = (user("Fix it"), *step(0, FAILING, "python a.py"))
    gated = router(judge_when="doubtful")
    decision, asks = decided(gated, turn(messages=failing), DRAFT)
    assert (decision.why.rule, len(asks)) == ("no_doubt", 1)
    decision, asks = decided(gated, turn(messages=failing), Reply((Text("All done!"),)), NO)
    assert (decision.why.rule, len(asks)) == ("declined", 2)


LATCHED = EscalationMemory(2, True, "t0")
ASKED_ANEW = (*CALM, user("Now write the docs"))


def test_a_new_task_opens_the_latch_only_where_that_is_wished() -> None:
    assert decided(router(), turn(LATCHED, messages=ASKED_ANEW))[0].target == S
    rearming = router(rearm=True)
    assert decided(rearming, turn(LATCHED))[0].target == S
    decision, _ = decided(rearming, turn(LATCHED, messages=ASKED_ANEW), DRAFT, YES)
    assert isinstance(decision, Answer)
    assert decision.remember == (EscalationRearmed("t1"), EscalationVoted("t1", True, 2))
    memory = LATCHED
    for event in decision.remember:
        memory = memory.after(event)
    assert memory == EscalationMemory(1)


def test_a_complaint_is_no_new_task() -> None:
    complaint = (*CALM, user("That did not work, I still get the same error"))
    decision, _ = decided(router(rearm=True), turn(LATCHED, messages=complaint))
    assert (decision.target, decision.why.source) == (S, "latch")


def test_a_reminder_of_the_harness_is_no_new_task() -> None:
    reminded = (*CALM, user("<system-reminder>Keep your list up to date.</system-reminder>"))
    assert decided(router(rearm=True), turn(LATCHED, messages=reminded))[0].target == S


def test_the_same_outcomes_give_the_same_decision() -> None:
    for outcomes in ((DRAFT, YES), (DRAFT, NO), (DRAFT, Failure("timeout")), (Failure("overflow"),)):
        first, asks = decided(router(), turn(EscalationMemory(1)), *outcomes)
        again, asked = decided(router(), turn(EscalationMemory(1)), *outcomes)
        assert (first, asks) == (again, asked)


def test_the_judges_words_are_kept_short() -> None:
    decision, _ = decided(router(), turn(), DRAFT, verdict(True, "x" * 5000))
    assert len(decision.why.values["verdict_reason"]) == 500


@pytest.mark.parametrize(
    "fields",
    [
        {"confirmations": 0},
        {"irreversible": [" "]},
        {"on_judge_failure": "fail"},
        {"judge_when": "never"},
        {"draft_within_s": 0},
        {"judging": {"within_s": 0}},
        {"transcript": {"window": 0}},
        {"confirmation": 2},
    ],
)
def test_impossible_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        router(**fields)
