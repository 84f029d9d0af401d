"""Routing never changes what the client allows: tools, tool choice, instructions and permissions arrive as they were sent."""

import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import native
from tests.played import Played, completion, whole
from tests.running import Running, running, script

from turnout.conversation import FORMATS, DropForeignReasoning, Note
from turnout.conversation.edits import Edit, Effort, Instruction
from turnout.routing import RouterConfig
from turnout.wire import CODECS

JSON = dict[str, Any]
PROMPT = "The operator's own prompt."
HEAD = "".join(
    f"""
[upstreams.{form}]
format = "{form}"
base_url = "{{url}}"
[targets.{form}-weak]
upstream = "{form}"
model = "weak"
prompt = "{PROMPT}"
[targets.{form}-strong]
upstream = "{form}"
model = "strong"
prompt = "{PROMPT}"
"""
    for form in FORMATS
)
HEAD += """
[upstreams.judges]
format = "openai_chat"
script = "judge.jsonl"
[targets.judge]
upstream = "judges"
model = "judge"
"""
ROUTES = {
    "passthrough": 'target = "{form}-strong"',
    "random": 'targets = ["{form}-weak", "{form}-strong"]',
    "stage": 'efficient = "{form}-weak"\ncapable = "{form}-strong"\nescalation_note = "Look closely."\n'
    'capable_prompt = "{prompt}"\nefficient_prompt = "{prompt}"',
    "escalation": 'weak = "{form}-weak"\nstrong = "{form}-strong"\njudge = "judge"\nconfirmations = 1\nnote = "Anew."',
    "classifier": 'judge = "judge"\nefficient = "{form}-weak"\ncapable = "{form}-strong"',
    "advisor": 'executor = "{form}-weak"\nadvisor = "judge"',
    "affinity": '[routes.r.router]\ntype = "random"\ntargets = ["{form}-weak", "{form}-strong"]',
    "composite": '[[routes.r.routers]]\nname = "first"\nuser_turn = true\nrouter = "{form}-strong"\n'
    '[[routes.r.routers]]\nname = "last"\nrouter = "{form}-weak"',
    "collaboration": 'graph = "graph.json"\nprefer = ["weak"]\nmodels = { weak = "{form}-weak", judge = "judge" }',
    "canary": 'incumbent = "{form}-weak"\ncandidate = "{form}-strong"\nshare = 0.5',
    "retrieval": 'policy = "judge"\nknowledge = "http://127.0.0.1:1"\notherwise = "{form}-strong"',
}
"""How a route of every type is configured here."""
JUDGED = {"escalate": True, "reason": "stuck", "crux": "it", "primary_rule": "LIM-1", "p_solve": 0.1}
GRAPH: JSON = {
    "models": ["weak", "judge"],
    "scores": {"weak": {}, "judge": {}},
    "given": {"weak": 5.0, "judge": 5.0},
    "received": {"weak": 5.0, "judge": 5.0},
    "category": {"weak": None, "judge": None},
    "C": ["judge"],
    "C_prime": [],
    "C_i": {"weak": ["judge"], "judge": []},
    "C_prime_i": {},
    "excluded": {"weak": "its votes would look like turns of its own here"},
    "manifest": {"made_at": "2026-01-01T00:00:00Z"},
}
PERMISSIONS = "<permissions instructions>Never write outside the workspace.</permissions instructions>"
SCHEMA: JSON = {"type": "object", "properties": {"command": {"type": "string"}}}


def body_of(form: str) -> JSON:
    """A request in the middle of failing work, with all that a client can say of what is allowed."""
    if form == "openai_chat":
        function = {"name": "bash", "description": "Run.", "parameters": SCHEMA}
        call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "make"}'}}
        return {
            "messages": [
                {"role": "system", "content": "Be careful."},
                {"role": "developer", "content": PERMISSIONS},
                {"role": "user", "content": "Build it."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "<returncode>1</returncode>\nTraceback"},
            ],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": "bash"}},
            "parallel_tool_calls": False,
        }
    if form == "openai_responses":
        call = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "make"}'}
        return {
            "instructions": "Be careful.",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": PERMISSIONS}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Build it."}]},
                call,
                {"type": "function_call_output", "call_id": "c1", "output": "<returncode>1</returncode>\nTraceback"},
            ],
            "tools": [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "bash"}]},
            "parallel_tool_calls": False,
            "store": False,
        }
    mark = {"type": "ephemeral", "ttl": "1h"}
    result = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "Exit code 1\nTraceback"}
    return {
        "system": [
            {"type": "text", "text": "Be careful."},
            {"type": "text", "text": PERMISSIONS, "cache_control": mark},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Build it.", "cache_control": mark}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make"}}],
            },
            {"role": "user", "content": [{**result, "cache_control": mark}]},
        ],
        "tools": [
            {"name": "Bash", "input_schema": SCHEMA, "cache_control": mark},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 1, "allowed_domains": ["a.example"]},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "max_tokens": 50,
        "mcp_servers": [
            {"type": "url", "name": "m", "url": "https://m.example", "tool_configuration": {"enabled": True}}
        ],
    }


PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}
ALLOWED = ("tools", "tool_choice", "parallel_tool_calls", "mcp_servers", "store", "max_tokens")


