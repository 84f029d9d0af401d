"""What operators add to signals: tools, programs, patterns, test runners."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.story import Story

from turnout.errors import ConfigError
from turnout.gateway.config import parse
from turnout.signals import Observation, Vocabulary, observe
from turnout.signals.vocabulary import Additions, Pattern, Runner

ROUTE = """
[upstreams.local]
format = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
[targets.small]
upstream = "local"
model = "small"
[targets.large]
upstream = "local"
model = "large"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
"""


def last(story: Story, **additions: object) -> Observation:
    return observe(story.conversation, Vocabulary(Additions(**additions))).observations[-1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("acme_deploy", "acme_deploy"),
        ("ACME_Deploy", "acme_deploy"),
        ("acme_*", "acme_deploy"),
        ("mcp__acme__deploy", "mcp__acme__deploy"),
        ("deploy", "mcp__acme__deploy"),
        ("mcp__acme__*", "mcp__acme__frob"),
        ("read", "Read"),
    ],
)
def test_tools_get_the_operators_kind(name: str, tool: str) -> None:
    story = Story().call(tool, {"a": 1}, "done", is_error=False)
    seen = last(story, tools={name: "write"})
    assert (seen.kind, seen.change) == ("write", "verified")
    assert last(story, tools={"something_else": "write"}).kind == story.last.kind


@pytest.mark.parametrize(
    "command", ["bin/verify all", "cd /app && ./bin/../verify", "verify | tail", "python verify", "timeout 5 verify"]
)
def test_programs_get_the_operators_kind(command: str) -> None:
    kinds = {"verify": "test", "bin/verify": "test"}
    assert last(Story().bash(command, "fine", 0), programs=kinds).kind == "test"


QUOTA = Pattern("^quota of .* exhausted$", "critical", "quota_exhausted")


def test_a_pattern_decides_over_a_zero_status() -> None:
    story = Story().bash("./deploy", "working\nquota of team A exhausted\nbye", 0)
    assert story.last.error_class == "none"
    seen = last(story, patterns=(QUOTA,))
    assert (seen.status, seen.evidence) == ("failed", "text")
    assert (seen.error_class, seen.error_kind) == ("critical", "quota_exhausted")
    assert seen.evidence_text == "quota of team A exhausted"
    assert seen.fingerprint.startswith("quota_exhausted:")


def test_a_pattern_makes_a_noisy_message_harmless() -> None:
    noise = Pattern("^error: telemetry ", "none", "telemetry")
    story = Story().bash("./tool | tail", "error: telemetry is off", 0)
    assert story.last.status == "failed"
    seen = last(story, patterns=(noise,))
    assert (seen.status, seen.error_class, seen.fingerprint) == ("ok", "none", "")


def test_the_first_pattern_counts_and_the_tools_it_names() -> None:
    story = Story().bash("./deploy", "quota of team A exhausted", 1)
    harmless = Pattern("exhausted", "informational", "tired")
    assert last(story, patterns=(harmless, QUOTA)).error_kind == "tired"
    assert last(story, patterns=(harmless, QUOTA)).status == "failed"
    only = msgspec.structs.replace(harmless, tools=("other_*",))
    assert last(story, patterns=(only, QUOTA)).error_kind == "quota_exhausted"


def test_patterns_leave_alone_what_files_hold() -> None:
    for story in (
        Story().call("Read", {"file_path": "a.log"}, "quota of team A exhausted"),
        Story().bash("cat a.log", "quota of team A exhausted", 0),
        Story().call("Grep", {"pattern": "quota"}, "quota of team A exhausted"),
    ):
        assert last(story, patterns=(QUOTA,)).error_class == "none"
    named = msgspec.structs.replace(QUOTA, tools=("read",))
    story = Story().call("Read", {"file_path": "a.log"}, "quota of team A exhausted")
    assert last(story, patterns=(named,)).error_class == "critical"


RUNNER = Runner(r"^(?P<passed>\d+) good, (?P<failed>\d+) bad$")


@pytest.mark.parametrize(
    ("runner", "text", "expected"),
    [
        (RUNNER, "3 good, 0 bad", (3, 3, 0, True)),
        (RUNNER, "3 good, 2 bad", (5, 3, 2, False)),
        (RUNNER, "0 good, 0 bad", (0, 0, 0, False)),
        (RUNNER, "1 good, 1 bad\n2 good, 0 bad", (2, 2, 0, True)),
        (Runner(RUNNER.match, every=True), "1 good, 1 bad\n2 good, 0 bad", (4, 3, 1, False)),
        (Runner(r"^ran (?P<total>\d+)(?:, skipped (?P<skipped>\d+))?"), "ran 7, skipped 2", (5, 5, 0, True)),
        (Runner(r"^ran (?P<total>\d+) e=(?P<errors>\d+)"), "ran 7 e=7", (7, 0, 7, False)),
    ],
)
def test_runners_of_the_operator(runner: Runner, text: str, expected: tuple[int, int, int, bool]) -> None:
    seen = last(Story().bash("bin/check-all", text, 0), runners={"acme": runner}, programs={"check-all": "test"})
    assert (seen.tests_run, seen.tests_passed_count, seen.tests_failed, seen.tests_passed) == expected


def test_what_one_vocabulary_read_does_not_colour_another() -> None:
    story = Story().call("acme", {}, "x", is_error=False)
    kinds = [
        observe(story.conversation, v).observations[0].kind
        for v in (Vocabulary(), Vocabulary(Additions({"acme": "test"})))
    ]
    assert kinds == ["other", "test"]


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ('[signals.tools]\nacme = "writes"', 2, "signals.tools.acme", "writes"),
        ('[signals.tools]\nAcme = "read"\nacme = "write"', 1, "signals.tools", "are one name"),
        ('[signals.programs]\nacme = 3', 2, "signals.programs.acme", "expected"),
        ('[[signals.patterns]]\nmatch = "("\nclass = "critical"\nkind = "x"', 2, "signals.patterns[0].match", "not a regular"),
        ('[[signals.patterns]]\nmatch = "a*"\nclass = "none"\nkind = "x"', 2, "signals.patterns[0].match", "every text"),
        ('[[signals.patterns]]\nmatch = "(a+)+$"\nclass = "none"\nkind = "x"', 2, "signals.patterns[0].match", "takes too long"),
        ('[[signals.patterns]]\nmatch = "a"\nclass = "bad"\nkind = "x"', 3, "signals.patterns[0].class", "bad"),
        ('[[signals.patterns]]\nmatch = "a"\nclass = "none"\nkind = "X y"', 4, "signals.patterns[0].kind", "lower-case"),
        ('[[signals.patterns]]\nmatch = "a"\nkind = "x"', 1, "signals.patterns[0]", "missing key `class`"),
        ('[signals.runners.acme]\nmatch = "x (\\\\d+)"', 2, "signals.runners.acme.match", "named group"),
        ('[signals.runners.acme]\nmatch = "(?P<passed>1)(?P<bad>1)"', 2, "signals.runners.acme.match", "bad"),
        ('[signals]\ntool = 1', 2, "signals.tool", "did you mean `tools`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_line_and_key(text: str, line: int, key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text + ROUTE, "acme.toml")
    shown = str(caught.value)
    assert (caught.value.file, caught.value.line, caught.value.key) == ("acme.toml", line, key)
    assert says in shown


def test_additions_change_the_digests_of_routes_and_only_then() -> None:
    plain, empty = parse(ROUTE), parse("[signals]" + ROUTE)
    added = parse('[signals.tools]\nacme = "write"' + ROUTE)
    assert plain.routes["coder"].policy == empty.routes["coder"].policy
    assert plain.routes["coder"].policy != added.routes["coder"].policy
    assert plain.digest != added.digest


def test_commands_read_with_the_vocabulary_of_its_configuration(tmp_path: Path) -> None:
    config = tmp_path / "turnout.toml"
    config.write_text('[[signals.patterns]]\nmatch = "^quota"\nclass = "critical"\nkind = "quota"\n' + ROUTE, "utf-8")
    call = {"id": "a", "type": "function", "function": {"name": "deploy", "arguments": "{}"}}
    told = [
        {"role": "user", "content": "Deploy."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "quota of team A is exhausted"},
    ]
    recording = tmp_path / "told.jsonl"
    recording.write_text(json.dumps({"messages": told}), "utf-8")

    def printed(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "turnout", *arguments]
        row: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return row

    row = printed("route", str(config), "coder", str(recording))
    assert row["target"] == "large"
    assert row["signals"]["observations"][0]["error_kind"] == "quota"
