"""The example in docs/guide/review.md runs and says what the page says; every key and measure is on the page."""

import re
from pathlib import Path
from typing import get_args

import pytest
from tests.recorded import ROOT

from turnout.cli import exits
from turnout.cli.app import run
from turnout.evaluate.review.conditions import SOURCES, CanaryArms, Condition, Conditions, CountedAs, Logged, Trials

PAGE = (ROOT / "docs" / "guide" / "review.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    Path("review.toml").write_text(block("toml"))
    assert run(block("sh").split()[1:]) == exits.GO_BACK
    assert capsys.readouterr().out.splitlines()[0] == block("text").strip()
    assert Path("review.html").exists()


def test_every_key_is_on_the_page() -> None:
    for struct in (Conditions, Condition, Trials, CanaryArms, Logged):
        for name in struct.__struct_fields__:
            assert f"`{name}`" in PAGE or f"[{name}" in PAGE, name


def test_every_measure_is_on_the_page_with_its_sources() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*?) \|$", PAGE, re.MULTILINE))
    for measure, sources in SOURCES.items():
        assert rows[measure] == (", ".join(sources) or "that condition")


def test_every_way_to_count_is_on_the_page() -> None:
    for counted in get_args(CountedAs):
        assert f'| `"{counted}"` |' in PAGE
