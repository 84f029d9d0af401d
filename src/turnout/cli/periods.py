"""Moments as people write them on a command line: a day, a time, or how long ago."""

import re
import time
from datetime import UTC, datetime

from turnout.cli import exits

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
HELP = (
    "a day (2026-01-31), a time (2026-01-31T12:00), both UTC unless they say otherwise, or how long ago (90m, 24h, 7d)"
)


def moment(text: str, option: str) -> float | None:
    """Unix seconds of a moment; None for no text. `option`: which one it was given to."""
    if not text:
        return None
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return time.time() - float(ago[1]) * _SECONDS[ago[2]]
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise exits.CommandError(f"{option}: {text!r} is no moment", step=f"expected {HELP}") from None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
