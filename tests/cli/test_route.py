"""`turnout route`: decisions for recorded conversations, without a call."""

import json
from pathlib import Path

import pytest
from msgspec import Struct

from turnout.cli import exits
from turnout.cli.app import run
from turnout.cli.route import decided
from turnout.evaluate.recordings import read_conversation
from turnout.gateway.routes import Route
from turnout.routing.core import Answer, Asking, Decision, Forward, TargetName, Turn, Why, ask

CONFIG = """\
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
api_key_env = "A_VARIABLE_THAT_IS_NOT_SET"
[targets.small]
upstream = "main"
model = "m-small"
[targets.large]
upstream = "main"
model = "m-large"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
aliases = ["best"]
[routes.fixed]
type = "passthrough"
target = "small"
"""


class Asks(Struct, frozen=True, tag="asks", tag_field="type"):
    """A router that wants two opinions."""

    judge: TargetName = TargetName("large")

    def route(self, turn: Turn) -> Asking[Decision]:
        outcome = yield from ask(self.judge, turn.conversation, "judge")
        raise AssertionError(f"nobody should answer: {outcome}")

    @property
    def otherwise(self) -> TargetName:
        return self.judge


class Breaks(Struct, frozen=True, tag="breaks", tag_field="type"):
    """A router that raises."""

    def route(self, turn: Turn) -> Forward | Answer:
        raise ZeroDivisionError("oops")

    @property
    def otherwise(self) -> TargetName:
        return TargetName("large")


def conversation(*results: tuple[str, int]) -> dict[str, object]:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Make the tests pass."}]
    for number, (text, code) in enumerate(results):
        function = {"name": "bash", "arguments": '{"command": "pytest -q"}'}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": text, "returncode": code},
        ]
    return {"messages": messages}


FAILED = "FAILED tests/test_a.py::test_a - AssertionError: assert 1 == 2\n1 failed in 0.1s"
ROWS = [conversation(), conversation((FAILED, 1), (FAILED, 1), (FAILED, 1)), conversation(("3 passed in 0.1s", 0))]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    config, recorded = tmp_path / "turnout.toml", tmp_path / "c.jsonl"
    config.write_text(CONFIG)
    recorded.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(config), str(recorded)


def test_failures_that_repeat_go_to_the_capable_target(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    config, recorded = files
    assert run(["route", config, "coder", recorded]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["conversation"], row["target"]) for row in rows] == [(0, "small"), (1, "large"), (2, "small")]
    for row in rows:
        assert set(row) >= {"conversation", "target", "source", "score", "confidence", "signals", "why"}
        assert row["why"]["sentence"]
        assert row["needs"] == []
    assert len(rows[1]["signals"]["observations"]) == 3
    told = rows[1]["explained"]
    assert (told["tier"], told["rule"], told["same"]) == ("capable", "repeated_failure", True)
    assert next(rule for rule in told["rules"] if rule["rule"] == "repeated_failure")["seen"][0]["tool"] == "bash"
    assert run(["route", config, "best", recorded]) == 0
    assert [json.loads(line)["target"] for line in capsys.readouterr().out.splitlines()] == ["small", "large", "small"]


def test_the_same_input_gives_the_same_output(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        assert run(["route", *files[:1], "coder", files[1]]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_the_table_shows_targets_and_reasons(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["route", files[0], "coder", files[1], "--table"]) == 0
    out = capsys.readouterr().out
    assert "large" in out
    assert "small" in out


def test_an_unknown_route_is_not_found(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["route", files[0], "codr", files[1]]) == exits.NOT_FOUND
    assert "did you mean `coder`?" in capsys.readouterr().err


def test_a_router_that_would_ask_says_whom() -> None:
    recorded = read_conversation(json.dumps(ROWS[0]).encode())
    row = decided(recorded, Route("r", Asks()), {}, 60.0)
    assert row["needs"] == [{"target": "large", "purpose": "judge"}]
    assert row["target"] is None
    assert "judge from large" in row["why"]["sentence"]


def test_a_router_that_raises_is_a_fault_and_falls_to_the_last_resort() -> None:
    recorded = read_conversation(json.dumps(ROWS[0]).encode())
    row = decided(recorded, Route("r", Breaks()), {}, 60.0)
    assert (row["target"], row["source"]) == ("large", "fault")
    assert "oops" in row["why"]["sentence"]
    stated = decided(recorded, Route("r", Breaks(), otherwise=TargetName("small")), {}, 60.0)
    assert stated["target"] == "small"


def test_why_is_told_whole() -> None:
    class Fixed(Breaks, frozen=True, tag="fixed", tag_field="type"):
        def route(self, turn: Turn) -> Forward:
            return Forward(TargetName("small"), Why("fixed", "always small", "rule", values={"a": 1}))

    row = decided(read_conversation(json.dumps(ROWS[0]).encode()), Route("r", Fixed()), {}, 60.0)
    assert row["why"] == {"source": "fixed", "sentence": "always small", "rule": "rule", "values": {"a": 1}}
