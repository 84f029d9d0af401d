"""The summary of a test run in an output: how many tests ran, passed and failed. Words in prose are no summary."""

import re
from collections.abc import Sequence

from turnout.signals.results.counts import Summary, of_groups
from turnout.signals.results.runners import RUNNERS

_LOOKED_AT = 12_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|(?<![\w\]])\[\d{1,2}(?:;\d{1,2})*m")


def without_colour(text: str) -> str:
    """`text` without terminal colour codes."""
    return _ANSI.sub("", text) if "\x1b[" in text or "[0m" in text or "[32m" in text else text


def read_summary(text: str, added: Sequence[tuple[bool, re.Pattern[str]]] = ()) -> Summary | None:
    """The summary of the last test run in `text`, None when there is none. Looks at the end of long outputs.

    `added`: an operator's own runners: whether every match counts, and a pattern with named groups.
    """
    end = without_colour(text[-_LOOKED_AT:])
    for every, pattern in added:
        found = list(pattern.finditer(end))
        if found:
            return of_groups(found if every else found[-1:])
    for _, word, read in RUNNERS:
        if word in end:
            summary = read(end)
            if summary is not None:
                return summary
    return None
