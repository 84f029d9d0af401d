"""What clients and the ledger see of calls that break: one failure terminal, no address, no wrong zero, no call too many."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from tests.played import Played, Step, chunk, completion, event, stream, whole
from tests.running import Running, running

CHAT = "/v1/chat/completions"
DONE = event(b"[DONE]")


def config(*upstreams: Played, form: str = "openai_chat", extra: str = "max_retries = 0", price: str = "") -> str:
    """Targets t0, t1 ...; the route `r` sends to the first and falls back to the others."""
    toml = ""
    for number, upstream in enumerate(upstreams):
        toml += f'[upstreams.u{number}]\nformat = "{form}"\nbase_url = "{upstream.url}"\n{extra}\n'
        toml += f'[targets.t{number}]\nupstream = "u{number}"\nmodel = "m{number}"\n{price}\n'
    others = [f"t{number}" for number in range(1, len(upstreams))]
    route = '[routes.r]\ntype = "stage"\nefficient = "t0"\ncapable = "t{}"\nefficient_fallbacks = {}\n'
    return toml + route.format(len(upstreams) - 1, json.dumps(others))


def post(gateway: Running, path: str, **body: Any) -> tuple[int, dict[str, str], bytes]:
    """Send a request and read the whole answer."""
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", path, json.dumps({"model": "r", **body}), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


ASK = {"messages": [{"role": "user", "content": "hi"}]}


def limited(seconds: str = "") -> list[Step]:
    return whole(429, {"error": {"message": "slow down"}}, **({"retry_after": seconds} if seconds else {}))


def opening() -> list[bytes]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}
    text = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {"type": "response.content_part.added", **text, "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", **text, "delta": "hello"},
    ]
    return [event({**e, "sequence_number": n}, e["type"]) for n, e in enumerate(events)]


@pytest.mark.parametrize("tail", [b"", b'data: {"type', event(b"{oops"), event({"type": "news"})])
@pytest.mark.parametrize("store", [True, False])
def test_a_responses_stream_that_just_ends_fails_in_its_own_dialect(tmp_path: Path, tail: bytes, store: bool) -> None:
    with (
        Played(lambda *_: stream(*opening(), *([tail] if tail else []))) as upstream,
        running(config(upstream, form="openai_responses"), tmp_path) as gateway,
    ):
        _, _, body = post(gateway, "/v1/responses", input="hi", stream=True, store=store)
        (turn,) = gateway.settled()
    frames = body.rstrip(b"\n").split(b"\n\n")
    last = json.loads(frames[-1].split(b"data: ", 1)[1])
    assert last["type"] == "response.failed"
    assert last["response"]["id"] == "resp_1"
    assert body.count(b"response.failed") == 2  # its name, and its type
    assert b'data: {"type\n' not in body
    assert (turn.ended, turn.error) == ("cut", "malformed")


def test_an_event_the_reader_cannot_read_does_not_fail_a_relayed_stream(tmp_path: Path) -> None:
    response = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [], "usage": None}
    sent = [*opening(), event(b"{oops"), event({"type": "response.completed", "response": response})]
    with (
        Played(lambda *_: stream(*sent)) as upstream,
        running(config(upstream, form="openai_responses"), tmp_path) as gateway,
    ):
        _, _, body = post(gateway, "/v1/responses", input="hi", stream=True)
        (turn,) = gateway.settled()
    assert body == b"".join(sent)
    assert turn.ended == "ok"


def test_nothing_follows_an_error_in_a_chat_stream_even_in_the_same_chunk(tmp_path: Path) -> None:
    failure = event({"error": {"message": "overloaded", "type": "server_error"}})
    with (
        Played(lambda *_: stream(chunk({"content": "a"}), 0.05, failure + DONE)) as upstream,
        running(config(upstream), tmp_path) as gateway,
    ):
        _, _, body = post(gateway, CHAT, **ASK, stream=True)
    assert body == chunk({"content": "a"}) + failure


@pytest.mark.parametrize("steps", [["reset"], ["close"], stream(chunk({"content": "a"}), "close")])
def test_no_address_of_an_upstream_reaches_a_client(tmp_path: Path, steps: list[Step]) -> None:
    with Played(lambda *_: steps) as upstream, running(config(upstream), tmp_path) as gateway:
        port = upstream.url.rsplit(":", 1)[1].encode()
        _, _, body = post(gateway, CHAT, **ASK, stream=True)
        assert b"target t0" in body
        assert b"127.0.0.1" not in body
        assert port not in body
        upstream.close()
        _, _, refused = post(gateway, CHAT, **ASK)
        assert b"target t0" in refused
        assert b"127.0.0.1" not in refused
        assert port not in refused


def test_a_target_that_falls_silent_is_not_asked_again(tmp_path: Path) -> None:
    with (
        Played(lambda *_: stream(3.0)) as silent,
        Played(lambda *_: stream(chunk({"content": "b"}), chunk({}, "stop"), DONE)) as other,
        running(config(silent, other, extra="max_retries = 0\nidle_s = 0.3"), tmp_path) as gateway,
    ):
        _, headers, _ = post(gateway, CHAT, **ASK, stream=True)
        (turn,) = gateway.settled()
    assert headers["x-turnout-target"] == "t1"
    assert (len(silent.seen), len(other.seen)) == (1, 1)
    assert [(call.target, call.status, call.error) for call in turn.calls] == [("t0", 200, "timeout"), ("t1", 200, "")]


@pytest.mark.parametrize(
    ("answers", "status", "wait"),
    [
        ([limited("90"), limited("120")], 429, 90.0),
        ([limited("120"), limited("90")], 429, 90.0),
        ([whole(503, {"error": {"message": "down"}}), limited("120")], 429, 5.0),
        ([limited("120"), whole(503, {"error": {"message": "down"}})], 503, 5.0),
        ([whole(401, {"error": {"message": "no"}}), limited("120")], 429, 120.0),
        ([whole(503, {"error": {"message": "down"}})], 503, None),
    ],
)
def test_who_has_run_out_of_targets_is_told_when_the_first_may_serve_again(
    tmp_path: Path, answers: list[list[Step]], status: int, wait: float | None
) -> None:
    first, *others = [Played(lambda *_, steps=steps: steps) for steps in answers]
    with running(config(first, *others), tmp_path) as gateway:
        got, headers, _ = post(gateway, CHAT, **ASK)
    for upstream in (first, *others):
        upstream.close()
    assert got == status
    assert headers.get("retry-after") == (None if wait is None else f"{wait:.0f}")


def test_what_a_timed_out_call_cost_is_unknown(tmp_path: Path) -> None:
    price = "price = { input = 1.0, output = 1.0 }"
    with (
        Played(lambda *_: [3.0]) as slow,
        Played(lambda *_: whole(200, completion())) as other,
        running(config(slow, other, extra="max_retries = 0\nfirst_byte_s = 0.3", price=price), tmp_path) as gateway,
    ):
        post(gateway, CHAT, **ASK)
        (turn,) = gateway.settled()
    assert [call.cost_usd is None for call in turn.calls] == [True, False]
    assert turn.cost_usd is None
    assert turn.cost_note.startswith("unknown")


def test_a_call_that_never_went_out_cost_nothing(tmp_path: Path) -> None:
    price = "price = { input = 1.0, output = 1.0 }"
    gone = Played(lambda *_: [])
    gone.close()
    with (
        Played(lambda *_: whole(200, completion())) as other,
        running(config(gone, other, price=price), tmp_path) as gateway,
    ):
        post(gateway, CHAT, **ASK)
        (turn,) = gateway.settled()
    assert turn.calls[0].cost_usd == 0
    assert turn.cost_usd == pytest.approx(12e-6)


@pytest.mark.parametrize(("path", "more"), [("/v1/messages", {"max_tokens": 9}), (CHAT, {})])
def test_a_broken_reply_keeps_the_tokens_so_far(tmp_path: Path, path: str, more: dict[str, Any]) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    begun = [
        event({"type": "message_start", "message": message}, "message_start"),
        event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
    ]
    price = "price = { input = 1.0, output = 1.0, cache_read = 0.1 }"
    with (
        Played(lambda *_: stream(*begun, "close")) as upstream,
        running(config(upstream, form="anthropic_messages", price=price), tmp_path) as gateway,
    ):
        post(gateway, path, **ASK, **more, stream=True)
        (turn,) = gateway.settled()
    assert turn.ended == "cut"
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.cache_read_tokens) == (10, 90)
    assert turn.cost_usd is None
    assert turn.cost_note.startswith("unknown")
