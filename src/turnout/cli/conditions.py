"""Reads a file of conditions, and says of every mistake where it is."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from turnout.errors import ConfigError

if TYPE_CHECKING:
    from turnout.evaluate.review.conditions import Conditions


def read(path: Path) -> "Conditions":
    """The conditions in a file. Raises ConfigError with line and key, and CommandError where there is no file."""
    from turnout.evaluate.review.conditions import Conditions
    from turnout.gateway.tables import Tables

    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not TOML: {error}", file=str(path)) from None
    tables = Tables(text, str(path))
    found = tables.struct(Conditions, document, ())
    if tables.findings:
        raise tables.findings[0].error("")
    return found
