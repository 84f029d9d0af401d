"""What `[signals]` adds reaches the turns a gateway serves and the decisions it shows."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.faulty import FaultyUpstream
from tests.running import Running, running

BODY = {
    "model": "coder",
    "messages": [
        {"role": "user", "content": "Deploy."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "deploy", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "quota of team A is exhausted"},
    ],
}
PATTERN = '[[signals.patterns]]\nmatch = "^quota"\nclass = "critical"\nkind = "quota"\n'


@pytest.fixture(scope="module", params=[PATTERN, ""])
def gateway(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    with FaultyUpstream() as upstream:
        toml = [request.param, f'[upstreams.u]\nformat = "openai_chat"\nbase_url = "{upstream.url}"\n']
        toml += [f'[targets.{name}]\nupstream = "u"\nmodel = "ok"\n' for name in ("small", "large")]
        toml.append('[routes.coder]\ntype = "stage"\nefficient = "small"\ncapable = "large"\n')
        with running("".join(toml), tmp_path_factory.mktemp("additions")) as served:
            yield served, "large" if request.param else "small"


def post(gateway: Running, path: str) -> tuple[Any, dict[str, Any]]:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    connection.request("POST", path, json.dumps(BODY), {"content-type": "application/json"})
    response = connection.getresponse()
    data = json.loads(response.read())
    connection.close()
    return response, data


def test_a_served_turn_goes_where_the_pattern_sends_it(gateway: tuple[Running, str]) -> None:
    served, target = gateway
    response, _ = post(served, "/v1/chat/completions")
    assert (response.status, response.headers["x-turnout-target"]) == (200, target)


def test_a_decision_shows_what_the_pattern_found(gateway: tuple[Running, str]) -> None:
    served, target = gateway
    _, decision = post(served, "/v1/route")
    assert decision["target"] == target
    seen = decision["signals"]["observations"][0]
    assert seen.get("error_kind", "") == ("quota" if target == "large" else "")
