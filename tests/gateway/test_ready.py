"""/ready says whether the gateway can serve, as JSON."""

import json
import urllib.request
from pathlib import Path

from tests.running import running, script

CONFIG = """
[upstreams.played]
format = "openai_chat"
script = "replies.jsonl"
[targets.one]
upstream = "played"
model = "m"
[routes.coder]
type = "passthrough"
target = "one"
"""


def test_a_gateway_that_serves_is_ready(tmp_path: Path):
    script(tmp_path, "replies.jsonl", {"text": "hello"})
    with running(CONFIG, tmp_path) as gateway, urllib.request.urlopen(f"{gateway.url}/ready", timeout=10) as response:
        state = json.loads(response.read())
    assert state["ready"] is True
    assert state["ledger"]["ok"] is True
    assert state["sessions"] == {"reachable": True}
    assert (state["cooling_targets"], state["stuck_routes"]) == ([], [])
