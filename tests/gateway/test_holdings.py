"""What lies at one account keeps a conversation there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.played import Played, whole
from tests.running import Running, running

JSON = dict[str, Any]
TOML = """
[upstreams.here]
format = "{form}"
base_url = "{url}/here"
[upstreams.there]
format = "{form}"
base_url = "{url}/there"
[targets.one]
upstream = "here"
model = "m1"
[targets.one-large]
upstream = "here"
model = "m2"
[targets.two]
upstream = "there"
model = "m1"
[routes.one]
type = "passthrough"
target = "one"
[routes.two]
type = "passthrough"
target = "two"
[routes.large]
type = "passthrough"
target = "one-large"
[routes.reviewed]
type = "escalation"
weak = "two"
strong = "one"
judge = "one"
confirmations = 1
[routes.staged]
type = "stage"
efficient = "one"
capable = "two"
threshold = 0.1
"""
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def play(seen: Any, number: int) -> Any:
    if seen.path.endswith("/responses"):
        said = {"type": "output_text", "text": "Done.", "annotations": []}
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [said]}
        reply = {"id": f"resp_{number}", "object": "response", "status": "completed", "model": "m", "output": [item]}
        return whole(200, {**reply, "created_at": 1, "usage": USAGE})
    text = [{"type": "text", "text": "Done."}]
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": text}
    return whole(200, {**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": USAGE})


@pytest.fixture
def upstream() -> Iterator[Played]:
    with Played(play) as server:
        yield server


@pytest.fixture(params=["anthropic_messages"])
def gateway(request: Any, upstream: Played, tmp_path: Path) -> Iterator[Running]:
    with running(TOML.format(url=upstream.url, form=request.param), tmp_path) as served:
        yield served


def send(gateway: Running, path: str, route: str, body: JSON) -> JSON:
    headers = {"content-type": "application/json", "x-turnout-session": "s"}
    raw = json.dumps({"model": route, **body}).encode()
    try:
        with urlopen(Request(gateway.url + path, raw, headers), timeout=10) as response:
            return dict(response.headers.items())
    except HTTPError as error:
        with error:
            return json.loads(error.read())


FILE: JSON = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
ASKED: JSON = {"role": "user", "content": "And now?"}
SAID: JSON = {"role": "assistant", "content": "Done."}
FAILED: JSON = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "Exit code 1\nTraceback: boom"}
CALL: JSON = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}


def messages(*blocks: JSON) -> list[JSON]:
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": "Read this."}]}]


def test_a_file_of_one_account_keeps_the_turn_at_that_account(gateway: Running, upstream: Played) -> None:
    first = messages(FILE)
    assert send(gateway, "/v1/messages", "staged", {"messages": first, "max_tokens": 9})["x-turnout-target"] == "one"
    loop = [*first, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [FAILED]}]
    head = send(gateway, "/v1/messages", "staged", {"messages": loop, "max_tokens": 9})
    assert (head["x-turnout-target"], head["x-turnout-source"]) == ("one", "fallback")
    assert [seen.path.split("/")[1] for seen in upstream.seen] == ["here", "here"]
    # Without the file the same turn goes where the router sends it.
    bare = [*messages(), *loop[1:]]
    assert send(gateway, "/v1/messages", "staged", {"messages": bare, "max_tokens": 9})["x-turnout-target"] == "two"


def test_a_route_that_has_no_target_there_refuses_and_says_where_it_lies(gateway: Running, upstream: Played) -> None:
    first = messages(FILE)
    send(gateway, "/v1/messages", "staged", {"messages": first, "max_tokens": 9})
    error = send(gateway, "/v1/messages", "two", {"messages": [*first, SAID, ASKED], "max_tokens": 9})["error"]
    assert error["type"] == "invalid_request_error"
    assert "messages[0].content[0]: the uploaded file lies at the account of target one" in error["message"]
    assert "target two cannot reach it" in error["message"]
    assert len(upstream.seen) == 1
    # Another model at the same account can.
    assert "x-turnout-target" in send(
        gateway, "/v1/messages", "large", {"messages": [*first, SAID, ASKED], "max_tokens": 9}
    )


def test_a_draft_is_not_asked_for_where_the_file_is_not(gateway: Running, upstream: Played) -> None:
    first = messages(FILE)
    send(gateway, "/v1/messages", "staged", {"messages": first, "max_tokens": 9})
    head = send(gateway, "/v1/messages", "reviewed", {"messages": [*first, SAID, ASKED], "max_tokens": 9})
    assert head["x-turnout-target"] == "one"
    assert all(seen.path.startswith("/here") for seen in upstream.seen)


def test_a_file_that_nobody_has_answered_to_yet_may_be_anybodys(gateway: Running) -> None:
    first = messages()
    send(gateway, "/v1/messages", "staged", {"messages": first, "max_tokens": 9})
    newest = [*first, SAID, *messages(FILE)]
    assert "x-turnout-target" in send(gateway, "/v1/messages", "two", {"messages": newest, "max_tokens": 9})


def test_a_container_is_the_accounts_that_made_it(gateway: Running) -> None:
    first = messages()
    send(gateway, "/v1/messages", "staged", {"messages": first, "max_tokens": 9})
    body = {"messages": [*first, SAID, ASKED], "max_tokens": 9, "container": "container_1"}
    assert "container: the container lies at" in send(gateway, "/v1/messages", "two", body)["error"]["message"]
    body["container"] = {"skills": []}
    assert "x-turnout-target" in send(gateway, "/v1/messages", "two", body)


@pytest.mark.parametrize("gateway", ["openai_responses"], indirect=True)
@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"type": "compaction", "encrypted_content": "gAAA"}, "the compacted history"),
        ({"type": "item_reference", "id": "msg_elsewhere_0123456789"}, "the stored item"),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, "the stored reasoning"),
    ],
)
def test_stored_items_are_the_accounts_that_keeps_them(gateway: Running, item: JSON, what: str) -> None:
    first = [{"role": "user", "content": "hi"}]
    send(gateway, "/v1/responses", "staged", {"input": first, "store": False})
    body = {"input": [*first, item, {"role": "assistant", "content": "Done."}, ASKED], "store": False}
    error = send(gateway, "/v1/responses", "two", body)["error"]
    assert error["code"] == "unsupported_server_state"
    assert error["param"] == "input[1]"
    assert what in error["message"]
    assert "x-turnout-target" in send(gateway, "/v1/responses", "large", body)
