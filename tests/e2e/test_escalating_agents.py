"""The real Claude Code and Codex on an escalation route: the weak model goes in circles, the judge sees it, the strong one gets
the task done."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import agents
from tests.e2e.agents import DIALECT, NAMES, needs_agents
from tests.e2e.vendors import Call, Play, tool_results
from tests.gateway.escalating import escalating, said, verdict

JSON = dict[str, Any]
pytestmark = [pytest.mark.agents, needs_agents]

CHECK = 'test -f widget && echo "check passed" || { echo "check failed: widget is missing"; exit 1; }\n'
DONE = "The widget is there and the check passes."


def shell(form: str, body: JSON, command: str) -> Play:
    """A reply that runs `command` with the shell tool the agent offers; words only where it offers none."""
    names = {(tool.get("function") or tool).get("name") for tool in body.get("tools") or []}
    call_id = f"{'toolu_' if form == 'anthropic_messages' else 'call_'}{time.monotonic_ns():x}"
    if "Bash" in names:
        arguments = json.dumps({"command": command, "description": "Work on the widget"})
        return Play("Let me see.", calls=(Call(call_id, "Bash", arguments),), stop="tool_calls")
    if "exec_command" in names:
        return Play(
            "Let me see.", calls=(Call(call_id, "exec_command", json.dumps({"cmd": command})),), stop="tool_calls"
        )
    return Play("A title")


def strong_play(form: str, body: JSON) -> Play:
    """Makes what is missing, looks at the check, and is done."""
    results = tool_results(form, body)
    if any("check passed" in result for result in results):
        return Play(DONE)
    return shell(form, body, "touch widget && sh check.sh")


@pytest.mark.parametrize("agent", NAMES)
@pytest.mark.parametrize("other_format", [False, True])
def test_an_agent_whose_weak_model_goes_in_circles_finishes_its_task(
    tmp_path: Path, agent: str, other_format: bool
) -> None:
    form = "openai_chat" if other_format else DIALECT[agent]
    work = tmp_path / "work"
    work.mkdir()
    (work / "check.sh").write_text(CHECK)
    with escalating(tmp_path, form, note="The weaker model was going in circles.") as (gateway, upstreams):
        upstreams.weak = lambda body: said(shell(form, body, "sh check.sh"), form, body)
        upstreams.strong = lambda body: said(strong_play(form, body), form, body)
        # Votes to move up once the transcript shows the same failure twice.
        upstreams.judge = lambda body: said(
            verdict(json.dumps(body).count("check failed: widget is missing") >= 2), "openai_chat", body
        )
        ran = agents.run(agent, gateway.url, "r", work)
        assert (ran.code, ran.said) == (0, DONE), ran
        turns = [turn for turn in reversed(gateway.settled()) if turn.agent_kind == "main"]
        asked = [(name, body) for name, body in upstreams.calls if name != "judge"]
    assert (work / "widget").exists()
    assert [turn.why.rule for turn in turns if turn.why] == ["declined", "declined", "voted", "latched", ""]
    assert [turn.target for turn in turns] == ["weak", "weak", "weak", "strong", "strong"]
    assert [turn.ended for turn in turns] == ["ok"] * 5
    assert {(turn.session, turn.agent) for turn in turns} == {(turns[0].session, "")}
    latched = turns[3]
    assert [(call.purpose, call.served) for call in latched.calls] == [
        ("draft", False),
        ("judge", False),
        ("answer", True),
    ]
    assert all(call.cost_usd for turn in turns for call in turn.calls)
    strong = [json.dumps(body) for name, body in asked if name == "strong"]
    assert ["going in circles" in text for text in strong] == [True, False]
