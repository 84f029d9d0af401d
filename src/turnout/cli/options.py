"""Options that several commands share, spelled once."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ConfigFile: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file.", show_default=True)]
Ledger: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="Ledger to read, such as sqlite:///turnout.db.")]
Gateway: TypeAlias = Annotated[str, typer.Option(metavar="URL", help="Ask a running gateway instead.")]
KeyEnv: TypeAlias = Annotated[str, typer.Option(metavar="VAR", help="Variable with the key the gateway asks for.")]

DEFAULT_FILE = Path("turnout.toml")
