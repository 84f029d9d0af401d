"""The classifier: thresholds, questions of one's own, triggers and pins, judges that fail."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.routing.lanes import JUDGE, LANE, LARGE, SMALL, Choosing, Played, facts, failing

from turnout.conversation import Reply, Text
from turnout.gateway.config import read
from turnout.routing import AgentInfo, Ask, Classifier, Composite, Failure, Lane, Outcome, TargetName
from turnout.routing.classifier.capability import FAMILIES, needed
from turnout.routing.composite import Member
from turnout.routing.judging import FAIL_OPEN, Excerpt, Judging
from turnout.signals.people.envelopes import COMPACTED

REMINDER = "<system-reminder>The todo list is empty.</system-reminder>"
OTHER = TargetName("other")


def said(value: Any) -> Outcome:
    return Reply((Text(value if isinstance(value, str) else json.dumps(value)),))


def verdict(p: float, rule: str = "SUP-1", boundary: str | None = None, **more: Any) -> Outcome:
    family = boundary or FAMILIES[rule.partition("-")[0]]
    return said({"crux": "it", "primary_rule": rule, "capability_boundary": family, "p_solve": p, **more})


def capability(**more: Any) -> Classifier:
    return Classifier(JUDGE, SMALL, LARGE, **more)


def custom(**more: Any) -> Classifier:
    given = {"targets": {"code": LARGE, "chat": SMALL}, "default": OTHER, "judging": Judging(prompt="Which is it?")}
    return Classifier(JUDGE, **{**given, **more})


def played(router: Classifier, *outcomes: Outcome, lane: Lane = LANE) -> Played:
    """The judge's outcomes in order; the last repeats."""
    left = list(outcomes)
    made = Played(router, lambda ask: left.pop(0) if len(left) > 1 else left[0], lane)
    made.targets = facts("small", "large", "judge", "other")
    return made


TABLE = [
    ("SUP-1", 0.50, SMALL),
    ("SUP-5", 0.49, LARGE),
    ("UNC-1", 0.65, SMALL),
    ("UNC-2", 0.64, LARGE),
    ("none", 0.65, SMALL),
    ("none", 0.64, LARGE),
    ("LIM-1", 0.80, SMALL),
    ("LIM-2", 0.79, LARGE),
]


@pytest.mark.parametrize(("rule_name", "p", "target"), TABLE)
def test_what_it_takes_depends_on_the_boundary(rule_name: str, p: float, target: TargetName) -> None:
    decision = played(capability(), verdict(p, rule_name)).play()
    assert (decision.target, decision.why.source, decision.why.rule) == (target, "classifier", rule_name)
    assert decision.why.confidence == p
    assert decision.why.values["capability_boundary"] == FAMILIES[rule_name.partition("-")[0]]


@given(st.floats(0, 1), st.floats(0, 0.5), st.sampled_from(list(FAMILIES.values())), st.floats(0, 1))
def test_the_needed_probability_is_never_out_of_reach(base: float, step: float, boundary: Any, p: float) -> None:
    if base + 2 * step > 1 + 1e-9:
        with pytest.raises(ValueError, match="more than any probability"):
            capability(base_threshold=base, threshold_step=step)
        return
    router = capability(base_threshold=base, threshold_step=step)
    names = {family: name for name, family in FAMILIES.items()}
    rule_name = names[boundary] if boundary == "unmatched" else f"{names[boundary]}-1"
    least = needed(boundary, base, step)
    assert least <= 1 + 1e-9
    decision = played(router, verdict(p, rule_name)).play()
    assert decision.target == (SMALL if p >= least - 1e-9 else LARGE)
    assert decision.why.threshold == least


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (verdict(0.9, "SUP-1", "unsupported"), "invalid_response"),
        (verdict(0.9, "none", "supported"), "invalid_response"),
        (verdict(1.5), "invalid_response"),
        (verdict(0.9, "SUP-1", capability_boundary="perhaps"), "invalid_response"),
        (said({"p_solve": 0.9}), "invalid_response"),
        (said("The small model will do."), "parse_error"),
        (Reply((Text('{"crux": "'),), "length"), "invalid_response"),
        (Failure("timeout"), "timeout"),
        (Failure("rate_limit", "", 429), "rate_limit"),
        (Failure("unavailable", "", 503), "upstream_5xx"),
    ],
)
def test_without_a_verdict_the_default_serves_and_nothing_is_kept(answer: Outcome, reason: str) -> None:
    made = played(capability(), answer, verdict(0.9))
    first = made.play()
    assert (first.target, first.why.source, first.why.abstained) == (LARGE, "default", True)
    assert (first.why.rule, first.why.values["judge_failure"]) == (reason, reason)
    assert reason in FAIL_OPEN
    assert made.states == {}
    made.story.bash("ls", "a", 0)
    assert made.play().target == SMALL  # asked again on the very next turn


