"""How people name moments: so long ago, or a date."""

import re
from datetime import UTC, datetime

from turnout.cli.exits import CommandError

_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([mhdw])")


def span(text: str, what: str) -> float:
    """A time span in seconds: `14d`, `36h`, `90m`, `2w`. Raises CommandError that names `what`."""
    found = _AGO.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise CommandError(f"{what} {text!r}: expected a time span such as 14d, 36h, 90m or 2w")
    return float(found[1]) * _SECONDS[found[2]]


def moment(text: str, what: str, now: float) -> float:
    """A moment in Unix seconds: a span before `now`, or a date with or without a time (UTC unless it says otherwise). Raises
    CommandError that names `what`."""
    if _AGO.fullmatch(text.strip()):
        return now - span(text, what)
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CommandError(
            f"{what} {text!r}: expected a span such as 14d or 36h, or a date such as 2026-11-30"
        ) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
