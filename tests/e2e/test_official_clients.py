"""The official clients against a running gateway, each in front of each upstream format: all nine pairings."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.e2e.clients import CLIENTS, PNG_TEXT, SCHEMA, Failed
from tests.e2e.vendors import FORMATS, LOOP, PLAYS, REFUSALS, SIGNATURE, TEXT, Vendors, refusal_body, tool_results
from tests.running import Running, running

PAIRS = list(itertools.product(FORMATS, FORMATS))
Clients = dict[str, Any]
pairings = pytest.mark.parametrize(("ours", "theirs"), PAIRS)
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def vendors() -> Iterator[Vendors]:
    with Vendors() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(vendors: Vendors, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    toml = ["[server]\nkeepalive_after_s = 5\n"]
    for form in FORMATS:
        toml.append(f'[upstreams.{form}]\nformat = "{form}"\nbase_url = "{vendors.url}"\nmax_retries = 0\n')
        for play in (*PLAYS, "loop"):
            toml.append(target(f"{play}@{form}", form, play))
        # Failures count against a target's health, so each test that provokes one has a target of its own.
        for play, ours, stream in itertools.product((*REFUSALS, "breaks"), FORMATS, (False, True)):
            toml.append(target(f"{play}@{form}#{ours}#{stream}", form, play))
    with running("".join(toml), tmp_path_factory.mktemp("official")) as served:
        yield served


def target(name: str, upstream: str, model: str) -> str:
    return (
        f'[targets."{name}"]\nupstream = "{upstream}"\nmodel = "{model}"\nprice = {{ input = 1.0, output = 10.0, '
        f'cache_read = 0.1, cache_write = 1.25 }}\n[routes."{name}"]\ntype = "passthrough"\ntarget = "{name}"\n'
    )


@pytest.fixture(scope="module")
def clients(gateway: Running) -> Iterator[dict[str, Any]]:
    """An official client for each format."""
    made: dict[str, Any] = {form: kind(gateway.url) for form, kind in CLIENTS.items()}
    yield made
    for client in made.values():
        client.client.close()


USAGE = {
    "openai_chat": (100, 60, 12, 0),
    "openai_responses": (100, 60, 12, 0),
    "anthropic_messages": (30, 60, 10, 12),
}
ENDS = {
    "openai_chat": {"end": "stop", "tool_calls": "tool_calls", "length": "length", "stop_sequence": "stop"},
    "openai_responses": dict.fromkeys(("end", "tool_calls", "stop_sequence"), "completed") | {"length": "incomplete"},
    "anthropic_messages": {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"},
}


@pairings
@streamed
def test_text_stop_usage_and_cost(gateway: Running, clients: Clients, ours: str, theirs: str, stream: bool) -> None:
    client = clients[ours]
    got = client.ask(f"text@{theirs}", client.user("hi"), stream)
    assert (got.text, got.reasoning, got.calls) == (TEXT, "", [])
    assert got.stop == ENDS[ours]["end"]
    assert tuple(n or 0 for n in got.usage) == USAGE[ours]
    turn = gateway.settled()[0]
    assert (turn.ended, turn.format, turn.upstream_format, turn.stop) == ("ok", ours, theirs, "end")
    usage = turn.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (30, 60, 10)
    assert turn.cost_usd == pytest.approx((30 * 1.0 + 60 * 0.1 + 10 * 1.25 + 12 * 10.0) / 1e6)


@pairings
def test_a_stream_comes_in_pieces(gateway: Running, clients: Clients, ours: str, theirs: str) -> None:
    pieces = clients[ours].pieces(f"text@{theirs}")
    assert "".join(pieces) == TEXT
    assert len([piece for piece in pieces if piece]) > 3


@pairings
@streamed
def test_a_tool_loop_gives_the_same_calls_everywhere(
    gateway: Running, clients: Clients, vendors: Vendors, ours: str, theirs: str, stream: bool
) -> None:
    client = clients[ours]
    history, seen, texts = client.user("Look around."), [], iter(["line 1\nline 2", "3", "a.py\nb.py"])
    given: list[str] = []
    for _ in range(4):
        got = client.ask(f"loop@{theirs}", history, stream, **client.tools())
        seen += got.calls
        if not got.calls:
            break
        assert got.stop == ENDS[ours]["tool_calls"]
        results = [next(texts) for _ in got.calls]
        given += results
        history = [*got.history, *client.results(got, results)]
    assert seen == [
        ("read_file", {"path": "src/a b.py", "lines": [1, 2]}),
        ("run", {"command": 'echo "hé" | wc -c', "timeout": 5}),
        ("list_files", {}),
    ]
    assert got.text == LOOP[2].text
    assert tool_results(theirs, vendors.last()) == given
    assert sent_calls(theirs, vendors.last()) == ["read_file", "run", "list_files"]


def sent_calls(form: str, body: Any) -> list[str]:
    """Names of the calls in the history of a native request."""
    if form == "openai_chat":
        return [c["function"]["name"] for m in body["messages"] for c in m.get("tool_calls") or []]
    if form == "openai_responses":
        return [item["name"] for item in body["input"] if item.get("type") == "function_call"]
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [b["name"] for b in blocks if b["type"] == "tool_use"]


@pairings
@streamed
def test_reasoning_is_shown_and_goes_back_only_where_it_belongs(
    gateway: Running, clients: Clients, vendors: Vendors, ours: str, theirs: str, stream: bool
) -> None:
    client = clients[ours]
    got = client.ask(f"reasoning@{theirs}", client.user("hi"), stream)
    assert (got.text, got.reasoning) == (TEXT, PLAYS["reasoning"].reasoning)
    again = client.ask(f"reasoning@{theirs}", [*got.history, *client.user("more")], stream)
    assert again.text == TEXT
    sent = str(vendors.last())
    if ours == theirs:
        assert PLAYS["reasoning"].reasoning in sent
        assert (SIGNATURE in sent) == (ours == "anthropic_messages")
    if theirs == "anthropic_messages":
        blocks = [b for m in vendors.last()["messages"] if isinstance(m["content"], list) for b in m["content"]]
        assert all(b.get("signature") == SIGNATURE for b in blocks if b["type"] == "thinking")


@pairings
@streamed
def test_images_arrive(
    gateway: Running, clients: Clients, vendors: Vendors, ours: str, theirs: str, stream: bool
) -> None:
    client = clients[ours]
    assert client.ask(f"text@{theirs}", client.user("What is this?", image=True), stream).text == TEXT
    sent = vendors.last()
    if theirs == "openai_chat":
        part = sent["messages"][-1]["content"][1]
        assert part["image_url"]["url"] == f"data:image/png;base64,{PNG_TEXT}"
    elif theirs == "openai_responses":
        part = sent["input"][-1]["content"][1]
        assert (part["type"], part["image_url"]) == ("input_image", f"data:image/png;base64,{PNG_TEXT}")
    else:
        part = sent["messages"][-1]["content"][1]
        assert part["source"] == {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}


@pairings
@streamed
def test_structured_output_is_asked_for(
    gateway: Running, clients: Clients, vendors: Vendors, ours: str, theirs: str, stream: bool
) -> None:
    client = clients[ours]
    got = client.ask(f"structured@{theirs}", client.user("Where?"), stream, **client.structured())
    assert got.text == PLAYS["structured"].text
    sent = vendors.last()
    if theirs == "openai_chat":
        found = sent["response_format"]["json_schema"]
        assert found["name"]
    elif theirs == "openai_responses":
        found = sent["text"]["format"]
        assert found["name"]
    else:
        found = sent["output_config"]["format"]
    assert found["schema"] == SCHEMA
    assert list(found["schema"]["properties"]) == ["city", "trains"]


@pairings
@streamed
def test_a_cut_for_length_says_so(gateway: Running, clients: Clients, ours: str, theirs: str, stream: bool) -> None:
    client = clients[ours]
    got = client.ask(f"length@{theirs}", client.user("hi"), stream)
    assert (got.text, got.stop) == (PLAYS["length"].text, ENDS[ours]["length"])


@pairings
@streamed
def test_a_stop_sequence_says_so(gateway: Running, clients: Clients, ours: str, theirs: str, stream: bool) -> None:
    client = clients[ours]
    got = client.ask(f"stop_sequence@{theirs}", client.user("hi"), stream)
    expected = ENDS[ours].get("stop_sequence") or ("stop_sequence" if theirs == ours else "end_turn")
    assert (got.text, got.stop) == (PLAYS["stop_sequence"].text, expected)


@pairings
@streamed
def test_a_refusal_says_so(gateway: Running, clients: Clients, ours: str, theirs: str, stream: bool) -> None:
    client = clients[ours]
    got = client.ask(f"refusal@{theirs}", client.user("hi"), stream)
    assert PLAYS["refusal"].text in (got.text, got.refusal)
    if ours == "openai_chat" and theirs != "openai_responses":
        assert got.stop == "content_filter"
    if ours == "anthropic_messages":
        assert got.stop == "refusal"


KINDS = {
    "s400": "BadRequestError",
    "s401": "AuthenticationError",
    "s403": "PermissionDeniedError",
    "s404": "NotFoundError",
    "s429": "RateLimitError",
    "s500": "InternalServerError",
}


@pairings
@streamed
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_with_a_status_raises_its_own_exception(
    gateway: Running, clients: Clients, ours: str, theirs: str, stream: bool, refusal: str
) -> None:
    client = clients[ours]
    with pytest.raises(getattr(client.errors, KINDS[refusal])) as raised:
        client.ask(f"{refusal}@{theirs}#{ours}#{stream}", client.user("hi"), stream)
    assert raised.value.status_code == REFUSALS[refusal][0]
    assert f"the vendor says {REFUSALS[refusal][0]}" in str(raised.value)
    if refusal == "s429":
        assert float(raised.value.response.headers["retry-after"]) == 7
    if ours == theirs:
        assert raised.value.response.content == json.dumps(refusal_body(ours, refusal)).encode()
    if ours == "anthropic_messages":
        assert raised.value.body["type"] == "error"
    else:
        assert raised.value.body["message"]


@pairings
def test_a_stream_that_breaks_raises_in_the_middle(gateway: Running, clients: Clients, ours: str, theirs: str) -> None:
    client = clients[ours]
    expected = {
        "openai_chat": openai.APIError,
        "openai_responses": Failed,
        "anthropic_messages": anthropic.APIStatusError,
    }[ours]
    with pytest.raises(expected) as raised:
        client.pieces(f"breaks@{theirs}#{ours}#True")
    assert "the vendor broke" in str(raised.value)
    assert gateway.settled()[0].ended == "cut"


@pytest.mark.parametrize("form", FORMATS)
def test_an_unknown_model_is_not_found_and_the_nearest_is_named(gateway: Running, clients: Clients, form: str) -> None:
    client = clients[form]
    for stream in (False, True):
        with pytest.raises(client.errors.NotFoundError) as raised:
            client.ask("txt@openai_chat", client.user("hi"), stream)
        assert "text@openai_chat" in str(raised.value)


@pytest.mark.parametrize("form", FORMATS)
def test_a_request_of_the_wrong_shape_is_a_bad_request_that_names_the_field(
    gateway: Running, clients: Clients, form: str
) -> None:
    client = clients[form]
    with pytest.raises(client.errors.BadRequestError) as raised:
        client.ask("text@openai_chat", [{"role": "wizard", "content": "hi"}], False)
    assert "role" in str(raised.value)


def test_models_are_listed_in_the_callers_dialect(gateway: Running, clients: Clients) -> None:
    names = set(gateway.gateway.config.routes)
    seen = clients["openai_chat"].client.models.list()
    assert {model.id for model in seen} == names
    assert all(model.object == "model" and model.created > 0 for model in seen)
    client = clients["anthropic_messages"].client
    pages = client.models.list(limit=20)
    listed = list(pages)
    assert {model.id for model in listed} == names
    assert len(listed) == len(names) > 20
    assert all(model.type == "model" and model.display_name for model in listed)
    assert client.models.retrieve("text@openai_chat").id == "text@openai_chat"
    assert clients["openai_chat"].client.models.retrieve("text@openai_chat").id == "text@openai_chat"


def test_tokens_are_counted_without_a_call(clients: Clients, vendors: Vendors) -> None:
    before = len(vendors.requests)
    messages = clients["anthropic_messages"]
    said = (
        "The quick brown fox jumps over the lazy dog near the river. " * 77
    )  # 1002 to 1010 tokens of common tokenizers
    counted = messages.client.messages.count_tokens(
        model="text@openai_chat", messages=[{"role": "user", "content": said}], **messages.tools()
    )
    bare = messages.client.messages.count_tokens(model="text@openai_chat", messages=[{"role": "user", "content": said}])
    assert 900 <= bare.input_tokens <= 1100 < counted.input_tokens
    got = clients["openai_responses"].client.responses.input_tokens.count(model="text@openai_chat", input=said)
    assert got.object == "response.input_tokens"
    assert 900 <= got.input_tokens <= 1100
    assert len(vendors.requests) == before


@pytest.mark.parametrize("form", FORMATS)
def test_decision_headers_come_with_every_answer(gateway: Running, clients: Clients, form: str) -> None:
    client = clients[form].client
    name = "text@anthropic_messages"
    hi: Any = [{"role": "user", "content": "hi"}]
    if form == "openai_chat":
        raw = client.chat.completions.with_raw_response.create(model=name, messages=hi)
    elif form == "openai_responses":
        raw = client.responses.with_raw_response.create(model=name, input="hi")
    else:
        raw = client.messages.with_raw_response.create(model=name, messages=hi, max_tokens=10)
    headers = raw.headers
    turn = gateway.settled()[0]
    assert headers["x-turnout-turn"] == turn.id
    assert (headers["x-turnout-route"], headers["x-turnout-target"]) == (name, name)
    assert (headers["x-turnout-model"], headers["x-turnout-source"]) == ("text", "fixed")
    assert headers["x-turnout-policy"] == turn.policy
    assert raw.parse()