def test_a_fenced_verdict_counts() -> None:
    text = '```json\n{"crux": "x", "primary_rule": "SUP-2", "capability_boundary": "supported", "p_solve": 0.9}\n```'
    assert played(capability(), said(text)).play().target == SMALL


def test_the_judge_is_shown_the_task_and_not_the_steps() -> None:
    made = played(capability(), verdict(0.9))
    made.story.bash("cat secrets", "xyzzy", 0).say("Fine.", "assistant").say("Now write docs.").say(REMINDER)
    made.play()
    (ask,) = made.asked
    text = ask.conversation.messages[0].text
    assert "Fix the bug." in text
    assert "Now write docs." in text
    assert "xyzzy" not in text
    assert (ask.purpose, ask.target) == ("judge", JUDGE)
    assert not ask.conversation.tools


def test_on_every_request_it_is_shown_the_steps_too() -> None:
    made = played(capability(trigger="every_request"), verdict(0.9))
    made.story.bash("cat notes", "xyzzy", 0)
    made.play()
    assert "xyzzy" in made.asked[0].conversation.messages[0].text
    made.play()
    assert len(made.asked) == 2
    assert made.states == {}


def test_a_verdict_holds_for_the_session() -> None:
    made = played(capability(trigger="new_session"), verdict(0.9), verdict(0.1))
    assert made.play().target == SMALL
    made.story.say("ok", "assistant").say("Something hard.")
    kept = made.play()
    assert (kept.target, kept.why.source) == (SMALL, "pin")
    assert "probability of 0.90" in kept.why.sentence


def test_a_verdict_outlives_a_summary_and_ends_with_the_users_next_words() -> None:
    made = played(capability(), verdict(0.9), verdict(0.1))
    made.play()
    made.story.messages.clear()
    made.story.say(f"{COMPACTED[0]} that ran out of context.").bash("ls", "a", 0)
    assert (made.play().target, made.play().why.source) == (SMALL, "pin")
    made.story.say("ok", "assistant").say("And now?")
    assert made.play().target == LARGE


def test_a_verdict_of_an_earlier_task_never_counts_for_a_later_one() -> None:
    """The user's new words came on a turn when the judge was down; what follows is still new."""
    made = played(capability(), verdict(0.9), Failure("timeout"), verdict(0.1))
    assert made.play().target == SMALL
    made.story.say("ok", "assistant").say("Something hard.")
    assert made.play().why.abstained
    made.story.bash("ls", "a", 0)
    assert (made.play().target, made.play().why.source) == (LARGE, "pin")


def test_a_target_that_is_gone_is_judged_anew() -> None:
    made = played(custom(), said({"reason": "r", "choice": "code"}), said({"reason": "r", "choice": "chat"}))
    assert made.play().target == LARGE
    made.targets = facts("small", "judge", "other")
    assert made.play().target == SMALL


def test_children_have_verdicts_of_their_own() -> None:
    router = capability()
    parent, child = played(router, verdict(0.1)), played(router, verdict(0.9), lane=Lane("", "s", "a1", "claude_code"))
    assert (parent.play().target, child.play().target) == (LARGE, SMALL)
    assert (parent.play().target, child.play().target) == (LARGE, SMALL)
    assert len(parent.asked) == len(child.asked) == 1


def test_without_identity_it_says_that_nothing_is_kept() -> None:
    made = played(capability(), verdict(0.9), lane=Lane())
    decision = made.play()
    assert decision.remember == ()
    assert "names no session" in decision.why.sentence


def test_background_calls_ask_nobody() -> None:
    background = AgentInfo("claude-code", "background")
    made = played(capability(), verdict(0.1), lane=Lane("", "s", "~background", "claude_code"))
    title = made.play(agent=background)
    assert (title.target, title.why.source, made.asked) == (SMALL, "background", [])
    made = played(custom(), said({}), lane=Lane("", "s", "~background", "claude_code"))
    assert made.play(agent=background).target == OTHER


