"""An escalation route served: what clients get, what the upstreams are asked, what the ledger holds."""

import json
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.vendors import EVENTS, REPLY, Play
from tests.gateway.escalating import (
    FORMATS,
    PRICES,
    STRONG,
    WEAK,
    Upstreams,
    body_of,
    escalating,
    post,
    said,
    toml,
    verdict,
)
from tests.played import Step, event, stream, whole
from tests.running import running

from turnout.ledger.trace import TurnRecord

ALL_TO_ALL = [(ours, theirs) for ours in FORMATS for theirs in FORMATS]


def usd(name: str, prompt: int, output: int) -> float:
    """The price of a vendor's play, whose prompt had 60 tokens read from a cache and 10 written to it."""
    i, o = PRICES[name]
    return ((prompt - 60) * i + output * o) / 1e6


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_served_draft_is_the_upstreams_own_bytes_within_one_format(tmp_path: Path, form: str, streamed: bool) -> None:
    sent: list[bytes] = []
    with escalating(tmp_path, form) as (gateway, upstreams):

        def weak(body: dict[str, Any]) -> list[Step]:
            if streamed:
                frames = [
                    event(b"[DONE]" if one.get("done") else {**one, "vendors_own": 1}, one.get("type", ""))
                    for one in EVENTS[form](WEAK, body)
                ]
                sent.append(b"".join(frames))
                return stream(*frames)
            sent.append(json.dumps({**REPLY[form](WEAK, "weak"), "vendors_own": {"b": 1, "a": 2}}).encode())
            return whole(200, sent[-1], x_ratelimit_remaining_requests="7")

        upstreams.weak = weak
        more = {"stream_options": {"include_usage": True}} if form == "openai_chat" and streamed else {}
        status, headers, data = post(gateway, form, body_of(form, stream=streamed, **more))
        assert (status, data) == (200, sent[0])
        assert headers["x-turnout-target"] == "weak"
        assert headers["x-turnout-source"] == "judge"
        if not streamed:
            assert headers["x-ratelimit-remaining-requests"] == "7"
        (turn,) = gateway.settled()
        assert [(call.purpose, call.served) for call in turn.calls] == [("draft", True), ("judge", False)]


def test_usage_that_a_client_did_not_ask_for_is_not_played_to_it(tmp_path: Path) -> None:
    with escalating(tmp_path) as (gateway, upstreams):
        _, _, data = post(gateway, "openai_chat", body_of("openai_chat", stream=True))
        assert upstreams.calls[0][1]["stream_options"] == {"include_usage": True}
        assert b'"usage"' not in data
        assert data.endswith(b"data: [DONE]\n\n")
        (turn,) = gateway.settled()
        assert turn.calls[0].usage is not None
        assert turn.calls[0].usage.output_tokens == 12


@pytest.mark.parametrize(("ours", "theirs"), ALL_TO_ALL)
def test_a_served_draft_keeps_its_text_and_calls_in_every_pairing(tmp_path: Path, ours: str, theirs: str) -> None:
    with escalating(tmp_path, theirs, theirs) as (gateway, _):
        for streamed in (False, True):
            _, _, data = post(gateway, ours, body_of(ours, stream=streamed), session=f"s{streamed}")
            assert b"call_w1" in data
            assert b"The wea" in data
            if not streamed:
                reply = json.loads(data)
                assert arguments(ours, reply) == {"command": "make  test"}
        assert all(turn.ended == "ok" for turn in gateway.settled())


def arguments(form: str, reply: dict[str, Any]) -> Any:
    """The arguments of the reply's one call."""
    if form == "openai_chat":
        return json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
    if form == "anthropic_messages":
        return next(block["input"] for block in reply["content"] if block["type"] == "tool_use")
    return next(json.loads(item["arguments"]) for item in reply["output"] if item["type"] == "function_call")


