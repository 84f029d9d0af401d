"""Tables for people, at whatever width the terminal has."""

from typing import TYPE_CHECKING

import pytest

from turnout.cli import output

if TYPE_CHECKING:
    from rich.console import Console

ROW = ("t1a22e4283a3aaec312a2cc32", "11-30 21:00:40", "coder", "", "the tests [of zones] failed twice in a row")


def printed(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    def narrow() -> "Console":
        from rich.console import Console

        return Console(width=width)

    monkeypatch.setattr(output, "console", narrow)
    table = output.table("turn", "at", "route", "rule", "why")
    table.row(*ROW)
    table.print()
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_cell_is_cut_and_no_line_is_too_long(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(width, monkeypatch, capsys)
    words = out.split()
    for cell in ROW:
        assert set(cell.split()) <= set(words)
    assert max(len(line) for line in out.splitlines()) <= width


def test_a_narrow_terminal_gets_lines_with_what_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(60, monkeypatch, capsys).splitlines() == [
        "t1a22e4283a3aaec312a2cc32  at 11-30 21:00:40  route coder",
        "  the tests [of zones] failed twice in a row",
    ]
