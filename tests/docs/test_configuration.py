"""docs/configuration.md says what the structs say, and its examples are configurations."""

import os
import re
from pathlib import Path

import pytest
from tests.docs.reference import reference

from turnout.gateway.config import read

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
BEGIN, END = "<!-- generated from the structs: begin -->", "<!-- generated from the structs: end -->"


def test_the_reference_is_that_of_the_structs() -> None:
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    written, after = rest.split(END)
    if os.environ.get("TURNOUT_WRITE_DOCS") == "1":
        PAGE.write_text(f"{before}{BEGIN}\n\n{reference()}\n{END}{after}", "utf-8")
        return
    assert written.strip() == reference().strip(), "run this test once with TURNOUT_WRITE_DOCS=1 and commit the page"


def test_every_key_has_a_meaning() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == []


EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_configurations(example: str) -> None:
    config, tables = read(example, "example.toml")
    assert [finding for finding in tables.findings if finding.severity == "error"] == []
    assert config is not None
