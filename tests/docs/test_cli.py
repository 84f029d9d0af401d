"""docs/cli.md mentions every command and every option."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from turnout.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")


def commands(group: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every command by its full name."""
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*path, name))
        else:
            found[" ".join((*path, name))] = command
    return found


COMMANDS = commands(typer.main.get_command(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_a_section_with_every_option(name: str) -> None:
    section = re.search(rf"^## turnout {re.escape(name)}\b.*?(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section, f"docs/cli.md has no section for `turnout {name}`"
    for parameter in COMMANDS[name].params:
        options = [
            option for option in parameter.opts if option.startswith("--") and option not in ("--json", "--help")
        ]
        for option in options:
            assert f"`{option}`" in section[0] or f"`{option} " in section[0], f"{option} of `turnout {name}`"
