"""The example in docs/guide/peers-review.md runs, says what the page says, and the page names what there is."""

import re
from pathlib import Path

import pytest
from tests.recorded import ROOT

from turnout.cli.app import run
from turnout.peers.review.questions import LEAST_PER_TYPE
from turnout.peers.review.running import BLOCK, GIVE_UP_AFTER
from turnout.peers.review.scores import THIN_BELOW, Scores
from turnout.upstream.buying.calling import LONGEST_RETRY_AFTER_S, TRIES

PAGE = (ROOT / "docs" / "guide" / "peers-review.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turnout.toml").write_text(block("toml"), "utf-8")
    (tmp_path / "replies.jsonl").write_text(block("json"), "utf-8")
    exec(block("python"), {})
    for command, line, code in zip(block("sh").splitlines(), block("text").splitlines(), (0, 1, 0), strict=True):
        program, *arguments = command.split()
        assert program == "turnout"
        assert run(arguments) == code
        said = capsys.readouterr()
        assert line in (said.out + said.err).splitlines()


def test_the_page_names_every_key_of_the_scores_and_the_limits_as_they_are() -> None:
    assert all(f"`{name}`" in PAGE for name in Scores.__struct_fields__)
    assert f"{LEAST_PER_TYPE} at the least" in PAGE
    assert f"fewer than {THIN_BELOW:.0%}".replace("%", " %") in PAGE
    assert (BLOCK, GIVE_UP_AFTER, TRIES, LONGEST_RETRY_AFTER_S) == (20, 3, 8, 600)
