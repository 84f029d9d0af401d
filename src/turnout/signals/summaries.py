"""Summaries of test runners: how many tests ran, passed and failed. Words in prose are no summary."""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct


class Summary(Struct, frozen=True):
    """`run`: tests that ran (skipped ones left out), `failed` with errors. `passed` None where the runner does not count."""

    run: int
    passed: int | None
    failed: int

    @property
    def green(self) -> bool:
        """At least one test ran and none failed."""
        return self.run > 0 and self.failed == 0


_LOOKED_AT = 12_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|(?<![\w\]])\[\d{1,2}(?:;\d{1,2})*m")

_PYTEST = re.compile(
    r"^=* ?((?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, )?)+)"
    r" in [\d.]+ ?s.*$",
    re.MULTILINE,
)
_PYTEST_NONE = re.compile(r"^=* ?no tests (?:ran|collected).* in [\d.]+s", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\s+(OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?", re.MULTILINE)
_JEST = re.compile(r"^[ \t]*Tests:\s+((?:\d+ \w+(?:, )?)+)", re.MULTILINE)
_VITEST = re.compile(r"^[ \t]*Tests[ \t]+([^\n()]{1,200})\((\d+)\)", re.MULTILINE)
_MOCHA = re.compile(r"^[ \t]*(\d+) passing\b.*(?:\n\s*\d+ pending.*)?(?:\n\s*(\d+) failing)?", re.MULTILINE)
_NODE = re.compile(r"^(?:#|\u2139) (tests|pass|fail) (\d+)$", re.MULTILINE)
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)
_NEXTEST = re.compile(r"^[ \t]*Summary \[.*?\]\s+(\d+) tests? run: (\d+) passed(?:.*?(\d+) failed)?", re.MULTILINE)
_SUREFIRE = re.compile(
    r"^(?:\[\w+\]\s+)?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?!.*(?:Time elapsed| -- in | - in ))",
    re.MULTILINE,
)
_GRADLE = re.compile(r"^(\d+) tests? completed(?:, (\d+) failed)?", re.MULTILINE)
_CTEST = re.compile(r"^\d+% tests passed, (\d+) tests failed out of (\d+)", re.MULTILINE)
_DOTNET = re.compile(r"^[ \t]*(?:Passed|Failed)!\s+- Failed:\s+(\d+), Passed:\s+(\d+)", re.MULTILINE)
_DOTNET_TOTAL = re.compile(r"^Total tests: (\d+)(?:\s+Passed: (\d+))?(?:\s+Failed: (\d+))?", re.MULTILINE)
_RSPEC = re.compile(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) errors? occurred)?", re.MULTILINE)
_MINITEST = re.compile(r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors", re.MULTILINE)
_EXUNIT = re.compile(r"^(?:\d+ doctests?, )?(\d+) tests?, (\d+) failures?", re.MULTILINE)
_PHPUNIT_OK = re.compile(r"^OK \((\d+) tests?, \d+ assertions?\)", re.MULTILINE)
_PHPUNIT = re.compile(r"^Tests: (\d+), Assertions: \d+(?:, Errors: (\d+))?(?:, Failures: (\d+))?", re.MULTILINE)
_GTEST = re.compile(r"^\[  (PASSED|FAILED)  \] (\d+) tests?", re.MULTILINE)
_BUN = re.compile(r"^[ \t]*(\d+) pass\n(?:\s*\d+ skip\n)?(?:\s*\d+ todo\n)?\s*(\d+) fail$", re.MULTILINE)
_DENO = re.compile(r"^(?:ok|FAILED) \| (\d+) passed.*?\| (\d+) failed", re.MULTILINE)
_SWIFT = re.compile(r"^[ \t]*Executed (\d+) tests?, with (\d+) failures?", re.MULTILINE)
_PLAYWRIGHT = re.compile(r"^  (\d+) (passed|failed|flaky)(?: \([\d.]+\w+\))?$", re.MULTILINE)
_PROVE = re.compile(r"^(All tests successful\.)?\s*Files=\d+, Tests=(\d+),", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^(ok  |FAIL|---FAIL)\t(\S+)(?:\t(.*))?$", re.MULTILINE)
_GO_TEST = re.compile(r"^[ \t]*--- (PASS|FAIL): ", re.MULTILINE)
_GO_END = re.compile(r"^(PASS|FAIL)$", re.MULTILINE)
_AD_HOC = re.compile(
    r"^\W{0,4}all (?:(\d+) )?(?:\w+ )?tests? (?:have )?(?:passed|succeeded|ok|pass)[.! ✓✅🎉]*$",
    re.MULTILINE | re.IGNORECASE,
)

_COUNT = re.compile(r"(\d+) (\w+)")


def without_colour(text: str) -> str:
    """`text` without terminal colour codes."""
    return _ANSI.sub("", text) if "\x1b[" in text or "[0m" in text or "[32m" in text else text


def _counts(words: str) -> dict[str, int]:
    return {word.rstrip("s") if word == "errors" else word: int(n) for n, word in _COUNT.findall(words)}


def _of_words(words: str) -> Summary:
    counts = _counts(words)
    passed = counts.get("passed", 0) + counts.get("xpassed", 0) + counts.get("xfailed", 0)
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return Summary(passed + failed, passed, failed)


def _pytest(text: str) -> Summary | None:
    found = list(_PYTEST.finditer(text))
    if found:
        return _of_words(found[-1].group(1))
    return Summary(0, 0, 0) if _PYTEST_NONE.search(text) else None


def _unittest(text: str) -> Summary | None:
    found = list(_UNITTEST.finditer(text))
    if not found:
        return None
    run = failed = skipped = 0
    for one in found:
        counts = dict(re.findall(r"(\w+)=(\d+)", one.group(3) or ""))
        run += int(one.group(1))
        failed += int(counts.get("failures", 0)) + int(counts.get("errors", 0)) + int(counts.get("unexpected", 0))
        skipped += int(counts.get("skipped", 0))
        if one.group(2) == "FAILED" and not counts:
            failed += 1
    return Summary(max(run - skipped, failed), max(run - skipped - failed, 0), failed)


def _node(text: str) -> Summary | None:
    counts = {word: int(n) for word, n in _NODE.findall(text)}
    if "pass" not in counts or "fail" not in counts:
        return None
    return Summary(counts["pass"] + counts["fail"], counts["pass"], counts["fail"])


def _go(text: str) -> Summary | None:
    packages = [(mark, note) for mark, _, note in _GO_PACKAGE.findall(text) if "[no test files]" not in note]
    tests = _GO_TEST.findall(text)
    if not packages and not (tests and _GO_END.search(text)):
        return None
    ran = [p for p in packages if "[no tests to run]" not in p[1]]
    failed = tests.count("FAIL") or sum(mark != "ok  " for mark, _ in ran)
    passed = tests.count("PASS")
    run = passed + failed if passed else max(len(ran), failed)
    return Summary(run, passed if passed else None if failed else run, failed)


def _gtest(text: str) -> Summary | None:
    counts = {mark: int(n) for mark, n in _GTEST.findall(text)}
    return Summary(sum(counts.values()), counts.get("PASSED", 0), counts.get("FAILED", 0)) if counts else None


def _playwright(text: str) -> Summary | None:
    counts = {word: int(n) for n, word in _PLAYWRIGHT.findall(text)}
    return Summary(sum(counts.values()), counts.get("passed", 0), counts.get("failed", 0)) if counts else None


def _prove(text: str) -> Summary | None:
    found = _PROVE.search(text)
    if found is None:
        return None
    failed = 0 if found.group(1) or "Result: PASS" in text else 1
    return Summary(int(found.group(2)), None, failed)


def _ad_hoc(text: str) -> Summary | None:
    found = _AD_HOC.search(text)
    return None if found is None else Summary(int(found.group(1) or 1), None, 0)


def _summed(pattern: re.Pattern[str], passed: int | None, failed: tuple[int, ...], total: int | None = None, last: bool = False,
            skipped: int | None = None) -> Callable[[str], Summary | None]:  # fmt: skip
    """Reader of a pattern whose groups hold numbers: groups `passed`, `failed` (added up), `total`, `skipped`."""

    def read(text: str) -> Summary | None:
        found = list(pattern.finditer(text))
        if not found:
            return None
        good = bad = 0
        for one in found[-1:] if last else found:
            lost = sum(int(one.group(g) or 0) for g in failed)
            bad += lost
            if total is not None:
                good += int(one.group(total)) - lost - int((one.group(skipped) if skipped else 0) or 0)
            elif passed is not None:
                good += int(one.group(passed) or 0)
        return Summary(max(good, 0) + bad, max(good, 0), bad)

    return read


def _worded(pattern: re.Pattern[str]) -> Callable[[str], Summary | None]:
    def read(text: str) -> Summary | None:
        found = list(pattern.finditer(text))
        return _of_words(found[-1].group(1)) if found else None

    return read


def _named(found: Sequence[re.Match[str]]) -> Summary:
    counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0, "total": 0}
    for one in found:
        for name, text in one.groupdict().items():
            digits = "".join(c for c in text or "" if c.isdecimal())
            counts[name] += int(digits[:12]) if digits else 0
    failed = counts["failed"] + counts["errors"]
    passed = counts["passed"] or max(counts["total"] - counts["skipped"] - failed, 0)
    return Summary(passed + failed, passed, failed)


RUNNERS: tuple[tuple[str, str, Callable[[str], Summary | None]], ...] = (
    ("pytest", " in ", _pytest),
    ("unittest", "Ran ", _unittest),
    ("jest", "Tests:", _worded(_JEST)),
    ("vitest", "Tests ", _worded(_VITEST)),
    ("mocha", " passing", _summed(_MOCHA, 1, (2,), last=True)),
    ("cargo", "test result:", _summed(_CARGO, 1, (2,))),
    ("nextest", "tests run:", _summed(_NEXTEST, 2, (3,), last=True)),
    ("surefire", "Tests run:", _summed(_SUREFIRE, None, (2, 3), total=1, last=True, skipped=4)),
    ("ctest", "tests passed,", _summed(_CTEST, None, (1,), total=2, last=True)),
    ("dotnet", "Failed:", _summed(_DOTNET, 2, (1,))),
    ("dotnet", "Total tests:", _summed(_DOTNET_TOTAL, None, (3,), total=1, last=True)),
    ("gradle", "completed", _summed(_GRADLE, None, (2,), total=1, last=True)),
    ("node", " fail ", _node),
    ("rspec", "example", _summed(_RSPEC, None, (2, 3), total=1, last=True)),
    ("minitest", "assertions,", _summed(_MINITEST, None, (2, 3), total=1, last=True)),
    ("exunit", "failure", _summed(_EXUNIT, None, (2,), total=1, last=True)),
    ("phpunit", "OK (", _summed(_PHPUNIT_OK, 1, (), last=True)),
    ("phpunit", "Assertions:", _summed(_PHPUNIT, None, (2, 3), total=1, last=True)),
    ("gtest", "[  ", _gtest),
    ("bun", " fail", _summed(_BUN, 1, (2,), last=True)),
    ("deno", " passed", _summed(_DENO, 1, (2,), last=True)),
    ("swift", "Executed ", _summed(_SWIFT, None, (2,), total=1, last=True)),
    ("prove", "Files=", _prove),
    ("go", "\t", _go),
    ("go", "--- ", _go),
    ("playwright", " passed", _playwright),
    ("playwright", " failed", _playwright),
    ("ad_hoc", "test", _ad_hoc),
)
"""Runner, a word its summary holds, and how to read it. Add a runner: one row."""


def read_summary(text: str, added: Sequence[tuple[bool, re.Pattern[str]]] = ()) -> Summary | None:
    """The summary of the last test run in `text`, None when there is none. Looks at the end of long outputs.

    `added`: an operator's own runners: whether every match counts, and a pattern with named groups.
    """
    end = without_colour(text[-_LOOKED_AT:])
    for every, pattern in added:
        found = list(pattern.finditer(end))
        if found:
            return _named(found if every else found[-1:])
    for _, word, read in RUNNERS:
        if word in end:
            summary = read(end)
            if summary is not None:
                return summary
    return _ad_hoc(end)
