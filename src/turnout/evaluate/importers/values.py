"""Fields of records that other programs wrote: of the expected type, or nothing."""

import math
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec


def text(value: Any) -> str:
    """A string; "" for anything else. Numbers are written out, for ids are sometimes numbers."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def table(value: Any) -> dict[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """A finite number, also one in a string as tables hold them."""
    if isinstance(value, str):
        try:
            value = float(value.strip().lstrip("$").replace(",", ""))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count(value: Any) -> int | None:
    """A number of things; None for what is none, and for negative ones."""
    found = number(value)
    return int(found) if found is not None and 0 <= found < 2**62 else None


_YES = frozenset({"true", "yes", "1", "1.0", "pass", "passed", "resolved", "success", "succeeded", "solved"})
_NO = frozenset({"false", "no", "0", "0.0", "fail", "failed", "unresolved", "failure", "unsolved"})


def truth(value: Any) -> bool | None:
    """Yes, no, or not said. A number is only that when it is 0 or 1: a score between is no success."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    return True if word in _YES else False if word in _NO else None


def moment(value: Any) -> float | None:
    """Unix seconds of an ISO date, of seconds or of milliseconds; None for anything else, and for years before 2000."""
    found: float | None
    if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
        try:
            parsed = datetime.fromisoformat(value.strip())
            found = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    else:
        found = number(value)
        if found is not None and found > 1e11:
            found /= 1000
    return found if found is not None and 946_684_800 <= found < 1e11 else None


def json_text(value: Any) -> str:
    """A value as JSON text; a string as it stands."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def name_of(*parts: str) -> str:
    """A short name that stands for these texts."""
    return blake2b("\x1f".join(parts).encode(errors="replace"), digest_size=12).hexdigest()
