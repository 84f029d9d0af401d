"""Every recorded exchange through a running gateway: unchanged in its own format, accepted or refused by name in another."""

import itertools
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pydantic
import pytest

from tests.e2e.clients import CLIENTS
from tests.e2e.replaying import PATHS, Replay, data_lines, failed, is_stream, reply_bytes, said
from tests.e2e.vendors import FORMATS, Vendors
from tests.recorded import captures, needs_recordings
from tests.running import Running, running
from turnout.conversation import fold
from turnout.wire import CODECS

pytestmark = needs_recordings
JSON = dict[str, Any]
ROWS = captures()
CROSS = [(ours, theirs) for ours, theirs in itertools.product(FORMATS, FORMATS) if ours != theirs]

Served = tuple[Running, Replay, Vendors]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Replay() as replay, Vendors() as vendors:
        toml = ["[server]\nmax_body_mib = 64\n"]
        for form in FORMATS:
            for name, url, model in (("replay", replay.url, "any"), ("vendor", vendors.url, "text")):
                toml.append(f'[upstreams."{name}-{form}"]\nformat = "{form}"\nbase_url = "{url}"\nmax_retries = 0\n')
                toml.append(f'[targets."{name}-{form}"]\nupstream = "{name}-{form}"\nmodel = "{model}"\n')
                toml.append(f'[routes."{name}-{form}"]\ntype = "passthrough"\ntarget = "{name}-{form}"\n')
        # The recorded requests name the models of their time; a catch-all takes them whatever they are called.
        toml[-1] += 'aliases = ["*"]\n'
        with running("".join(toml), tmp_path_factory.mktemp("recorded")) as gateway:
            yield gateway, replay, vendors


