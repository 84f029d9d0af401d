"""Responses continued by id: natively on the target that issued them, as a transcript elsewhere, never by someone else."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import openai
import pytest

from tests.e2e.clients import Responses
from tests.e2e.considering import ROUTERS
from tests.e2e.vendors import FORMATS, LOOP, TEXT, Vendors, tool_results, user_texts
from tests.running import Running, running

JSON = dict[str, Any]
KEYS = {"ALPHA": "key-of-alpha", "BETA": "key-of-beta"}
streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def vendors() -> Iterator[Vendors]:
    with Vendors() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(vendors: Vendors, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    parts = ['[server.tenants.alpha]\nkey_env = "ALPHA"\n[server.tenants.beta]\nkey_env = "BETA"\n']
    for form in FORMATS:
        parts.append(f'[upstreams.{form}]\nformat = "{form}"\nbase_url = "{vendors.url}"\n')
        for play, router in itertools.product(("text", "loop"), ("passthrough", "considering")):
            name = f"{play}-{form}" if router == "passthrough" else f"{play}-{form}-considered"
            parts.append(
                f'[targets."{name}"]\nupstream = "{form}"\nmodel = "{play}"\n'
                f'[routes."{name}"]\ntype = "{router}"\ntarget = "{name}"\n'
            )
    with running("".join(parts), tmp_path_factory.mktemp("state"), env=KEYS, routers=ROUTERS) as served:
        yield served


@pytest.fixture
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=KEYS["ALPHA"], max_retries=0) as made:
        yield made


def asked(client: Any, stream: bool, **fields: Any) -> Any:
    """The finished response to a request."""
    if not stream:
        return client.responses.create(**fields)
    with client.responses.create(stream=True, **fields) as events:
        return [event for event in events if event.type == "response.completed"][-1].response


@streamed
def test_its_own_target_continues_an_id_natively(client: openai.OpenAI, vendors: Vendors, stream: bool) -> None:
    first = asked(client, stream, model="text-openai_responses", input="one")
    asked(client, stream, model="text-openai_responses", input="two", previous_response_id=first.id)
    sent = vendors.last()
    assert (sent["previous_response_id"], sent["input"]) == (first.id, "two")


@streamed
@pytest.mark.parametrize("considered", ["", "-considered"])
@pytest.mark.parametrize(("first_on", "then_on"), list(itertools.product(FORMATS, FORMATS)))
def test_another_target_is_given_the_transcript(
    client: openai.OpenAI, vendors: Vendors, first_on: str, then_on: str, stream: bool, considered: str
) -> None:
    first = asked(client, stream, model=f"text-{first_on}", input="one")
    # Another target even within one format: only the issuer knows the id.
    route = f"text-{then_on}-considered" if considered or first_on == then_on else f"text-{then_on}"
    second = asked(client, stream, model=route, input="two", previous_response_id=first.id)
    sent = vendors.last()
    assert "previous_response_id" not in sent
    assert user_texts(then_on, sent) == ["one", "two"]
    assert TEXT in str(sent)
    third = asked(client, stream, model=route, input="three", previous_response_id=second.id)
    assert third.output_text == TEXT
    sent = vendors.last()
    if then_on != "openai_responses" or "previous_response_id" not in sent:
        assert user_texts(then_on, sent) == ["one", "two", "three"]


@streamed
@pytest.mark.parametrize("then_on", FORMATS)
@pytest.mark.parametrize("first_on", FORMATS)
def test_a_tool_loop_goes_on_by_id_on_another_target(
    client: openai.OpenAI, gateway: Running, vendors: Vendors, first_on: str, then_on: str, stream: bool
) -> None:
    tools = Responses(gateway.url)
    with closing(tools.client):
        more = tools.tools()
        first = asked(client, stream, model=f"loop-{first_on}", input="Look around.", **more)
        calls = [item for item in first.output if item.type == "function_call"]
        assert [call.name for call in calls] == ["read_file", "run"]
        results: Any = [
            {"type": "function_call_output", "call_id": c.call_id, "output": f"from {c.name}"} for c in calls
        ]
        route = f"loop-{then_on}" if first_on != then_on else f"loop-{then_on}-considered"
        second = asked(client, stream, model=route, input=results, previous_response_id=first.id, **more)
    assert [item.name for item in second.output if item.type == "function_call"] == [LOOP[1].calls[0].name]
    assert tool_results(then_on, vendors.last()) == ["from read_file", "from run"]


def named(response: Any) -> list[Any]:
    """What a client sends in place of the items of a reply that it takes to be stored."""
    return [{"type": "item_reference", "id": item.id} for item in response.output]


@streamed
@pytest.mark.parametrize("then_on", FORMATS)
@pytest.mark.parametrize("first_on", ["openai_chat", "anthropic_messages"])
def test_items_may_be_named_by_the_ids_a_reply_gave_them(
    client: openai.OpenAI, gateway: Running, vendors: Vendors, first_on: str, then_on: str, stream: bool
) -> None:
    tools = Responses(gateway.url)
    with closing(tools.client):
        more = tools.tools()
        opening = {"role": "user", "content": "Look around."}
        first = asked(client, stream, model=f"loop-{first_on}", input=[opening], **more)
        calls = [item for item in first.output if item.type == "function_call"]
        results = [{"type": "function_call_output", "call_id": c.call_id, "output": f"from {c.name}"} for c in calls]
        said: Any = [opening, *named(first), *results]
        second = asked(client, stream, model=f"loop-{then_on}", input=said, **more)
    assert [item.name for item in second.output if item.type == "function_call"] == [LOOP[1].calls[0].name]
    sent = vendors.last()
    assert "item_reference" not in str(sent)
    assert tool_results(then_on, sent) == ["from read_file", "from run"]
    # Both calls, or their results would answer nothing.
    assert all(call.name in str(sent["input" if then_on == "openai_responses" else "messages"]) for call in calls)


def test_its_own_server_is_sent_an_items_id_as_it_came(client: openai.OpenAI, vendors: Vendors) -> None:
    said: Any = [{"type": "item_reference", "id": "msg_of_another_program_0001"}, {"role": "user", "content": "two"}]
    client.responses.create(model="text-openai_responses", input=said)
    assert vendors.last()["input"] == said


@pytest.mark.parametrize("form", ["openai_chat", "anthropic_messages"])
def test_an_item_that_is_not_known_here_is_refused_elsewhere(
    client: openai.OpenAI, vendors: Vendors, form: str
) -> None:
    sent = len(vendors.requests)
    said: Any = [{"type": "item_reference", "id": "msg_of_another_program_0001"}, {"role": "user", "content": "two"}]
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=f"text-{form}", input=said)
    assert (raised.value.code, raised.value.param) == ("unsupported_server_state", "input[0]")
    assert len(vendors.requests) == sent


def test_an_item_belongs_to_its_tenant(client: openai.OpenAI, gateway: Running) -> None:
    first = client.responses.create(model="text-openai_chat", input="a secret of alpha")
    said: Any = [*named(first), {"role": "user", "content": "two"}]
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=KEYS["BETA"], max_retries=0) as other:
        with pytest.raises(openai.BadRequestError) as raised:
            other.responses.create(model="text-openai_chat", input=said)
        assert raised.value.code == "unsupported_server_state"
    assert client.responses.create(model="text-openai_chat", input=said).output_text


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_not_to_be_stored_is_not_known(client: openai.OpenAI, vendors: Vendors, form: str) -> None:
    first = client.responses.create(model=f"text-{form}", input="one", store=False)
    sent = len(vendors.requests)
    for unknown in (first.id, "resp_never_issued"):
        with pytest.raises(openai.BadRequestError) as raised:
            client.responses.create(model=f"text-{form}", input="two", previous_response_id=unknown)
        assert (raised.value.code, raised.value.param) == ("previous_response_not_found", "previous_response_id")
    assert len(vendors.requests) == sent


def test_a_response_belongs_to_its_tenant(client: openai.OpenAI, gateway: Running) -> None:
    first = client.responses.create(model="text-openai_chat", input="a secret of alpha")
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=KEYS["BETA"], max_retries=0) as other:
        with pytest.raises(openai.BadRequestError) as raised:
            other.responses.create(model="text-openai_chat", input="two", previous_response_id=first.id)
        assert raised.value.code == "previous_response_not_found"
    assert client.responses.create(model="text-openai_chat", input="two", previous_response_id=first.id).output_text


def test_a_conversation_id_stays_with_responses_targets(
    client: openai.OpenAI, gateway: Running, vendors: Vendors
) -> None:
    client.responses.create(model="text-openai_responses", input="one", conversation="conv_1")
    assert vendors.last()["conversation"] == "conv_1"
    turn = gateway.settled()[0]
    assert (turn.rung, turn.session) == ("chain", "conv_1")
    for form in ("openai_chat", "anthropic_messages"):
        for route in (f"text-{form}", f"text-{form}-considered"):
            with pytest.raises(openai.BadRequestError) as raised:
                client.responses.create(model=route, input="one", conversation="conv_1")
            assert (raised.value.code, raised.value.param) == ("unsupported_feature", "conversation")


@streamed
def test_background_is_refused(client: openai.OpenAI, vendors: Vendors, stream: bool) -> None:
    sent = len(vendors.requests)
    with pytest.raises(openai.BadRequestError) as raised:
        asked(client, stream, model="text-openai_responses", input="one", background=True)
    assert (raised.value.code, raised.value.param) == ("unsupported_feature", "background")
    assert len(vendors.requests) == sent


def test_a_chain_is_one_session(client: openai.OpenAI, gateway: Running) -> None:
    first = client.responses.create(model="text-openai_chat", input="a task of its own")
    second = client.responses.create(model="text-openai_chat", input="go on", previous_response_id=first.id)
    client.responses.create(model="text-openai_chat", input="and on", previous_response_id=second.id)
    turns = gateway.settled()[:3]
    assert len({turn.session for turn in turns}) == 1
    assert [turn.rung for turn in turns] == ["chain", "chain", "fingerprint"]