@pytest.mark.parametrize("form", FORMATS)
def test_two_votes_in_a_row_discard_the_draft_and_latch(tmp_path: Path, form: str) -> None:
    with escalating(tmp_path, form) as (gateway, upstreams):
        upstreams.votes = lambda number: number >= 2  # against, then for
        for step in range(5):
            status, headers, data = post(gateway, form, body_of(form, step, stream=True))
            assert status == 200
            strong = step >= 2
            assert headers["x-turnout-target"] == ("strong" if strong else "weak")
            assert (b"The str" in data, b"The wea" in data) == (strong, not strong)
        assert upstreams.asked() == [*["weak", "judge"] * 3, *["strong"] * 3]
        turns = list(reversed(gateway.settled()))
    assert [turn.why.rule for turn in turns if turn.why] == ["declined", "voted", "latched", "", ""]
    assert [turn.why.source for turn in turns if turn.why] == ["judge", "judge", "judge", "latch", "latch"]
    escalated = turns[2]
    assert [(call.purpose, call.target, call.served) for call in escalated.calls] == [
        ("draft", "weak", False),
        ("judge", "judge", False),
        ("answer", "strong", True),
    ]
    costs = [usd("weak", 100, 12), usd("judge", 900, 9), usd("strong", 200, 30)]
    assert [call.cost_usd for call in escalated.calls] == pytest.approx(costs)
    assert escalated.cost_usd == pytest.approx(sum(costs))
    for call in escalated.calls:
        assert call.first_byte_s is not None
        assert call.ended_s is not None
        assert call.started_s <= call.first_byte_s <= call.ended_s
    assert [len(turn.calls) for turn in turns] == [2, 2, 3, 1, 1]
    assert sum(latching(turn) for turn in turns) == 1
    assert escalated.usage is not None
    assert escalated.usage.output_tokens == 30


def latching(turn: TurnRecord) -> bool:
    """Whether this turn's events latched the lane."""
    return turn.why is not None and turn.why.rule == "latched"


@pytest.mark.parametrize("judge_form", FORMATS)
def test_the_judge_gets_the_work_and_nothing_of_the_clients(tmp_path: Path, judge_form: str) -> None:
    with escalating(tmp_path, "anthropic_messages", judge_form) as (gateway, upstreams):
        body = body_of("anthropic_messages", 3, stream=True, temperature=0.3, metadata={"user_id": "someone"})
        post(gateway, "anthropic_messages", body)
        (asked,) = [body for name, body in upstreams.calls if name == "judge"]
        text = json.dumps(asked)
        assert "tools" not in asked
        assert "someone" not in text
        assert "output 2" in text
        assert "Fix the parser" in text
        assert "The weak one says hello." in text
        assert "escalate" in text
        assert asked.get("temperature") is None
        limit = {"openai_chat": "max_tokens", "openai_responses": "max_output_tokens"}.get(judge_form, "max_tokens")
        assert asked.get(limit, asked.get("max_completion_tokens")) == 4096
        assert gateway.settled()[0].ended == "ok"


