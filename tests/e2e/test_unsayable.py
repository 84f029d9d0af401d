"""A reply that holds what the client's format cannot say ends in a typed error, and is recorded as one."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import CLIENTS
from tests.e2e.considering import ROUTERS
from tests.e2e.vendors import Vendors
from tests.running import Running, running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Vendors() as vendors:
        toml = f'[upstreams.u]\nformat = "openai_responses"\nbase_url = "{vendors.url}"\n'
        toml += '[targets.t]\nupstream = "u"\nmodel = "patch"\n'
        for router in ("passthrough", "considering"):
            toml += f'[routes.{router}]\ntype = "{router}"\ntarget = "t"\n'
        with running(toml, Path(tmp_path_factory.mktemp("unsayable")), routers=ROUTERS) as served:
            yield served


@pytest.mark.parametrize(
    ("ours", "router", "stream"),
    list(itertools.product(("openai_chat", "anthropic_messages"), ("passthrough", "considering"), (False, True))),
)
def test_a_call_of_a_tool_only_responses_knows(gateway: Running, ours: str, router: str, stream: bool) -> None:
    client: Any = CLIENTS[ours](gateway.url)
    with client.client, pytest.raises(client.errors.APIError) as raised:
        client.ask(router, client.user("hi"), stream)
    assert "apply_patch_call" in str(raised.value)
    turn = gateway.settled()[0]
    assert turn.ended in ("error", "cut")
    assert turn.error
    assert turn.usage is None or not turn.stop


def test_a_client_of_responses_gets_it(gateway: Running) -> None:
    client: Any = CLIENTS["openai_responses"](gateway.url)
    with client.client:
        assert client.ask("passthrough", client.user("hi"), True).text == "Patching."
    assert gateway.settled()[0].ended == "ok"
