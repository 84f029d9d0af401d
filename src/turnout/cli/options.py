"""Options that several commands share, spelled once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from turnout.gateway.config import Config

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigFile: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file.", show_default=True)]
Ledger: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="Ledger to read, such as sqlite:///turnout.db.")]
Gateway: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="Ask a running gateway instead.")]
KeyEnv: TypeAlias = Annotated[str, typer.Option(metavar="VAR", help="Variable with the key the gateway asks for.")]

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
