"""A base URL that names a session: for clients that can be told an address and no header."""

import http.client
import json
from pathlib import Path

from tests.running import running, script

CONFIG = """
[upstreams.played]
format = "openai_chat"
script = "replies.jsonl"
[targets.one]
upstream = "played"
model = "one"
[routes.coder]
type = "passthrough"
target = "one"
"""


def test_turns_under_a_session_belong_to_it_in_every_dialect(tmp_path: Path):
    script(tmp_path, "replies.jsonl", {"text": "hi"})
    said = [{"role": "user", "content": "hi"}]
    bodies = {
        "/v1/chat/completions": {"messages": said},
        "/messages": {"messages": said, "max_tokens": 5},
        "/v1/responses": {"input": "hi"},
    }
    with running(CONFIG, tmp_path) as gateway:
        connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"))

        def ask(method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            return response.status, response.read()

        for path, body in bodies.items():
            status, _ = ask("POST", f"/sessions/run-7{path}", {"model": "coder", **body})
            assert status == 200
        asked = {"model": "coder", **bodies["/messages"]}
        status, _ = ask("POST", "/sessions/run-8/messages", asked, **{"x-turnout-session": "another"})
        assert status == 200
        turns = gateway.settled()
        assert [(turn.session, turn.rung) for turn in turns] == [("run-8", "header"), *[("run-7", "header")] * 3]
        assert ask("GET", "/sessions/run-7/v1/models")[0] == 200
        assert json.loads(ask("GET", "/sessions/run-7")[1])["service"] == "turnout"
        status, body = ask("POST", "/sessions//v1/messages", asked)
        assert (status, b"there is nothing at POST" in body) == (404, True)
        assert ask("GET", "/sessions/run-7/v1/messages")[0] == 405
        connection.close()
        assert len(gateway.settled()) == len(turns)