def instructions(form: str, body: JSON) -> list[Any]:
    """The client's instructions, without the operator's own prompts."""
    if form == "openai_chat":
        ruled = [m for m in body["messages"] if m["role"] in ("system", "developer")]
        return [m for m in ruled if m["content"] != PROMPT]
    if form == "openai_responses":
        own = [text for text in body.get("instructions", "").split("\n\n") if text != PROMPT]
        return [*own, *(m for m in body["input"] if m.get("role") == "developer")]
    return [b for b in body["system"] if b != {"type": "text", "text": PROMPT}]


def history(form: str, body: JSON) -> list[Any]:
    items = body["input" if form == "openai_responses" else "messages"]
    return [m for m in items if m.get("role") not in ("system", "developer")]


def reply(path: str) -> JSON:
    if path.endswith("completions"):
        return completion()
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    if path.endswith("responses"):
        said = {"type": "output_text", "text": "Done.", "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
        return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "created_at": 1,
                "output": [item], "usage": usage}  # fmt: skip
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None,
            "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn", "usage": usage}  # fmt: skip


@pytest.fixture
def upstream() -> Iterator[Played]:
    with Played(lambda seen, n: whole(200, reply(seen.path))) as server:
        yield server


def test_every_type_of_router_is_looked_at_here() -> None:
    assert set(ROUTES) == {kind.__struct_config__.tag for kind in typing.get_args(RouterConfig)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ROUTES)
def test_no_router_changes_what_the_client_allows(kind: str, form: str, upstream: Played, tmp_path: Path) -> None:
    verdict = {"text": json.dumps({**JUDGED, "capability_boundary": "unsupported"})}
    script(tmp_path, "judge.jsonl", verdict)
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    keys = ROUTES[kind].replace("{form}", form).replace("{prompt}", PROMPT)
    route = f'\n[routes.r]\ntype = "{kind}"\nhandover_note = true\n{keys}\n'
    other = f'[routes.other]\ntype = "passthrough"\ntarget = "{form}-weak"\nhandover_note = true\n'
    with running(HEAD.replace("{url}", upstream.url) + route + other, tmp_path) as gateway:
        turns(gateway, form)
    assert len(upstream.seen) >= 3
    assert kind != "passthrough" or b"<handover>" in upstream.seen[1].body
    sent = body_of(form)
    for number, seen in enumerate(upstream.seen):
        arrived = json.loads(seen.body)
        assert {k: arrived.get(k) for k in ALLOWED} == {k: sent.get(k) for k in ALLOWED}
        assert instructions(form, arrived) == instructions(form, sent)
        # Notes stand behind everything that the client has said; its cache marks are where they were.
        *was, last = history(form, sent if number else short(form))
        now = history(form, arrived)
        assert now[: len(was)] == was
        said, kept = last.get("content"), now[len(was)].get("content")
        assert kept[: len(said)] == said if isinstance(said, list) else kept == said
        assert {k: v for k, v in now[len(was)].items() if k != "content"} == {
            k: v for k, v in last.items() if k != "content"
        }


def short(form: str) -> JSON:
    """The same request as it stood when the work began."""
    field = "input" if form == "openai_responses" else "messages"
    body = body_of(form)
    return {**body, field: body[field][:-2]}


def turns(gateway: Running, form: str) -> None:
    """The beginning of the work by another route, then the rest by the route that is looked at, and once more."""
    for number, route in enumerate(("other", "r", "r")):
        raw = json.dumps({"model": route, **(body_of(form) if number else short(form))}).encode()
        headers = {"content-type": "application/json", "x-turnout-session": "s"}
        with urlopen(Request(gateway.url + PATHS[form], raw, headers), timeout=20) as response:
            response.read()


edits: st.SearchStrategy[list[Edit]] = st.lists(
    st.one_of(
        st.builds(Note, st.text(min_size=1, max_size=20)),
        st.just(Instruction(PROMPT)),
        st.builds(DropForeignReasoning, st.just(()), st.booleans()),
        st.builds(Effort, st.sampled_from(["low", "high"])),
    ),
    max_size=4,
)


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.data(), made=edits)
def test_no_edit_changes_what_the_client_allows(form: Any, data: Any, made: list[Edit]) -> None:
    body = data.draw(native.bodies(form))
    after = msgspec.json.decode(CODECS[form].patch(native.encoded(body), made))
    touched = {"messages", "input", "instructions", "system", "reasoning", "reasoning_effort", "output_config",
               "thinking", "context_management"}  # fmt: skip
    assert {k: v for k, v in after.items() if k not in touched} == {k: v for k, v in body.items() if k not in touched}
    read = CODECS[form].read_request
    was, now = read(native.encoded(body)).conversation, read(native.encoded(after)).conversation
    assert list(now.tools) == list(was.tools)
    prompts = sum(1 for edit in made if isinstance(edit, Instruction))
    if not prompts:
        assert list(now.system) == list(was.system)
    ruled = [m for m in was.messages if m.role in ("system", "developer")]
    assert [m for m in now.messages if m.role in ("system", "developer") and m.text != PROMPT] == [
        m for m in ruled if m.text != PROMPT
    ]
