"""A retrieval route as clients meet it: in every dialect, streamed and whole, whatever its model and its knowledge do."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from msgspec.structs import replace
from tests.e2e.vendors import EVENTS, Play
from tests.gateway.collaborating import words_of
from tests.gateway.escalating import FORMATS, begin, post, said, until
from tests.gateway.retrieving import ANSWER, QUERIES, QUESTION, Policy, answer, body_of, broken, query, retrieving
from tests.gateway.test_collaboration import text_in
from tests.played import Step, event, stream, whole

from turnout.cli.why import explained
from turnout.errors import TapeMiss
from turnout.evaluate.replay import replay
from turnout.knowledge.building import Options, build
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document
from turnout.ledger.store import Ledger

PASSAGES = (
    Passage("p1", "Flying Scotsman", "Flying Scotsman is a steam locomotive that was built in Doncaster in 1923."),
    Passage("p2", "Doncaster", "Doncaster lies on the River Don in South Yorkshire."),
    Passage("p3", "Mallard", "Mallard is the fastest steam locomotive. It was built in 1938."),
    Passage("p4", "Crewe", "Crewe is a railway town in Cheshire."),
)
GOLD = ["p1", "p2"]


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("knowledge") / "facts"
    build([Document(one) for one in PASSAGES], folder, Options(embedder="hashed"))
    return str(folder)


def comments(data: bytes) -> list[str]:
    return [line[2:] for line in data.decode().splitlines() if line.startswith(": ")]


def annotations(form: str, data: bytes) -> list[dict[str, Any]]:
    """The citations in what a client got, whole or streamed."""
    if data.lstrip().startswith(b"{"):
        reply = json.loads(data)
        if form == "openai_chat":
            return list(reply["choices"][0]["message"].get("annotations") or [])
        parts = reply["content"] if form == "anthropic_messages" else reply["output"][-1]["content"]
        return [
            one for part in parts for one in part.get("citations" if form.startswith("anth") else "annotations", [])
        ]
    found = []
    for line in data.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        one = json.loads(line[6:])
        if one.get("type") == "response.output_text.annotation.added":
            found.append(one["annotation"])
        elif one.get("type") == "content_block_delta" and one["delta"]["type"] == "citations_delta":
            found.append(one["delta"]["citation"])
    return found


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_question_is_answered_with_its_sources_in_every_dialect(
    tmp_path: Path, knowledge: str, form: str, streamed: bool
) -> None:
    with retrieving(tmp_path, knowledge, form=FORMATS[FORMATS.index(form) - 1]) as (gateway, policy):
        status, headers, data = post(gateway, form, body_of(form, stream=streamed))
        assert status == 200
        text = text_in(form, data)
        assert text.startswith(f"{ANSWER} [1][2]\n\n[1] p1: ")
        assert "\n[2] p2: " in text
        (turn,) = gateway.settled()
        assert turn.why is not None
        assert (turn.why.source, turn.why.rule, turn.why.values["sources"]) == ("retrieval", "answered", GOLD)
        assert (turn.target, turn.ended, turn.stop) == ("policy", "ok", "end")
        assert [(call.purpose, call.served) for call in turn.calls] == [("step", False)] * 2 + [("step", True)]
        assert turn.cost_usd is not None
        assert turn.usage is not None
        assert turn.usage.output_tokens == sum((call.usage and call.usage.output_tokens) or 0 for call in turn.calls)
        assert [one.query for one in turn.lookups] == list(QUERIES)
        assert all(one.ids and one.seconds > 0 and not one.failure for one in turn.lookups)
        cited = [one.get("source") or one.get("file_id") for one in annotations(form, data)]
        assert cited == ([] if form == "openai_chat" else GOLD)
        if streamed:
            told = [f"looked up: {q} ({len(one.ids)} facts)" for q, one in zip(QUERIES, turn.lookups, strict=True)]
            assert comments(data) == [*told, "retrieval: answered"]
        else:
            assert (headers["x-turnout-retrieval"], headers["x-turnout-source"]) == ("answered", "retrieval")
        assert all(body["max_tokens" if "max_tokens" in body else "max_output_tokens"] for body in policy.bodies)


def test_what_was_looked_up_is_explained_and_kept_as_capture_says(tmp_path: Path, knowledge: str) -> None:
    for capture in ("none", "signals", "full"):
        folder = tmp_path / capture
        folder.mkdir()
        with retrieving(folder, knowledge, capture=capture) as (gateway, _):
            post(gateway, "openai_chat", body_of("openai_chat"))
            (listed,) = gateway.settled()
            ledger = Ledger.read(gateway.ledger_url)
            turn = ledger.turn(listed.id)
            ledger.close()
            assert turn is not None
            assert all(one.ids for one in turn.lookups)
            assert [one.query for one in turn.lookups] == (["", ""] if capture == "none" else list(QUERIES))
            assert [len(one.facts) for one in turn.lookups] == [
                len(one.ids) if capture == "full" else 0 for one in turn.lookups
            ]
            assert [list(one["ids"]) for one in explained(turn, [])["lookups"]] == [
                list(one.ids) for one in turn.lookups
            ]


def test_another_look_up_is_not_on_the_tape(tmp_path: Path, knowledge: str) -> None:
    with retrieving(tmp_path, knowledge) as (gateway, _):
        post(gateway, "openai_chat", body_of("openai_chat"))
        (listed,) = gateway.settled()
        ledger = Ledger.read(gateway.ledger_url)
        turn = ledger.turn(listed.id)
        ledger.close()
        assert turn is not None
        router = replace(gateway.gateway.config.routes["r"].router, facts=3)  # type: ignore[type-var]
        with pytest.raises(TapeMiss, match="looked up"):
            replay(turn, router, gateway.gateway.models.facts())  # type: ignore[arg-type]


def test_a_shadow_looks_nothing_up(tmp_path: Path, knowledge: str) -> None:
    shadow = '[shadows.s]\nroute = "r"\ntype = "passthrough"\ntarget = "other"\n'
    own = f'[shadows.t]\nroute = "r"\ntype = "retrieval"\npolicy = "policy"\nknowledge = {json.dumps(knowledge)}\n'
    with retrieving(tmp_path, knowledge, server=shadow + own) as (gateway, policy):
        post(gateway, "openai_chat", body_of("openai_chat"))
        gateway.settled()
        gateway.beside()
        counts = {one.name: one for one in gateway.gateway.shadows.counts()}
        assert (counts["s"].flipped, counts["t"].agreed, counts["t"].faults) == (1, 1, 0)
        assert len(policy.bodies) == 3


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_look_up_that_fails_or_dawdles_is_shown_as_nothing_found(
    tmp_path: Path, knowledge: str, seconds: float
) -> None:
    texts = (query(QUERIES[0]), answer(ANSWER))
    with retrieving(tmp_path, knowledge, *texts, lookup_within_s=0.3) as (gateway, policy):
        knows = broken(gateway, seconds)
        began = time.monotonic()
        status, headers, data = post(gateway, "openai_chat", body_of("openai_chat"))
        assert time.monotonic() - began < 4.0
        assert (status, headers["x-turnout-retrieval"]) == (200, "unsearched")
        assert text_in("openai_chat", data) == f"{ANSWER}\n\nNothing was found before this answer was given."
        assert words_of(policy.bodies[1]).endswith("<knowledge>[]</knowledge>")
        (turn,) = gateway.settled()
        (one,) = turn.lookups
        assert one.failure is not None
        assert one.failure.kind == ("timeout" if seconds else "unavailable")
        assert "disk" not in one.failure.message
        assert knows.asked == [QUERIES[0]]


def endless(policy: Policy, form: str, body: dict[str, Any]) -> Iterator[Step]:
    events = [
        event(b"[DONE]" if one.get("done") else one, "" if form == "openai_chat" else one["type"])
        for one in EVENTS[form](Play("On and on"), body)
    ]
    head, *frames = stream(*events[:3], end=False)
    try:
        yield head
        yield from frames
        while True:
            yield 0.02
            yield b"3\r\n:\n\n\r\n"
    finally:
        policy.closed = time.monotonic()


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("phase", ["model", "look-up"])
def test_a_hang_up_stops_everything(tmp_path: Path, knowledge: str, phase: str, streamed: bool) -> None:
    form = "openai_chat"
    with retrieving(tmp_path, knowledge, form="anthropic_messages", lookup_within_s=30) as (gateway, policy):
        knows = broken(gateway, 1.5) if phase == "look-up" else None
        if phase == "model":
            plain = policy.turns
            policy.turns = lambda n, body: plain(n, body) if n == 0 else endless(policy, "anthropic_messages", body)
        connection = begin(gateway, form, body_of(form, stream=streamed))
        until(lambda: bool(knows.asked) if knows else len(policy.bodies) == 2)
        connection.close()
        went = time.monotonic()
        until(lambda: len(gateway.turns()) == 1)
        assert time.monotonic() - went < 1.5
        (turn,) = gateway.turns()
        assert (turn.ended, turn.status, turn.why) == ("client_gone", 499, None)
        assert not any(call.served for call in turn.calls)
        if phase == "model":
            until(lambda: policy.closed > 0)
            assert len(turn.lookups) == 1
        else:
            assert len(policy.bodies) == 1
            assert turn.lookups == ()
        assert gateway.gateway.metrics.in_flight == 0


@pytest.mark.parametrize("form", FORMATS)
def test_turns_that_run_out_are_said_to_have(tmp_path: Path, knowledge: str, form: str) -> None:
    with retrieving(tmp_path, knowledge, query("rivers"), "Well, let me think about it.", max_turns=2) as (
        gateway,
        policy,
    ):
        status, headers, data = post(gateway, form, body_of(form))
        assert (status, text_in(form, data)) == (200, "No answer was found: all 2 turns were used up.")
        assert headers["x-turnout-retrieval"] == "turns"
        assert len(policy.bodies) == 2


def test_a_model_that_rambles_on_is_cut_where_it_was_told_to_stop(tmp_path: Path, knowledge: str) -> None:
    rambling = f"{query(QUERIES[1])}\n<knowledge>It is the River Ouse.</knowledge>\n{answer('the River Ouse')}"
    with retrieving(tmp_path, knowledge, rambling, answer(ANSWER)) as (gateway, policy):
        _, headers, data = post(gateway, "openai_chat", body_of("openai_chat"))
        assert headers["x-turnout-retrieval"] == "answered"
        gateway.settled()
        metrics = gateway.gateway.metrics.render().decode()
        assert 'turnout_lookups_total{outcome="found",route="r"} 1.0' in metrics
        assert 'turnout_retrieval_answers_total{route="r",status="answered"} 1.0' in metrics
        assert text_in("openai_chat", data).startswith(f"{ANSWER} [1]\n\n[1] p2: ")
        assert "the River Ouse" not in words_of(policy.bodies[1])


def test_a_model_that_is_down_is_an_error_or_anothers_turn(tmp_path: Path, knowledge: str) -> None:
    busy = whole(429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, retry_after="7")
    for otherwise in ("", "other"):
        folder = tmp_path / (otherwise or "none")
        folder.mkdir()
        with retrieving(folder, knowledge, otherwise=otherwise) as (gateway, policy):
            plain = policy.turns
            policy.turns = lambda n, body, plain=plain: busy if n else plain(n, body)  # type: ignore[misc]
            status, headers, data = post(gateway, "openai_chat", body_of("openai_chat"))
            if otherwise:
                assert (status, headers["x-turnout-target"]) == (200, "other")
                assert headers["x-turnout-source"] == "fallback"
                assert text_in("openai_chat", data) == "Hello from the other one."
            else:
                assert (status, headers["retry-after"]) == (429, "7")
                assert b"failed in turn 2" in data
            (turn,) = gateway.settled()
            assert len(turn.lookups) == 1


def test_tools_go_elsewhere_or_are_refused(tmp_path: Path, knowledge: str) -> None:
    tools = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
    for otherwise in ("", "other"):
        folder = tmp_path / (otherwise or "none")
        folder.mkdir()
        with retrieving(folder, knowledge, otherwise=otherwise) as (gateway, policy):
            status, headers, data = post(gateway, "openai_chat", body_of("openai_chat", tools=tools))
            if otherwise:
                assert (status, headers["x-turnout-target"]) == (200, "other")
                assert policy.bodies[0]["tools"] == tools
            else:
                assert status == 400
                assert json.loads(data)["error"]["param"] == "tools"


def test_earlier_turns_of_a_chat_stand_before_the_question(tmp_path: Path, knowledge: str) -> None:
    with retrieving(tmp_path, knowledge, answer(ANSWER)) as (gateway, policy):
        post(gateway, "openai_responses", body_of("openai_responses", "Hello", "Hi, ask me.", QUESTION))
        said = [one["content"] for one in policy.bodies[0]["messages"]]
        assert said[:2] == ["Hello", "Hi, ask me."]
        assert said[2].endswith(f"Question: {QUESTION}")


def test_official_clients_read_the_citations(tmp_path: Path, knowledge: str) -> None:
    with retrieving(tmp_path, knowledge) as (gateway, _):
        claude = anthropic.Anthropic(base_url=gateway.url, api_key="k", max_retries=0)
        asked: Any = {"model": "r", "max_tokens": 100, "messages": [{"role": "user", "content": QUESTION}]}
        with claude.messages.stream(**asked) as events:
            streamed = events.get_final_message()
        for message in (claude.messages.create(**asked), streamed):
            (text,) = message.content
            assert isinstance(text, anthropic.types.TextBlock)
            assert [one.source for one in text.citations or () if one.type == "search_result_location"] == GOLD
            back = [*asked["messages"], message.model_dump(include={"role", "content"}), asked["messages"][0]]
            assert claude.messages.create(**{**asked, "messages": back}).type == "message"
        codex = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
        with codex.responses.stream(model="r", input=QUESTION) as stream_of:
            finished = stream_of.get_final_response()
        for response in (codex.responses.create(model="r", input=QUESTION), finished):
            (item,) = response.output
            assert item.type == "message"
            (part,) = item.content
            assert part.type == "output_text"
            assert [one.file_id for one in part.annotations if one.type == "file_citation"] == GOLD
            # What was kept of the answer is continued by its id.
            assert codex.responses.create(model="r", input=QUESTION, previous_response_id=response.id).output_text


def test_without_progress_the_status_is_in_the_head_and_silence_is_kept_alive(tmp_path: Path, knowledge: str) -> None:
    with retrieving(tmp_path, knowledge, progress=False) as (gateway, _):
        _, headers, data = post(gateway, "openai_chat", body_of("openai_chat", stream=True))
        assert (headers["x-turnout-retrieval"], comments(data)) == ("answered", [])
    slow = tmp_path / "slow"
    slow.mkdir()
    with retrieving(slow, knowledge, progress=False, server="[server]\nkeepalive_after_s = 0.1\n") as (gateway, policy):
        plain = policy.turns
        policy.turns = lambda n, body: (
            [0.6, *said(Play(str(plain(n, body))), policy.form, body)] if n == 1 else plain(n, body)
        )
        _, headers, data = post(gateway, "openai_chat", body_of("openai_chat", stream=True))
        assert "keep-alive" in comments(data)
        assert comments(data)[-1] == "retrieval: answered"
        assert text_in("openai_chat", data).startswith(f"{ANSWER} [1][2]")
