"""The guide to escalation shows configurations that load, names keys that exist, and states the defaults as they are."""

import re
import tomllib
from typing import Any, get_args

import msgspec
import pytest
from tests.recorded import ROOT

from turnout.gateway.config import read
from turnout.routing import Escalation
from turnout.routing.judging import Excerpt, FailOpen, Judging

PAGE = (ROOT / "docs" / "guide" / "escalation.md").read_text("utf-8")
SNIPPETS = [one for one in re.findall(r"`([^`\n]+)`", PAGE) if re.match(r"[a-z_.]+ = ", one)]
NAMES: dict[str, Any] = {"weak": "w", "strong": "s", "judge": "j"}


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_examples_load(example: str) -> None:
    config, tables = read(example, "example.toml")
    assert config is not None, tables.findings
    assert isinstance(config.routes["coder"].router, Escalation)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_setting_it_names_is_one(snippet: str) -> None:
    fields = tomllib.loads(snippet.replace("...", "text") if '"..."' in snippet else snippet)
    names = {role: name for role, name in NAMES.items() if role != "judge" or fields.get("judge_when") != "never"}
    assert msgspec.convert({**names, "type": "escalation", **fields}, Escalation) is not None


def test_the_sizes_it_states_are_the_defaults() -> None:
    excerpt, judging = Excerpt(), Judging()
    for number in (excerpt.anchor_chars, excerpt.window, excerpt.chars, excerpt.total_chars):
        assert f"{number:,}" in PAGE
    assert judging.output == "json_schema"
    assert all(f"`{reason}`" in PAGE for reason in get_args(FailOpen))
    assert len(SNIPPETS) > 12
