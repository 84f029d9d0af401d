"""Whose credentials reach an upstream: a client's own where they are forwarded, never a key of the gateway."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.played import Played, completion, whole
from tests.running import Running, running

KEY = "team-secret-key-123"


@pytest.fixture
def upstream() -> Iterator[Played]:
    with Played(lambda *_: whole(200, completion())) as served:
        yield served


@pytest.fixture
def gateway(upstream: Played, tmp_path: Path) -> Iterator[Running]:
    toml = f"""
[upstreams.vendor]
format = "openai_chat"
base_url = "{upstream.url}"
forward_auth = true
[targets.one]
upstream = "vendor"
model = "m"
[routes.coder]
type = "passthrough"
target = "one"
[server.tenants.team]
key_env = "TEAM"
"""
    with running(toml, tmp_path, env={"TEAM": KEY}) as served:
        yield served


def ask(gateway: Running, headers: dict[str, str]) -> tuple[int, str]:
    """Status, and the code of an error."""
    body = {"model": "coder", "messages": [{"role": "user", "content": "hi"}]}
    request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, ""
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)["error"]["code"]


@pytest.mark.parametrize("tenants", [{"x-api-key": KEY}, {}])
def test_a_clients_own_credentials_pass_and_its_tenants_key_does_not(
    gateway: Running, upstream: Played, tenants: dict[str, str]
) -> None:
    assert ask(gateway, {"authorization": "Bearer own-login", **tenants}) == (200, "")
    assert upstream.seen[0].headers["authorization"] == "Bearer own-login"
    assert KEY not in str(upstream.seen[0].headers)
    assert gateway.settled()[0].tenant == ("team" if tenants else "")


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", ""])
def test_a_request_with_only_a_tenants_key_has_nothing_to_forward(
    gateway: Running, upstream: Played, scheme: str
) -> None:
    assert ask(gateway, {"authorization": f"{scheme}{KEY}"}) == (401, "missing_credentials")
    assert upstream.seen == []
    assert gateway.settled()[0].tenant == "team"
