"""Progress: a bar with a word beside it at a terminal, nothing elsewhere."""

import io
import sys

import pytest

from turnout.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_how_far_it_is_and_what_it_has_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.shown() as told:
        told("answers", 2, 2, "$0.10")
        told("scores", 1, 4, "$0.25")
    last = terminal.getvalue()[terminal.getvalue().rindex("answers") :]
    assert "2/2" in last
    assert "1/4" in last
    assert "$0.25" in last
    assert "$0.10" not in last


def test_a_pipe_is_shown_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.shown() as told:
        told("scores", 1, 4, "$0.25")
    assert capsys.readouterr() == ("", "")
