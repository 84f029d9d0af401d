"""The guide to collaboration shows configurations that load and does what it says on the preset's scripted models."""

import json
import re
import shutil
import typing
from pathlib import Path

import pytest
from tests.gateway.escalating import post
from tests.recorded import ROOT
from tests.running import running

from turnout.gateway.checking import check
from turnout.gateway.config import read
from turnout.routing.collaboration.chain import Status

PAGE = (ROOT / "docs" / "guide" / "collaboration.md").read_text("utf-8")
PRESETS = ROOT / "src" / "turnout" / "cli" / "presets"


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_examples_load(example: str, tmp_path: Path) -> None:
    shutil.copy(PRESETS / "collaboration-graph.json", tmp_path / "graph.json")
    config, tables = read(example, str(tmp_path / "turnout.toml"))
    assert config is not None, tables.findings


def test_every_status_is_told() -> None:
    for status in (*typing.get_args(Status), "not_voted"):
        assert f"`{status}`" in PAGE


def test_the_preset_does_what_the_page_shows(tmp_path: Path) -> None:
    for file in PRESETS.glob("collaboration*"):
        shutil.copy(file, tmp_path)
    text = (tmp_path / "collaboration.toml").read_text()
    _, findings = check(text, str(tmp_path / "collaboration.toml"), {})
    assert findings == []
    with running(text, tmp_path) as gateway:
        body = {"model": "panel", "messages": [{"role": "user", "content": "What is 17 x 24?"}]}
        code, headers, data = post(gateway, "openai_chat", body)
        assert (code, headers["x-turnout-consensus"]) == (200, "converged; approve=1; disapprove=0; abstain=0; hops=1")
        assert json.loads(data)["choices"][0]["message"]["content"] == "17 x 24 = 408"
        (turn,) = gateway.settled()
        assert turn.why is not None
        first, second = turn.why.values["hops"]
        assert [vote["approve"] for vote in first["votes"]] == [False, False]
        for told in (first["response"], second["response"], first["votes"][0]["verdict_reason"]):
            assert told in PAGE
        assert turn.why.sentence in (
            f"the answer of {one} was agreed on: 1 of 1 approve (dune -> {one})" for one in ("amber", "birch")
        )