def test_upkeep_in_the_works_own_lane_goes_where_the_work_went() -> None:
    made = played(capability(), verdict(0.1))
    assert made.play().target == LARGE
    made.story.say("ok", "assistant").say("Summarise what was done.")
    assert made.play(agent=AgentInfo("codex", "background", "p")).target == LARGE
    assert len(made.asked) == 1


CUSTOM: list[tuple[Any, TargetName, bool]] = [
    ({"reason": "r", "choice": "code"}, LARGE, False),
    ({"reason": "r", "choice": "chat"}, SMALL, False),
    ({"reason": "r", "choice": "poem"}, OTHER, True),
    ({"choice": "code"}, OTHER, True),
    ({"reason": 3, "choice": "code"}, OTHER, True),
    ({"reason": "r", "choice": "code", "more": 1}, OTHER, True),
]


@pytest.mark.parametrize(("answer", "target", "abstained"), CUSTOM)
def test_a_question_of_ones_own(answer: Any, target: TargetName, abstained: bool) -> None:
    decision = played(custom(), said(answer)).play()
    assert (decision.target, decision.why.abstained) == (target, abstained)
    assert "poem" not in decision.why.sentence


SCHEMA = """{"type": "object", "required": ["answers"],
"properties": {"answers": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/one"}}},
"definitions": {"one": {"type": "object", "properties": {"level/": {"type": ["integer", "boolean"]}}}}}"""


@pytest.mark.parametrize(
    ("answer", "target", "rule_name"),
    [
        ({"answers": [{"level/": 1}]}, SMALL, "1"),
        ({"answers": [{"level/": 2}]}, LARGE, "2"),
        ({"answers": [{"level/": True}]}, LARGE, "true"),
        ({"answers": [{"level/": 9}]}, OTHER, "unknown_choice"),
        ({"answers": [{}]}, OTHER, "unknown_choice"),
        ({"answers": []}, OTHER, "invalid_response"),
        ({"answers": [{"level/": "2"}]}, OTHER, "invalid_response"),
    ],
)
def test_a_schema_and_a_pointer_of_ones_own(answer: Any, target: TargetName, rule_name: str) -> None:
    targets = {"1": SMALL, "2": LARGE, "true": LARGE}
    router = custom(schema=SCHEMA, choice="/answers/0/level~1", targets=targets, trigger="every_request")
    decision = played(router, said(answer)).play()
    assert (decision.target, decision.why.rule) == (target, rule_name)


def test_the_question_goes_out_with_its_schema() -> None:
    made = played(custom(), said({"reason": "r", "choice": "code"}))
    made.play()
    (ask,) = made.asked
    assert ask.settings is not None
    assert ask.settings.output is not None
    assert ask.settings.output.schema is not None
    assert ask.settings.output.schema["properties"]["choice"]["enum"] == ["code", "chat"]
    assert ask.conversation.system[0].text.startswith("Which is it?")  # type: ignore[union-attr]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"targets": {}, "default": None}, "name `efficient` and `capable`"),
    ({"efficient": SMALL}, "either `targets`, or"),
    ({"default": None}, "default: name the target"),
    ({"judging": Judging()}, "the question is missing"),
    ({"schema": "{"}, "schema: not JSON"),
    ({"schema": "[]"}, "expected a JSON object"),
    ({"schema": {"type": "objct"}}, "not a JSON schema"),
    ({"schema": {"properties": 3}}, "not a JSON schema"),
    ({"schema": {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}}, "leads out of the schema"),
    ({"schema": {"$ref": "file:///etc/passwd"}}, "leads out of the schema"),
    ({"choice": "choice", "schema": {"type": "object"}}, "no JSON pointer"),
    ({"choice": "/a"}, "the default schema has its choice at /choice"),
    (
        {"schema": {"properties": {"a": {"enum": ["x", "y"]}}}, "choice": "/a"},
        "offers none of these choices, but x, y",
    ),
]


@pytest.mark.parametrize(("fields", "says"), WRONG)
def test_what_cannot_work_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        custom(**fields)
    with pytest.raises(ValueError, match="schema and choice are for"):
        capability(schema={"type": "object"})


