"""Requests with the headers that agents give their sub-agents: a lane of their own within the session."""

import itertools
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.replaying import PATHS
from tests.e2e.vendors import Vendors
from tests.running import Running, running

JSON = dict[str, Any]
SESSION = "5b2f0f0e-1d2c-4c5e-9a58-0d6f6a3c9a11"
THREAD = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
TOOL: JSON = {"type": "object", "properties": {}}
numbers = itertools.count()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Vendors() as vendors:
        toml = f'[upstreams.u]\nformat = "openai_chat"\nbase_url = "{vendors.url}"\n'
        toml += '[targets.t]\nupstream = "u"\nmodel = "text"\n[routes.r]\ntype = "passthrough"\ntarget = "t"\n'
        with running(toml, tmp_path_factory.mktemp("sub")) as served:
            yield served


def turn_of(gateway: Running, form: str, headers: JSON, **more: Any) -> Any:
    """The record of a turn that came with `headers`."""
    text = f"task {next(numbers)}"
    if form == "anthropic_messages":
        tool = {"name": "Bash", "input_schema": TOOL}
        body: JSON = {"max_tokens": 10, "messages": [{"role": "user", "content": text}], "tools": [tool]}
    else:
        tool = {"type": "function", "name": "exec_command", "parameters": TOOL}
        body = {"input": text, "tools": [tool], "store": False}
    data = json.dumps({"model": "r", **body, **more}).encode()
    request = urllib.request.Request(gateway.url + PATHS[form], data, {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=20) as response:
        response.read()
    return gateway.settled()[0]


def lane(turn: Any) -> tuple[str, str, str, str, str, str]:
    return turn.rung, turn.session, turn.agent, turn.agent_program, turn.agent_kind, turn.agent_parent


def test_claude_code_names_its_sub_agents(gateway: Running) -> None:
    session = {"x-claude-code-session-id": SESSION}
    main = turn_of(gateway, "anthropic_messages", session)
    assert lane(main) == ("claude_code", SESSION, "", "claude-code", "main", "")
    first = turn_of(gateway, "anthropic_messages", {**session, "x-claude-code-agent-id": "a1"})
    assert lane(first) == ("claude_code", SESSION, "a1", "claude-code", "subagent", "")
    nested = {**session, "x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"}
    assert lane(turn_of(gateway, "anthropic_messages", nested)) == (
        *("claude_code", SESSION, "a2", "claude-code", "subagent", "a1"),
    )


def test_claude_code_calls_without_tools_are_background(gateway: Running) -> None:
    turn = turn_of(gateway, "anthropic_messages", {"x-claude-code-session-id": SESSION}, tools=[])
    assert (turn.session, turn.agent_kind) == (SESSION, "background")
    assert turn.agent


def test_older_claude_code_names_its_session_in_the_body(gateway: Running) -> None:
    for user in (
        f"user_{'0' * 64}_account_1d2c_session_{SESSION}",
        json.dumps({"device_id": "d", "account_uuid": "", "session_id": SESSION}),
    ):
        turn = turn_of(gateway, "anthropic_messages", {}, metadata={"user_id": user})
        assert lane(turn) == ("metadata", SESSION, "", "claude-code", "main", "")


def codex(thread: str, **more: str) -> JSON:
    meta = {"session_id": SESSION, "thread_id": thread, "turn_id": f"turn-{next(numbers)}", **more}
    return {
        "x-codex-turn-metadata": json.dumps(meta),
        "x-codex-window-id": f"{thread}:0",
        "session-id": SESSION,
        "thread-id": thread,
        "originator": "codex_exec",
    }


def test_codex_names_its_sub_agents(gateway: Running) -> None:
    main = turn_of(gateway, "openai_responses", codex(SESSION, thread_source="user"))
    assert lane(main) == ("codex", SESSION, "", "codex", "main", "")
    spawned = codex(THREAD, thread_source="subagent", parent_thread_id=SESSION, subagent_kind="thread_spawn")
    headers = {**spawned, "x-openai-subagent": "collab_spawn", "x-codex-parent-thread-id": SESSION}
    assert lane(turn_of(gateway, "openai_responses", headers)) == (
        *("codex", SESSION, THREAD, "codex", "subagent", SESSION),
    )


def test_codex_maintenance_calls_stay_in_the_lane_they_serve(gateway: Running) -> None:
    headers = {**codex(THREAD, parent_thread_id=SESSION), "x-openai-subagent": "compact"}
    assert lane(turn_of(gateway, "openai_responses", headers)) == (
        *("codex", SESSION, "", "codex", "background", SESSION),
    )