def plain(form: str, stream: bool) -> JSON:
    """A request for a record that has none of its own."""
    if form == "openai_responses":
        return {"model": "x", "input": "hi", "stream": stream, "store": False}
    body: JSON = {"model": "x", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    if form == "anthropic_messages":
        return {**body, "max_tokens": 4096}
    return {**body, "stream_options": {"include_usage": True}} if stream else body


def request_of(row: Any) -> JSON:
    """The recorded request, or a plain one."""
    recorded = row.get("request")
    return dict(recorded) if isinstance(recorded, dict) else plain(row["protocol"], is_stream(row))


def post(gateway: Running, form: str, body: JSON) -> tuple[int, bytes]:
    request = urllib.request.Request(
        gateway.url + PATHS[form], json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.fixture
def calm() -> Iterator[None]:
    """Failures that records hold must not cool their target down for the next record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnout.upstream.health.Health.failed", lambda *_: None)
        yield


def test_the_same_format_passes_unchanged(served: Served, calm: None) -> None:
    gateway, replay, _ = served
    refused: Counter[str] = Counter()
    streams = 0
    for row in ROWS:
        form = row["protocol"]
        replay.on = row
        body = {**request_of(row), "model": f"replay-{form}"}
        sent = len(replay.bodies)
        status, data = post(gateway, form, body)
        if len(replay.bodies) == sent:
            # State of another server: the request is refused, the recorded reply still passes.
            refused[json.loads(data)["error"]["code"]] += 1
            body = {**plain(form, is_stream(row)), "model": f"replay-{form}"}
            status, data = post(gateway, form, body)
        if form != "openai_chat" or not body.get("stream") or "include_usage" in json.dumps(body):
            assert replay.bodies[-1] == json.dumps(body).replace(f'"replay-{form}"', '"any"', 1).encode(), row["id"]
        assert (status, data) == (row.get("status") or 200, reply_bytes(row)), row["id"]
        streams += is_stream(row)
    print(f"same format: {len(ROWS)} replies identical, {streams} of them streams; requests refused: {dict(refused)}")
    assert (len(ROWS), streams) == (233, 58)
    assert refused == {"previous_response_not_found": 1, "unsupported_feature": 1}


STRICT: dict[str, tuple[Any, Any]] = {
    "openai_chat": (openai.types.chat.ChatCompletion, openai.types.chat.ChatCompletionChunk),
    "openai_responses": (openai.types.responses.Response, openai.types.responses.ResponseStreamEvent),
    "anthropic_messages": (anthropic.types.Message, anthropic.types.RawMessageStreamEvent),
}


def fault_of(form: str, status: int, data: bytes, stream: bool) -> str:
    """The name of the error an answer holds, whole or in its stream; "" when it holds none."""
    if status >= 400:
        return named(form, json.loads(data))
    for event in data_lines(data) if stream else ():
        if event.get("type") == "response.failed":
            error = event["response"]["error"]
            assert error["message"]
            return str(error["code"])
        if event.get("type") == "error" or ("error" in event and form == "openai_chat"):
            return named(form, event)
    return ""


def named(form: str, body: JSON) -> str:
    error = body["error"]
    assert error["message"]
    assert (body.get("type") == "error") == (form == "anthropic_messages")
    return str(error.get("code") or error["type"])


def validated(form: str, data: bytes, stream: bool) -> None:
    """The client's own types take the answer, strictly."""
    whole, event = STRICT[form]
    if not stream:
        pydantic.TypeAdapter(whole).validate_json(data)
        return
    adapter = pydantic.TypeAdapter(event)
    for line in data_lines(data):
        adapter.validate_python(line)


@pytest.mark.parametrize(("ours", "theirs"), CROSS)
def test_a_reply_of_another_format_is_accepted_or_a_typed_error(
    served: Served, calm: None, ours: str, theirs: str
) -> None:
    gateway, replay, _ = served
    client: Any = CLIENTS[ours](gateway.url)
    counts: Counter[str] = Counter()
    lossy = 0
    for row in ROWS:
        if row["protocol"] != theirs:
            continue
        replay.on = row
        stream = is_stream(row)
        body = {**plain(ours, stream), "model": f"replay-{theirs}"}
        status, data = post(gateway, ours, body)
        fault = fault_of(ours, status, data, stream)
        turn = gateway.settled()[0]
        assert (turn.ended == "ok") == (not fault), (row["id"], turn.ended, turn.error, fault)
        if failed(row):
            assert fault, row["id"]
            counts["failed there, failed here"] += 1
        elif fault:
            counts[fault] += 1
        else:
            validated(ours, data, stream)
            got = client.ask(f"replay-{theirs}", client.user("hi"), stream)
            assert (got.text or got.refusal, got.calls) == said(row), row["id"]
            if stream:
                asked = CODECS[ours].read_request(json.dumps(body).encode())
                reader = CODECS[theirs].reader(asked)
                whole = fold((*reader.feed(reply_bytes(row)), *reader.close()))
                lost = {(d.path, d.how) for d in CODECS[ours].write_reply(whole, asked, "any").drops}
                assert lost <= {(d["path"], d["how"]) for d in turn.drop_report}, row["id"]
                lossy += bool(lost)
            counts["accepted"] += 1
    client.client.close()
    print(
        f"replies of {theirs} to clients of {ours}: {dict(counts)}; {lossy} streams lost something, all of it reported"
    )
    assert lossy > 0
    assert counts == REPLIES[theirs]


REPLIES = {
    "openai_chat": {"accepted": 52, "failed there, failed here": 9},
    # Output of tools that run at the client, images made by the server and programs: only Responses can say them.
    "openai_responses": {"accepted": 81, "unsupported_capability": 14, "failed there, failed here": 4},
    "anthropic_messages": {"accepted": 66, "failed there, failed here": 7},
}


@pytest.mark.parametrize(("ours", "theirs"), CROSS)
def test_a_request_to_another_format_is_served_or_refused_by_name(served: Served, ours: str, theirs: str) -> None:
    gateway, _, vendors = served
    counts: Counter[str] = Counter()
    for row in ROWS:
        if row["protocol"] != ours or not isinstance(row.get("request"), dict):
            continue
        body = {**row["request"], "model": f"vendor-{theirs}"}
        sent = len(vendors.requests)
        status, data = post(gateway, ours, body)
        stream = bool(body.get("stream"))
        fault = fault_of(ours, status, data, stream)
        if fault:
            assert 400 <= status < 500, (row["id"], data)
            assert len(vendors.requests) == sent
            counts[fault] += 1
            continue
        validated(ours, data, stream)
        turn = gateway.settled()[0]
        gone = {drop["path"].partition(".")[0].partition("[")[0] for drop in turn.drop_report}
        assert set(without_counterpart(body, vendors.last())) <= gone, (row["id"], turn.drop_report)
        counts["served"] += 1
    print(f"requests of {ours} to targets of {theirs}: {dict(counts)}")
    assert counts == REQUESTS[ours, theirs]


# Refused: tools that only the vendor runs, MCP servers, files by id or URL, state kept on another server.
REQUESTS = {
    ("openai_chat", "openai_responses"): {"served": 44},
    ("openai_chat", "anthropic_messages"): {"served": 44},
    ("openai_responses", "openai_chat"): {
        "served": 45,
        "unsupported_capability": 10,
        "unsupported_feature": 2,
        "previous_response_not_found": 1,
    },
    ("openai_responses", "anthropic_messages"): {
        "served": 46,
        "unsupported_capability": 9,
        "unsupported_feature": 2,
        "previous_response_not_found": 1,
    },
    ("anthropic_messages", "openai_chat"): {"served": 30, "unsupported_capability": 10},
    ("anthropic_messages", "openai_responses"): {"served": 29, "unsupported_capability": 11},
}


def without_counterpart(body: JSON, sent: JSON) -> Iterator[str]:
    """Top-level fields of a request that have no counterpart in what was sent instead."""
    for field, value in body.items():
        if value is None or field in ("model", "stream", "stream_options"):
            continue
        if not any(name in sent for name in {field, *SAME_AS.get(field, ())}):
            yield field


SAME_AS = {
    "messages": ("input", "messages", "instructions", "system"),
    "input": ("messages", "system"),
    "instructions": ("messages", "system"),
    "system": ("messages", "instructions"),
    "max_tokens": ("max_completion_tokens", "max_output_tokens"),
    "max_completion_tokens": ("max_tokens", "max_output_tokens"),
    "max_output_tokens": ("max_tokens", "max_completion_tokens"),
    "stop_sequences": ("stop",),
    "stop": ("stop_sequences",),
    "response_format": ("text", "output_config"),
    "text": ("response_format", "output_config", "verbosity"),
    "output_config": ("response_format", "text", "reasoning", "reasoning_effort"),
    "reasoning": ("reasoning_effort", "thinking", "output_config"),
    "reasoning_effort": ("reasoning", "thinking", "output_config"),
    "thinking": ("reasoning", "reasoning_effort"),
    "parallel_tool_calls": ("tool_choice",),
}
"""Fields that say the same in another format."""