def test_what_will_surprise_is_told() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["code", "poem"]}}}
    told = " ".join(message for _, message in custom(schema=schema, choice="/a").concerns())
    assert "no target for poem: `other` serves" in told
    assert "the schema never offers chat" in told
    assert "additionalProperties = false" in told
    assert custom().concerns() == []
    again = capability(trigger="every_request", transcript=Excerpt(window=0)).concerns()
    assert "the same question again" in again[0][1]


def test_it_reads_as_a_route() -> None:
    toml = f"""
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
{"".join(f'[targets.{name}]{chr(10)}upstream = "u"{chr(10)}model = "{name}"{chr(10)}' for name in ("a", "b", "c", "j"))}
[routes.r]
type = "classifier"
judge = "j"
default = "c"
choice = "/kind"
schema = '''{{"type": "object", "properties": {{"kind": {{"enum": ["x", "y"]}}}}, "required": ["kind"]}}'''
[routes.r.targets]
x = "a"
y = "b"
[routes.r.judging]
prompt = "x or y?"
[routes.nested]
type = "affinity"
router = {{ type = "classifier", judge = "j", efficient = "a", capable = "b" }}
"""
    config, tables = read(toml, "turnout.toml")
    (finding,) = [finding for finding in tables.findings if finding.severity == "error"]
    assert (finding.key, config) == ("routes.nested.router", None)
    assert "a pin inside a pin" in finding.message
    fine = toml.replace('capable = "b" }', 'capable = "b", trigger = "every_request" }')
    config, tables = read(fine, "turnout.toml")
    assert config is not None
    assert config.routes["r"].targets == ("j", "a", "b", "c")


def test_in_a_composite_the_next_router_decides_what_it_abstains_on() -> None:
    router = Composite((Member(capability()), Member(Choosing(["other"]))))
    made = Played(router, failing("timeout"))
    decision = made.play()
    assert (decision.target, decision.why.place) == (OTHER, "choosing")
    assert "classifier abstained (no verdict" in decision.why.sentence


class Verdicts(RuleBasedStateMachine):
    """Any sequence of turns, new words, reminders, summaries, hang-ups and judges that fail, against plain variables."""

    trigger: Any = "user_turn"

    def __init__(self) -> None:
        super().__init__()
        self.answer: Outcome = verdict(0.9)
        self.asked = 0
        self.made = Played(capability(trigger=self.trigger), self._judge)
        self.kept: TargetName | None = None
        self.unheard = True
        self.summaries = 0

    def _judge(self, ask: Ask) -> Outcome:
        self.asked += 1
        return self.answer

    @rule(solves=st.booleans(), fails=st.booleans(), commit=st.booleans())
    def turn(self, solves: bool, fails: bool, commit: bool) -> None:
        self.unheard = self.unheard and not commit
        self.answer = Failure("timeout") if fails else verdict(0.9 if solves else 0.1)
        asked = self.asked
        decision = self.made.play(commit)
        if self.kept is not None:
            assert (decision.target, decision.why.source, self.asked) == (self.kept, "pin", asked)
        else:
            assert self.asked == asked + 1
            assert decision.target == (SMALL if solves and not fails else LARGE)
            assert decision.why.abstained == fails
            if commit and not fails and self.trigger != "every_request":
                self.kept = decision.target
        self.made.story.bash("make", "fine", 0)

    @rule(text=st.sampled_from(["Do more.", "continue"]))
    def speak(self, text: str) -> None:
        self.made.story.say("done", "assistant").say(text)
        self.unheard = True
        if self.trigger == "user_turn":
            self.kept = None

    @rule()
    def remind(self) -> None:
        self.made.story.say("done", "assistant").say(REMINDER)

    @precondition(lambda self: not self.unheard)
    @rule()
    def compact(self) -> None:
        self.made.story.messages.clear()
        self.summaries += 1
        self.made.story.say(f"{COMPACTED[0]} that ran out of context: summary {self.summaries}.").bash("ls", "a", 0)


class SessionVerdicts(Verdicts):
    trigger = "new_session"


class EveryVerdict(Verdicts):
    trigger = "every_request"


TestVerdicts = Verdicts.TestCase
TestSessionVerdicts = SessionVerdicts.TestCase
TestEveryVerdict = EveryVerdict.TestCase
for machine in (TestVerdicts, TestSessionVerdicts, TestEveryVerdict):
    machine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
