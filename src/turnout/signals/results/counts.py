"""Counts of tests, and readers that take them from a summary's text."""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct


class Summary(Struct, frozen=True):
    """`run`: tests that ran (skipped ones left out; at least so many where the runner does not count), `failed` with errors.
    `passed` None where the runner does not count."""

    run: int
    passed: int | None
    failed: int

    @property
    def green(self) -> bool:
        """At least one test ran and none failed."""
        return self.run > 0 and self.failed == 0


Reader: TypeAlias = Callable[[str], Summary | None]

_COUNT = re.compile(r"(\d[\d,]*) (\w+)")
_FAILED = ("failed", "error", "exceptions", "failures", "failure", "broken", "interrupted", "timed_out")


def counts(words: str) -> dict[str, int]:
    """The numbers before words: `3 failed, 5 passed` gives `{"failed": 3, "passed": 5}`."""
    return {"error" if word == "errors" else word: int(n.replace(",", "")) for n, word in _COUNT.findall(words)}


def of_words(words: str) -> Summary:
    """The summary that counted words give."""
    counted = counts(words)
    passed = counted.get("passed", 0) + counted.get("xpassed", 0) + counted.get("xfailed", 0)
    failed = sum(counted.get(word, 0) for word in _FAILED)
    return Summary(passed + failed, passed, failed)


def worded(pattern: re.Pattern[str]) -> Reader:
    """A reader of a pattern whose first group holds counted words; the last match counts."""

    def read(text: str) -> Summary | None:
        found = list(pattern.finditer(text))
        return of_words(found[-1].group(1)) if found else None

    return read


def named(pattern: re.Pattern[str], every: bool = False) -> Reader:
    """A reader of a pattern with groups `passed` or `total`, `failed`, `errors`, `skipped`, all but the first two optional.

    The last match counts; with `every` all matches are added up.
    """

    def read(text: str) -> Summary | None:
        found = list(pattern.finditer(text))
        return of_groups(found if every else found[-1:]) if found else None

    return read


def of_groups(found: Sequence[re.Match[str]]) -> Summary:
    """The summary that named groups of matches give, added up."""
    counted = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0, "total": 0}
    for one in found:
        for name, text in one.groupdict().items():
            digits = "".join(c for c in text or "" if c.isdecimal())
            counted[name] += int(digits[:12]) if digits else 0
    failed = counted["failed"] + counted["errors"]
    passed = counted["passed"] or max(counted["total"] - counted["skipped"] - failed, 0)
    return Summary(passed + failed, passed, failed)


def words_by_line(pattern: re.Pattern[str], passed: str, failed: str) -> Reader:
    """A reader of runners that give each count a line of its own: groups `n` and `word`."""

    def read(text: str) -> Summary | None:
        counted = {one.group("word"): int(one.group("n")) for one in pattern.finditer(text)}
        if passed not in counted and failed not in counted:
            return None
        good, bad = counted.get(passed, 0), counted.get(failed, 0)
        return Summary(good + bad, good, bad)

    return read


def nothing_ran(pattern: re.Pattern[str]) -> Reader:
    """A reader of what a runner says when it found no test."""

    def read(text: str) -> Summary | None:
        return Summary(0, 0, 0) if pattern.search(text) else None

    return read
