"""An operator's regular expressions: read, and tried on the texts that would keep them busy longest.

Outputs of tools are whatever the world puts there, and a search cannot be interrupted: a pattern whose parts can share a text
among them in many ways would stop the whole gateway at one such output.
"""

import math
import re
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from re import _parser as parser  # type: ignore[attr-defined]  # its tree is the only way to know what a pattern repeats
from typing import Any

TRIED_S = 0.1
"""Seconds of computing that a text of `_LENGTHS` characters may take at most; it grows at least with the square of the length."""

_LENGTHS = (8, 12, *range(14, 65, 2), 96, 128, 256, 512, 1024, 2048)
_UNITS_AT_MOST = 48
_CANDIDATES = "a0 .\n-_/A:,;#"
_NEVER = "\x00"


@lru_cache(256)
def regex(key: str, pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`pattern` compiled. Raises ValueError that names the key for what is no regular expression, and for one that takes too
    long."""
    try:
        compiled = re.compile(pattern, flags)
        hostile = _hostile(compiled)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{key}: not a regular expression: {error}") from None
    if hostile:
        raise ValueError(
            f"{key}: takes too long on a text such as {hostile[:24]!r} repeated: parts that repeat can match the same text; "
            "let each match what the next cannot, such as `[^,]*,` instead of `.*,`"
        )
    return compiled


def _hostile(compiled: re.Pattern[str]) -> str:
    """What a text that keeps the pattern busy too long repeats; "" when none was found."""
    tree = parser.parse(compiled.pattern, compiled.flags)
    places = list(dict.fromkeys(_repeats(tree, "")))
    if not places:
        return ""
    words = re.findall(r"\w+", compiled.pattern)
    units = dict.fromkeys(unit for _, unit in places if unit)
    units |= dict.fromkeys((*_CANDIDATES, *words, *(f"{word} " for word in words)))
    befores = list(dict.fromkeys(before for before, _ in places))[:8]
    # Short texts first: where the time grows exponentially, the first that takes too long takes not much longer than that.
    for length in _LENGTHS:
        for unit in list(units)[:_UNITS_AT_MOST]:
            filling = (unit * length)[:length] + _NEVER
            if any(_seconds(compiled, before + filling) > TRIED_S for before in befores):
                return unit
    return ""


def _seconds(compiled: re.Pattern[str], text: str) -> float:
    """The least of three tries where one takes a little too long: the machine may have been busy."""
    least = math.inf
    for _ in range(3):
        began = time.thread_time()
        compiled.search(text)
        least = min(least, time.thread_time() - began)
        if least <= TRIED_S or least > 4 * TRIED_S:
            break
    return least


def _repeats(tree: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """Each repetition without an end: a text that leads to it, and one that it repeats."""
    for op, of in tree:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = of
            if most > 64:
                yield before, _sample(inner, 0)
                yield before, _sample(inner, 1)
            yield from _repeats(inner, before)
            before += _sample(inner, 1) * min(least, 8)
            continue
        for inner in _inside(name, of):
            yield from _repeats(inner, before)
        before += _sample([(op, of)], 0)


def _inside(name: str, of: Any) -> list[Any]:
    """The trees inside a node."""
    if name == "SUBPATTERN":
        return [of[3]]
    if name == "BRANCH":
        return list(of[1])
    if name in ("ASSERT", "ASSERT_NOT"):
        return [of[1]]
    return [of] if name == "ATOMIC_GROUP" else [of[2]] if name == "POSSESSIVE_REPEAT" else []


def _sample(tree: Sequence[Any], least: int) -> str:
    """A text that `tree` matches, more or less; what is optional comes `least` times."""
    text = ""
    for op, of in tree:
        name = str(op)
        if name == "LITERAL":
            text += chr(of)
        elif name in ("NOT_LITERAL", "ANY", "IN"):
            text += _one_of(name, of)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            text += _sample(of[2], least) * min(max(of[0], min(least, of[1])), 8)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP", "BRANCH"):
            text += _sample(_inside(name, of)[0], least)
    return text


def _one_of(name: str, of: Any) -> str:
    """A character that a set matches."""
    if name == "ANY":
        return "a"
    if name == "NOT_LITERAL":
        return "0" if of == ord("a") else "a"
    negated = any(str(op) == "NEGATE" for op, _ in of)
    tried: list[str] = []
    for op, one in () if negated else of:
        if str(op) in ("LITERAL", "RANGE"):
            tried.append(chr(one if str(op) == "LITERAL" else one[0]))
    tried.extend(_CANDIDATES)
    for c in tried:
        if any(_holds(str(op), one, c) for op, one in of) != negated:
            return c
    return "a"


def _holds(name: str, of: Any, c: str) -> bool:
    """Whether a member of a set matches a character."""
    if name == "LITERAL":
        return ord(c) == int(of)
    if name == "RANGE":
        return bool(of[0] <= ord(c) <= of[1])
    if name != "CATEGORY":
        return False
    kind = str(of).rpartition("_")[2]
    found = c.isdigit() if kind == "DIGIT" else c.isspace() if kind == "SPACE" else c.isalnum() or c == "_"
    return found != ("NOT" in str(of))
