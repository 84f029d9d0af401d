"""Knowledge over HTTP: what a folder finds, its service finds; and what is wrong comes as a failure."""

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("bm25s")

import uvicorn
from tests.knowledge.corpora import ALL

from turnout.errors import ConfigError
from turnout.knowledge import open_knowledge
from turnout.knowledge.building import Options, build
from turnout.knowledge.search import Searcher
from turnout.knowledge.service import application
from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    folder = tmp_path_factory.mktemp("knowledge")
    build(ALL, folder, Options("hashed"))
    return Searcher.open(folder)


@pytest.fixture(scope="module")
def url(searcher: Searcher) -> Iterator[str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # so that who comes before the server is up waits
    server = uvicorn.Server(uvicorn.Config(application(searcher, {"facts": 1}), log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


def test_a_service_finds_what_its_folder_finds(searcher: Searcher, url: str) -> None:
    lookups = [Lookup("Who directed Lanterns over Harrowmere?", at_most=3), Lookup("rope works", at_most=1)]
    remote = open_knowledge(url)
    for _ in range(2):  # the second over the connection that was kept
        for mine, theirs in zip(searcher.look_up(lookups), remote.look_up(lookups), strict=True):
            assert isinstance(mine, Found)
            assert isinstance(theirs, Found)
            assert [(one.id, one.text, one.sources, one.entities) for one in mine.facts] == [
                (one.id, one.text, one.sources, one.entities) for one in theirs.facts
            ]
            assert [round(one.score, 3) for one in mine.facts] == [one.score for one in theirs.facts]
    assert remote.look_up([]) == []
    remote.close()


def test_the_request_shape_is_graph_r1s(url: str) -> None:
    import urllib.request

    request = urllib.request.Request(f"{url}/search", json.dumps({"queries": ["rope works", "1702"]}).encode())
    with urllib.request.urlopen(request) as answer:
        entries = json.load(answer)
    assert [isinstance(entry, str) for entry in entries] == [True, True]
    best = json.loads(entries[0])["results"][0]
    assert best["<knowledge>"] == "Port Saltry is a harbour town known for its rope works."
    assert best["<coherence>"] == 2.0, "first among the nearest facts, and by its words"


@pytest.mark.parametrize("body", ["", "[]", '{"queries": "x"}', '{"queries": ["x"], "at_most": 0}', '{"query": "x"}'])
def test_other_bodies_are_told_what_is_wrong(url: str, body: str) -> None:
    import http.client

    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request("POST", "/search", body.encode())
    answer = connection.getresponse()
    assert answer.status == 400
    assert json.loads(answer.read())["error"]
    connection.close()


def answering(status: int, body: bytes) -> http.server.HTTPServer:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (503, b"", "unavailable"),
        (404, b"", "request"),
        (200, b"not JSON", "malformed"),
        (200, b"[]", "malformed"),
        (200, b'["{}"]', "malformed"),
        (200, b'[{"results": [{"text": "x"}]}]', "malformed"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_kind(status: int, body: bytes, kind: str) -> None:
    server = answering(status, body)
    try:
        (failed,) = open_knowledge(f"http://127.0.0.1:{server.server_port}").look_up([Lookup("x")])
    finally:
        server.shutdown()
        server.server_close()
    assert isinstance(failed, Failure)
    assert failed.kind == kind


def test_a_service_that_names_no_facts_gets_their_places() -> None:
    server = answering(
        200,
        b'["{\\"results\\": [{\\"<knowledge>\\": \\"A.\\", \\"<coherence>\\": 2}, {\\"<knowledge>\\": \\"B.\\"}]}"]',
    )
    try:
        found = open_knowledge(f"http://127.0.0.1:{server.server_port}/search").look_up([Lookup("x")])
    finally:
        server.shutdown()
        server.server_close()
    assert found == [Found((Fact("1", "A.", 2.0), Fact("2", "B.", 0.0)))]


def test_where_nobody_listens_or_answers_it_fails() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        (refused,) = open_knowledge(f"http://127.0.0.1:{bound.getsockname()[1]}").look_up([Lookup("x")])
        bound.listen()
        (late,) = open_knowledge(f"http://127.0.0.1:{bound.getsockname()[1]}").look_up([Lookup("x", within_s=0.05)])
    assert isinstance(refused, Failure)
    assert isinstance(late, Failure)
    assert (refused.kind, late.kind) == ("unavailable", "timeout")


@pytest.mark.parametrize("url", ["http://", "http://user:word@host/", "http://host:port/", "http://host/?a=b"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not the URL"):
        open_knowledge(url)
