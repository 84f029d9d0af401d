"""The guide to the stage router: its numbers are those of the code, its examples decide as it says."""

import re
import tomllib
from pathlib import Path

import pytest

from turnout.gateway.config import read
from turnout.routing.stage.choice import choose
from turnout.routing.stage.score import Case, Weights, squashed, units

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "routing-by-stage.md").read_text("utf-8")
WEIGHTS = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE, re.MULTILINE))
EXAMPLES = re.findall(r"^\| `([^`]+)` \| (-?[\d.]+) \| (-?[\d.]+) \| (\w+) \| (\w+) \|$", PAGE, re.MULTILINE)


def test_the_table_of_weights_is_whole() -> None:
    assert {name: float(weight) for name, weight in WEIGHTS.items()} == {
        name: getattr(Weights(), name) for name in Weights.__struct_fields__
    }


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 12
    assert {example[3] for example in EXAMPLES} == {"capable", "efficient"}


@pytest.mark.parametrize("example", EXAMPLES, ids=[example[0] for example in EXAMPLES])
def test_worked_examples(example: tuple[str, ...]) -> None:
    told, evidence, score, tier, by = example
    case = Case(**tomllib.loads(told.replace(", ", "\n")))
    assert units(case, Weights()) == pytest.approx(float(evidence), abs=0.0051)
    assert squashed(units(case, Weights())) == pytest.approx(float(score), abs=0.0051)
    found = choose(case, Weights(), 0.5, "efficient_first")
    assert (found.tier, found.rule or found.source) == (tier, by)


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_configurations(example: str) -> None:
    config, tables = read(example, "example.toml")
    assert [finding for finding in tables.findings if finding.severity == "error"] == []
    assert config is not None
