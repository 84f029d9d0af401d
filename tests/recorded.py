"""The recorded data beside the repository: where it is, and its rows."""

import gzip
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).parent.parent


def shared() -> Path | None:
    """The folder of recorded data: `TURNOUT_SHARED`, else `shared` beside the repository; None when there is none."""
    named = os.environ.get("TURNOUT_SHARED")
    for path in [Path(named)] if named else [ROOT.parent / "shared", ROOT.parent.parent / "shared"]:
        if (path / "data").is_dir():
            return path
    return None


@cache
def rows(name: str) -> list[Any]:
    """All rows of `data/NAME` (JSON Lines, possibly gzipped); [] where the folder is absent."""
    folder = shared()
    if folder is None:
        return []
    path = folder / "data" / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [msgspec.json.decode(line) for line in data.splitlines() if line.strip()]


def captures() -> list[Any]:
    """The recorded exchanges of the three protocols."""
    return rows("traces/protocol_captures.jsonl.gz")


needs_recordings = pytest.mark.skipif(shared() is None, reason="the recorded data is not there (set TURNOUT_SHARED)")