def test_the_judge_belongs_to_no_session_of_the_clients(tmp_path: Path) -> None:
    with escalating(tmp_path, "openai_responses", "openai_responses") as (gateway, upstreams):
        headers = {
            "content-type": "application/json",
            "x-turnout-session": "s",
            "session-id": "mine",
            "thread-id": "mine",
        }
        headers |= {"x-codex-turn-state": "sticky"}
        body = json.dumps(body_of("openai_responses")).encode()
        request = urllib.request.Request(gateway.url + "/v1/responses", body, headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            response.read()
        weak, judge = upstreams.server.seen
        assert weak.headers["x-codex-turn-state"] == "sticky"
        assert not {"x-codex-turn-state", "session-id", "thread-id"} & set(judge.headers)


@pytest.mark.parametrize(("model", "field"), [("o3-mini", "max_completion_tokens"), ("judge", "max_tokens")])
def test_the_judges_limit_is_spelled_as_its_model_knows_it(tmp_path: Path, model: str, field: str) -> None:
    upstreams = Upstreams("openai_chat")
    file = toml(upstreams).replace('model = "judge"', f'model = "{model}"')
    with upstreams.server, running(file, tmp_path) as gateway:
        setattr(upstreams, model, upstreams.judge)
        post(gateway, "openai_chat", body_of("openai_chat"))
        assert upstreams.calls[1][1][field] == 4096


def test_a_weak_model_whose_context_is_full_is_replaced_without_a_judge(tmp_path: Path) -> None:
    with escalating(tmp_path, note="Take over.") as (gateway, upstreams):
        error = {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
        upstreams.weak = lambda body: whole(400, {"error": error})
        _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat"))
        assert headers["x-turnout-target"] == "strong"
        assert upstreams.asked() == ["weak", "strong"]
        assert "Take over." not in json.dumps(upstreams.calls[-1][1])
        (turn,) = gateway.settled()
        assert turn.why is not None
        assert (turn.why.source, turn.why.values["draft_failure"]) == ("fallback", "overflow")
        assert turn.remembered == ()


@pytest.mark.parametrize("break_off", [["close"], [0.0, "reset"]])
def test_a_draft_that_breaks_off_is_replaced_and_never_shown(tmp_path: Path, break_off: list[Step]) -> None:
    with escalating(tmp_path) as (gateway, upstreams):
        upstreams.weak = lambda body: [*said(WEAK, "openai_chat", body)[:4], *break_off]
        _, headers, data = post(gateway, "openai_chat", body_of("openai_chat", stream=True))
        assert headers["x-turnout-target"] == "strong"
        assert b"weak" not in data
        assert gateway.settled()[0].ended == "ok"


def test_the_note_reaches_the_strong_model_for_the_turn_it_does_again(tmp_path: Path) -> None:
    with escalating(tmp_path, confirmations=1, note="Another model was stuck here.") as (gateway, upstreams):
        upstreams.votes = lambda number: True
        for step in range(2):
            post(gateway, "openai_chat", body_of("openai_chat", step))
        first, second = [json.dumps(body) for name, body in upstreams.calls if name == "strong"]
        assert "Another model was stuck here." in first
        assert "Another model was stuck here." not in second


@pytest.mark.parametrize("kind", ["429", "500", "slow", "rambling", "cut"])
def test_a_judge_that_fails_costs_the_client_no_more_than_its_time(tmp_path: Path, kind: str) -> None:
    plays: dict[str, list[Step]] = {
        "429": whole(429, {"error": {"message": "slow down"}}, retry_after="30"),
        "500": whole(500, {"error": {"message": "broken"}}),
        "slow": [30.0],
        "cut": ["close"],
    }
    reasons = {
        "429": {"rate_limit", "breaker"},  # it said when to come back, and is not asked before
        "500": {"upstream_5xx"},
        "slow": {"timeout"},
        "rambling": {"parse_error"},
        "cut": {"transport"},
    }
    with escalating(tmp_path, judging={"within_s": 0.5}) as (gateway, upstreams):
        if kind == "rambling":
            upstreams.judge = lambda body: said(STRONG, "openai_chat", body)
        else:
            upstreams.judge = lambda body: plays[kind]
        for step in range(3):
            status, headers, data = post(gateway, "openai_chat", body_of("openai_chat", step))
            assert (status, headers["x-turnout-target"]) == (200, "weak")
            assert b"The weak one" in data
        for turn in gateway.settled():
            assert turn.why is not None
            assert turn.why.values["judge_failure"] in reasons[kind]
            assert turn.remembered == ()
            assert turn.why.rule == "judge_failed"


@pytest.mark.parametrize("store", ["memory", "redis"])
def test_four_agents_of_a_session_run_at_once_and_their_votes_stay_their_own(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("redis_url") if store == "redis" else "memory:"
    with escalating(tmp_path, server=f'[sessions]\nurl = "{url}"\nwithin_s = 20\n') as (gateway, upstreams):
        gates = {"weak": threading.Barrier(4), "judge": threading.Barrier(4)}

        def together(model: str, play: Play) -> list[Step]:
            gates[model].wait(20)  # nobody is answered before all four have asked
            return said(play, "openai_chat", {"model": model, "stream": model == "judge"})

        weak, judge = upstreams.weak, upstreams.judge
        upstreams.votes = lambda number: True
        upstreams.weak = lambda body: together("weak", WEAK)
        upstreams.judge = lambda body: together("judge", verdict(True))
        agents = ["a1", "a2", "a3", "a4"]
        body = body_of("openai_chat")
        with ThreadPoolExecutor(len(agents)) as pool:
            answers = list(pool.map(lambda agent: post(gateway, "openai_chat", body, agent=agent), agents))
        upstreams.weak, upstreams.judge = weak, judge
        assert {headers["x-turnout-target"] for _, headers, _ in answers} == {"weak"}
        turns = gateway.settled()
        # Four votes to move up in one session, and each agent's streak is one.
        assert {turn.why.values["streak"] for turn in turns if turn.why} == {1}
        _, headers, _ = post(gateway, "openai_chat", body)
        assert headers["x-turnout-target"] == "weak"
        parent = gateway.settled()[0]
        assert parent.why is not None
        assert (parent.agent, parent.why.values["streak"]) == ("", 1)
        _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat", 1), agent="a1")
        assert headers["x-turnout-target"] == "strong"
        _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat", 1), agent="a5")
        assert headers["x-turnout-target"] == "weak"


def test_a_turn_sent_again_is_one_vote(tmp_path: Path) -> None:
    with escalating(tmp_path) as (gateway, upstreams):
        upstreams.votes = lambda number: True
        for _ in range(3):
            _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat"))
            assert headers["x-turnout-target"] == "weak"
        _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat", 1))
        assert headers["x-turnout-target"] == "strong"


def test_a_latch_outlasts_a_history_that_is_rewritten(tmp_path: Path) -> None:
    with escalating(tmp_path, confirmations=1) as (gateway, upstreams):
        upstreams.votes = lambda number: True
        for step in range(4):
            post(gateway, "openai_chat", body_of("openai_chat", step))
        body = body_of("openai_chat", 5)
        body["messages"][2]["content"] = "(cleared to save space)"
        _, headers, _ = post(gateway, "openai_chat", body)
        assert headers["x-turnout-target"] == "strong"


def test_without_identity_no_judge_is_paid_and_the_reply_streams(tmp_path: Path) -> None:
    with escalating(tmp_path) as (gateway, upstreams):
        for step in range(2):
            post(gateway, "openai_chat", body_of("openai_chat", step, stream=True), session="")
        assert upstreams.asked() == ["weak", "weak"]
        for turn in gateway.settled():
            assert turn.why is not None
            assert turn.why.rule == "unidentified"
            assert [call.purpose for call in turn.calls] == ["answer"]


def test_a_call_that_cannot_be_taken_back_takes_one_vote(tmp_path: Path) -> None:
    with escalating(tmp_path, irreversible=["ba*"]) as (gateway, upstreams):
        upstreams.votes = lambda number: True
        _, headers, data = post(gateway, "openai_chat", body_of("openai_chat"))
        assert headers["x-turnout-target"] == "strong"
        assert b"call_w1" not in data


def test_background_calls_pass_without_a_judge(tmp_path: Path) -> None:
    with escalating(tmp_path, "anthropic_messages") as (gateway, upstreams):
        body = body_of("anthropic_messages", stream=True)
        del body["tools"]
        headers = {
            "content-type": "application/json",
            "x-claude-code-session-id": "5b2f0f0e-1d2c-4c5e-9a58-0d6f6a3c9a11",
        }
        request = urllib.request.Request(gateway.url + "/v1/messages", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            response.read()
        assert upstreams.asked() == ["weak"]
        (turn,) = gateway.settled()
        assert turn.why is not None
        assert (turn.agent_kind, turn.why.rule) == ("background", "background")


def test_a_silent_draft_keeps_a_streaming_client_alive_and_its_errors_in_the_stream(tmp_path: Path) -> None:
    with escalating(tmp_path, server="[server]\nkeepalive_after_s = 0.3\n") as (gateway, upstreams):
        upstreams.weak = lambda body: [1.2, *said(WEAK, "openai_chat", body)]
        _, _, data = post(gateway, "openai_chat", body_of("openai_chat", stream=True))
        assert data.startswith(b":")
        assert b"The wea" in data
        upstreams.weak = lambda body: [1.2, "close"]
        upstreams.strong = lambda body: whole(400, {"error": {"message": "the vendor says no"}})
        status, _, data = post(gateway, "openai_chat", body_of("openai_chat", 1, stream=True))
        assert status == 200
        assert b"the vendor says no" in data
