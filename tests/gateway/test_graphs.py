"""Graphs that a configuration names: missing, wrong, old, of other models."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.collaborating import MODELS, Panel, graph, toml

from turnout.errors import ConfigError
from turnout.gateway.checking import check
from turnout.gateway.config import load, parse
from turnout.gateway.tables import Finding


@pytest.fixture(scope="module")
def panel() -> Panel:
    made = Panel("openai_chat")
    made.server.close()
    return made


def findings(panel: Panel, folder: Path, file: Any = None, **fields: Any) -> list[Finding]:
    if file is not None:
        (folder / "graph.json").write_text(file if isinstance(file, str) else json.dumps(file))
    _, found = check(toml(panel, **fields), str(folder / "turnout.toml"), {})
    return [one for one in found if one.key.startswith("routes.r") and "price" not in one.message]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "no such file"),
        ("{", "truncated"),
        ({}, "missing required field"),
        (graph(C=["M9"]), "M9 is not among"),
        (graph(excluded=dict.fromkeys(MODELS, "too lenient")), "none of `models` may vote"),
    ],
)
def test_a_graph_that_cannot_be_used_is_named_with_its_line(panel: Panel, tmp_path: Path, file: Any, said: str) -> None:
    (error,) = findings(panel, tmp_path, file)
    assert error.severity == "error"
    assert said in error.message
    lines = toml(panel).splitlines()
    assert error.line is not None
    assert ("graph" if "none of" not in said else "models") in lines[error.line - 1]
    (tmp_path / "turnout.toml").write_text(toml(panel))
    with pytest.raises(ConfigError, match=r"turnout\.toml"):
        load(tmp_path / "turnout.toml", {})


@pytest.mark.parametrize(
    ("fields", "changes", "said"),
    [
        ({}, {"manifest": {"made_at": "2020-01-01T00:00:00Z"}}, "days old"),
        ({}, {"manifest": {"made_at": "2020-01-01T00:00:00Z", "hard_ttl_days": 9}}, "nobody is asked to vote"),
        ({}, {"flags": ["degenerate"]}, "degenerate"),
        ({}, {"excluded": {"M1": "too lenient"}}, "M1 does not vote: too lenient"),
        ({"models": {"M1": "tM1", "M2": "tM2", "new": "tM3"}}, {}, "the graph does not know new"),
        ({"models": {"M1": "tM1", "M2": "tM2"}}, {}, "no target for M3, M4, M5"),
        ({"task_type": "math"}, {}, "no relations of its own for `math`"),
        ({"first": "fastest"}, {}, "no speed is given"),
        ({"caps": {"calls": 3}}, {}, "3 calls are not enough"),
        ({"mode": "paper"}, {"C_i": {**{m: ["M2"] for m in MODELS}, "M2": []}}, "nobody to vote"),
    ],
)
def test_what_is_doubtful_is_a_warning(
    panel: Panel, tmp_path: Path, fields: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    found = findings(panel, tmp_path, graph(**changes), **fields)
    assert any(said in one.message for one in found), found
    assert {one.severity for one in found} == {"warning"}


def test_a_cap_on_money_needs_prices(panel: Panel, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(graph()))
    priceless = toml(panel, caps={"usd": 0.1}).replace("price = {", "#", 1)
    _, found = check(priceless, str(tmp_path / "turnout.toml"), {})
    (warning,) = [one for one in found if one.key == "routes.r.caps.usd"]
    assert "no price is known for `M1`" in warning.message


def test_a_model_other_than_the_reviewed_one_is_named(panel: Panel, tmp_path: Path) -> None:
    reviewed = [{"name": "M1", "model": "M1"}, {"name": "M2", "model": "M2-2024"}]
    file = graph(manifest={**graph()["manifest"], "models": reviewed})
    (warning,) = findings(panel, tmp_path, file)
    assert "M2: another model stands there" in warning.message


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"models": {"M1": "tM1"}}, "two models at least"),
        ({"models": {"M1": "tM1", "M2": "nobody"}}, "unknown target `nobody`"),
        ({"prefer": ["M9"]}, "M9 is not among"),
        ({"mode": "paper", "exit": "best_supported", "quorum": 0.9}, 'mode = "paper" fixes it'),
        ({"polling": "cheapest_first"}, "exit"),
        ({"refine_prompt": "Do better."}, "{draft}"),
        ({"alfa": 3}, "unknown key `alfa`"),
    ],
)
def test_wrong_settings_are_named(panel: Panel, tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(graph()))
    found = findings(panel, tmp_path, **fields)
    assert any(said in one.message and one.severity == "error" and one.line for one in found), found


def test_another_graph_is_another_policy(panel: Panel, tmp_path: Path) -> None:
    digests = set()
    for changes in ({}, {"manifest": {"made_at": "2025-01-01T00:00:00Z"}}, {"C_i": {**dict(graph()["C_i"]), "M1": []}}):
        (tmp_path / "graph.json").write_text(json.dumps(graph(**changes)))
        digests.add(parse(toml(panel), str(tmp_path / "turnout.toml")).routes["r"].policy)
    assert len(digests) == 2  # the age alone changes nothing
