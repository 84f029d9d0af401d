"""Options that several commands share, spelled once."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from turnout.cli.exits import CommandError

if TYPE_CHECKING:
    from turnout.gateway.config import Config

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigFile: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file.", show_default=True)]
Ledger: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="Ledger to read, such as sqlite:///turnout.db.")]
Gateway: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="Ask a running gateway instead.")]
KeyEnv: TypeAlias = Annotated[str, typer.Option(metavar="VAR", help="Variable with the key the gateway asks for.")]
Newest: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=100_000, help="How many of the newest turns.")
]
Report: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE.html", help="Write a report to look at, one file.")
]
Resamples: TypeAlias = Annotated[int, typer.Option(min=100, max=1_000_000, help="Resamples of the bootstrap.")]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]

DEFAULT_FILE = Path("turnout.toml")


def configuration(file: Path | None) -> "Config | None":
    """The configuration in a file; without one that of this folder, where there is one that can be read."""
    from turnout.errors import ConfigError
    from turnout.gateway.config import load

    if file is not None:
        return load(file, None)
    try:
        return load(DEFAULT_FILE, None) if DEFAULT_FILE.exists() else None
    except ConfigError:
        return None  # what is recorded can be read without; `check` says what is wrong with the file


def numbers(given: Sequence[str], option: str, form: str, is_bare: bool = False) -> dict[str, float]:
    """Finite numbers of 0 or more by name, each given as NAME=X. `form`: how this option's help writes that. `is_bare`: X
    without a name is one too, of the name "". Raises CommandError."""
    found: dict[str, float] = {}
    for text in given:
        name, is_named, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or not (name or (is_bare and not is_named)):
            raise CommandError(f"{option} {text}: expected {form}, a number of 0 or more")
        found[name] = value
    return found
