"""Tenants: keys let in, turns are one's own, operators see all, and a key goes no further than here."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.faulty import FaultyUpstream
from tests.running import Running, running

KEYS = {"ACME": "tk-acme-0123456789", "OTHER": "tk-other-0123456789", "OPS": "tk-ops-0123456789"}


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultyUpstream]:
    with FaultyUpstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: FaultyUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    toml = f"""
[upstreams.u]
format = "openai_chat"
base_url = "{upstream.url}"
[targets.ok]
upstream = "u"
model = "ok"
[routes.coder]
type = "passthrough"
target = "ok"
[server]
require_keys = true
operators = ["ops"]
[server.tenants.acme]
key_env = "ACME"
[server.tenants.other]
key_env = "OTHER"
[server.tenants.ops]
key_env = "OPS"
"""
    with running(toml, tmp_path_factory.mktemp("tenants"), env=KEYS) as served:
        for name in ("ACME", "ACME", "OTHER"):
            chat(served, KEYS[name])
        served.settled()
        yield served


def call(
    gateway: Running, path: str, key: str = "", body: Any = None, header: str = "authorization"
) -> tuple[int, Any]:
    headers = {header: f"Bearer {key}" if header == "authorization" else key} if key else {}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(gateway.url + path, data, headers), timeout=10) as response:
            return response.status, json.loads(response.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


def chat(gateway: Running, key: str) -> tuple[int, Any]:
    return call(
        gateway, "/v1/chat/completions", key, {"model": "coder", "messages": [{"role": "user", "content": "hi"}]}
    )


def test_without_a_key_nothing_is_served_or_shown(gateway: Running):
    for key in ("", "tk-wrong"):
        assert chat(gateway, key)[0] == 401
        for path in ("/v1/turns", "/v1/stats", "/v1/turns/x"):
            assert call(gateway, path, key)[0] == 401


def test_a_tenant_sees_its_own_turns_and_an_operator_all(gateway: Running):
    _, mine = call(gateway, "/v1/turns", KEYS["ACME"], header="x-api-key")
    assert [t["tenant"] for t in mine["turns"]] == ["acme", "acme"]
    assert call(gateway, "/v1/turns?tenant=other", KEYS["ACME"])[1]["turns"] == mine["turns"]
    assert call(gateway, "/v1/stats", KEYS["OTHER"])[1]["total"]["turns"] == 1
    _, everything = call(gateway, "/v1/turns", KEYS["OPS"])
    assert {t.get("tenant", "") for t in everything["turns"]} >= {"acme", "other"}
    foreign = mine["turns"][0]["id"]
    assert call(gateway, f"/v1/turns/{foreign}", KEYS["OTHER"])[0] == 404
    assert call(gateway, f"/v1/turns/{foreign}", KEYS["ACME"])[1]["id"] == foreign
    assert call(gateway, f"/v1/turns/{foreign}", KEYS["OPS"])[0] == 200


def test_an_outcome_is_told_of_ones_own_turns(gateway: Running):
    mine = call(gateway, "/v1/turns", KEYS["ACME"])[1]["turns"][0]["id"]
    assert call(gateway, "/v1/outcomes", KEYS["OTHER"], {"turn": mine, "success": True})[0] == 404
    status, told = call(gateway, "/v1/outcomes", KEYS["ACME"], {"turn": mine, "success": True, "tenant": "other"})
    assert (status, told["tenant"]) == (201, "acme")


def test_a_tenants_key_goes_no_further(gateway: Running, upstream: FaultyUpstream):
    assert all(key not in json.dumps(upstream.headers) for key in KEYS.values())
