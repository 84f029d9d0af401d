"""A stream that has begun, or was only kept alive, ends in an error the client can read, however its bytes come in."""

import http.client
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.played import Played, Seen, Step, chunk, event, stream
from tests.running import Running, running

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "anthropic_messages": "/v1/messages",
    "openai_responses": "/v1/responses",
}
SAYS_SO = {"openai_chat": b'"error"', "anthropic_messages": b"event: error", "openai_responses": b"response.failed"}
"""How a client of each format is told."""

_RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
_ITEM = {"type": "apply_patch_call", "id": "apc_1", "call_id": "c1", "status": "completed"}
BEGINNING: dict[str, bytes] = {
    "openai_chat": chunk({"role": "assistant", "content": ""}),
    "anthropic_messages": event(
        {"type": "message_start", "message": {**_MESSAGE, "usage": {"input_tokens": 3, "output_tokens": 1}}},
        "message_start",
    ),
    "openai_responses": event(
        {"type": "response.created", "sequence_number": 0, "response": _RESPONSE}, "response.created"
    ),
}
FAILURE: dict[str, bytes] = {
    "openai_chat": event({"error": {"message": "the engine broke", "type": "server_error"}}),
    "anthropic_messages": event(
        {"type": "error", "error": {"type": "overloaded_error", "message": "the engine broke"}}, "error"
    ),
    "openai_responses": event(
        {
            "type": "response.failed",
            "sequence_number": 1,
            "response": {
                **_RESPONSE,
                "status": "failed",
                "error": {"code": "server_error", "message": "the engine broke"},
            },
        },
        "response.failed",
    ),
}
UNSAYABLE = b"".join(
    [
        event({"type": "response.output_item.added", "output_index": 0, "sequence_number": 1, "item": _ITEM}),
        event({"type": "response.output_item.done", "output_index": 0, "sequence_number": 2, "item": _ITEM}),
        event(
            {
                "type": "response.completed",
                "sequence_number": 3,
                "response": {**_RESPONSE, "status": "completed", "output": [_ITEM]},
            }
        ),
    ]
)
PAUSE_S = 0.15


def play(seen: Seen, _: int) -> Sequence[Step]:
    """The model's name says how: what follows the beginning, and whether it comes apart from it."""
    form = next(form for form, path in PATHS.items() if seen.path.endswith(path.removeprefix("/v1")))
    kind, how = json.loads(seen.body)["model"].split("-")
    rest = UNSAYABLE if kind == "unsayable" else FAILURE[form]
    match how:
        case "together":
            return stream(BEGINNING[form] + rest)
        case "apart":
            return stream(BEGINNING[form], PAUSE_S, rest)
        case _:  # late: the client is kept alive before anything comes
            return stream(3.3, BEGINNING[form] + rest)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    toml = "[server]\nkeepalive_after_s = 1.0\n"
    with Played(play) as upstream:
        for form in PATHS:
            toml += f'[upstreams.{form}]\nformat = "{form}"\nbase_url = "{upstream.url}"\nmax_retries = 0\n'
            cases = itertools.product(("failure", "unsayable"), ("together", "apart", "late"), PATHS)
            for kind, how, ours in cases:
                name = f"{form}-{kind}-{how}-{ours}"  # one each, or their breaker opens
                toml += f'[targets.{name}]\nupstream = "{form}"\nmodel = "{kind}-{how}"\n'
                toml += f'[routes.{name}]\ntype = "passthrough"\ntarget = "{name}"\n'
        with running(toml, Path(tmp_path_factory.mktemp("begun"))) as served:
            yield served


def ask(gateway: Running, ours: str, route: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    said = [{"role": "user", "content": "hi"}]
    body = {"model": route, "stream": True, ("input" if ours == "openai_responses" else "messages"): said}
    if ours == "anthropic_messages":
        body["max_tokens"] = 10
    connection.request("POST", PATHS[ours], json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


@pytest.mark.parametrize("how", ["together", "apart", "late"])
@pytest.mark.parametrize("theirs", PATHS)
@pytest.mark.parametrize("ours", PATHS)
def test_a_failure_is_told_once(gateway: Running, ours: str, theirs: str, how: str) -> None:
    status, data = ask(gateway, ours, f"{theirs}-failure-{how}-{ours}")
    assert b"the engine broke" in data
    if status == 200:
        assert data.count(SAYS_SO[ours]) == data.count(b"the engine broke") * (2 if ours == "openai_responses" else 1)
    turn = gateway.settled()[0]
    assert turn.ended in ("error", "cut")
    assert turn.error == "unavailable"


@pytest.mark.parametrize("how", ["together", "apart", "late"])
@pytest.mark.parametrize("ours", ["openai_chat", "anthropic_messages"])
def test_what_cannot_be_said_is_told_once(gateway: Running, ours: str, how: str) -> None:
    status, data = ask(gateway, ours, f"openai_responses-unsayable-{how}-{ours}")
    assert data.count(b"apply_patch_call") == 1, data
    if status == 200:
        assert data.count(SAYS_SO[ours]) == 1
    turn = gateway.settled()[0]
    assert turn.ended in ("error", "cut")
    assert turn.error == "request"
