"""The guide to the retrieval route does what it says, and names every status."""

import json
import re
import typing
from pathlib import Path

from tests.gateway.escalating import post
from tests.recorded import ROOT
from tests.running import running

from turnout.gateway.config import read
from turnout.knowledge.building import Options, build
from turnout.knowledge.corpus import read_corpus
from turnout.routing.retrieval.spoken import Status

PAGE = (ROOT / "docs" / "guide" / "retrieval-route.md").read_text("utf-8")
(CORPUS,) = re.findall(r"```jsonl\n(.*?)```", PAGE, re.DOTALL)
(REPLIES,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
TRIED, SHOWN = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_answers_as_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(CORPUS)
    (tmp_path / "replies.jsonl").write_text(REPLIES)
    build(read_corpus(tmp_path / "corpus.jsonl"), tmp_path / "facts", Options(embedder="hashed"))
    (asked,) = re.findall(r"-d '(.*?)'", PAGE, re.DOTALL)
    with running(TRIED, tmp_path) as gateway:
        status, headers, data = post(gateway, "openai_chat", json.loads(asked))
        assert (status, headers["x-turnout-retrieval"]) == (200, "answered")
        (shown,) = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
        assert json.loads(data)["choices"][0]["message"]["content"] == shown
        (turn,) = gateway.settled()
        assert len(turn.lookups) == 2


def test_the_other_example_is_a_configuration(tmp_path: Path) -> None:
    config, tables = read(SHOWN, str(tmp_path / "turnout.toml"))
    assert config is not None, tables.findings


def test_every_status_is_told() -> None:
    for status in typing.get_args(Status):
        assert f"| `{status}` |" in PAGE
