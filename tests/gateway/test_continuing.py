"""A response can be continued by the id the client got, whichever format the target speaks and whatever it keeps itself."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.running import Running, running, script

CONFIG = """
[upstreams.played]
format = "{format}"
script = "replies.jsonl"
[targets.one]
upstream = "played"
model = "m"
[routes.coder]
type = "passthrough"
target = "one"
"""


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic_messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_continued_by_its_id(format: str, stream: bool, tmp_path: Path):
    script(tmp_path, "replies.jsonl", {"turn": 0, "text": "first"}, {"turn": 1, "text": "second"})
    with running(CONFIG.format(format=format), tmp_path) as gateway:
        client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="unused", max_retries=0)
        with client:
            if stream:
                with client.responses.create(model="coder", input="hi", stream=True) as events:
                    first = next(event.response for event in events if event.type == "response.completed")
            else:
                first = client.responses.create(model="coder", input="hi")
            assert first.output_text == "first"
            second = client.responses.create(model="coder", input="and?", previous_response_id=first.id)
    assert second.output_text == "second"
    assert second.id != first.id


STAGE = """
[upstreams.played]
format = "openai_chat"
script = "replies.jsonl"
[targets.low]
upstream = "played"
model = "m"
[targets.high]
upstream = "played"
model = "m"
[routes.coder]
type = "stage"
efficient = "low"
capable = "high"
"""


def asked(gateway: Running, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Status and JSON of a POST."""
    request = urllib.request.Request(
        gateway.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_a_decision_alone_sees_what_the_request_continues(tmp_path: Path):
    script(tmp_path, "replies.jsonl", {"text": "first"}, {"text": "second"})
    failed = "Traceback (most recent call last):\n  File 'run.py', line 1\nValueError: bad"
    history = [
        {"role": "user", "content": "Fix it."},
        {"type": "function_call", "call_id": "a", "name": "shell", "arguments": '{"command": "python run.py"}'},
        {"type": "function_call_output", "call_id": "a", "output": failed},
        {"type": "function_call", "call_id": "b", "name": "shell", "arguments": '{"command": "python run.py"}'},
    ]
    with running(STAGE, tmp_path) as gateway:
        _, first = asked(gateway, "/v1/responses", {"model": "coder", "input": history})
        output = {"type": "function_call_output", "call_id": "b", "output": failed}
        body = {"model": "coder", "input": [output], "previous_response_id": first["id"]}
        _, decision = asked(gateway, "/v1/route", body)
        asked(gateway, "/v1/responses", body)
        turn = gateway.settled()[0]
        assert (decision["target"], decision["source"]) == (turn.target, turn.why.source)
        assert decision["target"] == "high"
        unknown = {"model": "coder", "input": "hi", "previous_response_id": "resp_nobody"}
        status, refusal = asked(gateway, "/v1/route", unknown)
    assert (status, refusal["error"]["code"]) == (400, "previous_response_not_found")
