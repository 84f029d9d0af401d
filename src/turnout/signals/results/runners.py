"""Test runners and how each says how its tests went, as data. Add a runner: one row."""

import re

import msgspec

from turnout.signals.results.counts import Reader, Summary, counts, named, nothing_ran, of_words, worded, words_by_line


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_PYTEST = _re(
    r"^=* ?((?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, )?)+)"
    r" in [\d.]+ ?s.*$"
)
_PYTEST_NONE = _re(r"^=* ?no tests (?:ran|collected).* in [\d.]+ ?s")
_PYTEST_DOTS = _re(r"^(?:\S+\.py )?([.FEsxXR]+)[ \t]+\[ *\d+%\]$")
_UNITTEST = _re(r"^Ran (\d+) tests? in [\d.]+s\s+(OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?")
_TRIAL = _re(r"^(?:PASSED|FAILED) \(((?:\w+=\d+(?:, )?)+)\)$")
_GO_PACKAGE = _re(r"^(ok  |FAIL|---FAIL)\t(\S+)(?:[\t ](.*))?$")
_GO_TEST = _re(r"^[ \t]*--- (PASS|FAIL): ")
_GO_END = _re(r"^(PASS|FAIL)$")
_GO_JSON = _re(r'^\{.*"Action":"(pass|fail)".*\}$')
_NODE = _re(r"^(?:#|\u2139) (tests|pass|fail) (\d+)$")
_GTEST = _re(r"^\[  (PASSED|FAILED)  \] (\d+) tests?")
_PROVE = _re(r"^(All tests successful\.)?\s*Files=\d+, Tests=(\d+),")
_TAP_PLAN = _re(r"^1\.\.(\d+)")
_TAP = _re(r"^(not )?ok \d+(?! # SKIP)")
_JEST_SUITES = _re(r"^[ \t]*(?:Test Suites|Test Files):?\s+(\d+) failed")
_GRADLE_RAN = _re(r"^> Task \S*:(?:test|check|\w*Test)$")
_GRADLE_END = _re(r"^BUILD (SUCCESSFUL|FAILED) in ")
_AD_HOC = re.compile(
    r"^\W{0,4}all (?:(\d+) )?(?:\w+ )?tests? (?:have )?(?:passed|succeeded|ok|pass)[.! \u2713\u2705\U0001f389]*$",
    re.MULTILINE | re.IGNORECASE,
)


def _pytest(text: str) -> Summary | None:
    found = list(_PYTEST.finditer(text))
    if found:
        return of_words(found[-1].group(1))
    return Summary(0, 0, 0) if _PYTEST_NONE.search(text) else None


def _pytest_dots(text: str) -> Summary | None:
    """Very quiet runs print one mark a test and no summary."""
    marks = "".join(_PYTEST_DOTS.findall(text))
    failed = marks.count("F") + marks.count("E")
    passed = sum(marks.count(mark) for mark in ".xX")
    return Summary(passed + failed, passed, failed) if marks else None


def _unittest(text: str) -> Summary | None:
    found = list(_UNITTEST.finditer(text))
    if not found:
        return None
    run = failed = skipped = 0
    for one in found:
        counted = dict(re.findall(r"(\w+)=(\d+)", one.group(3) or ""))
        run += int(one.group(1))
        lost = sum(int(counted.get(word, 0)) for word in ("failures", "errors", "successes"))
        failed += lost if lost or one.group(2) != "FAILED" else 1
        skipped += int(counted.get("skipped", 0))
    return Summary(max(run - skipped, failed), max(run - skipped - failed, 0), failed)


def _trial(text: str) -> Summary | None:
    found = list(_TRIAL.finditer(text))
    if not found:
        return None
    counted = {word: int(n) for word, n in re.findall(r"(\w+)=(\d+)", found[-1].group(1))}
    failed = counted.get("failures", 0) + counted.get("errors", 0)
    passed = counted.get("successes", 0)
    return Summary(passed + failed, passed, failed) if passed or failed else None


def _node(text: str) -> Summary | None:
    counted = {word: int(n) for word, n in _NODE.findall(text)}
    if "pass" not in counted or "fail" not in counted:
        return None
    return Summary(counted["pass"] + counted["fail"], counted["pass"], counted["fail"])


def _go(text: str) -> Summary | None:
    packages = [(mark, note) for mark, _, note in _GO_PACKAGE.findall(text) if "[no test files]" not in note]
    tests = _GO_TEST.findall(text)
    if not packages and not (tests and _GO_END.search(text)):
        return Summary(0, 0, 0) if "[no test files]" in text else None
    ran = [p for p in packages if "[no tests to run]" not in p[1]]
    broken = sum(mark != "ok  " and ("[build failed]" in note or "[setup failed]" in note) for mark, note in ran)
    failed = tests.count("FAIL") + broken or sum(mark != "ok  " for mark, _ in ran)
    passed = tests.count("PASS")
    run = passed + failed if passed else max(len(ran), failed)
    return Summary(run, passed if passed else None if failed else run, failed)


def _go_json(text: str) -> Summary | None:
    passed = failed = 0
    for found in _GO_JSON.finditer(text):
        try:
            event = msgspec.json.decode(found.group())
        except msgspec.DecodeError:
            continue
        # Events without a test are those of its package.
        if isinstance(event, dict) and event.get("Test"):
            passed += event.get("Action") == "pass"
            failed += event.get("Action") == "fail"
    return Summary(passed + failed, passed, failed) if passed or failed else None


def _gtest(text: str) -> Summary | None:
    counted = {mark: int(n) for mark, n in _GTEST.findall(text)}
    return Summary(sum(counted.values()), counted.get("PASSED", 0), counted.get("FAILED", 0)) if counted else None


def _prove(text: str) -> Summary | None:
    found = _PROVE.search(text)
    if found is None:
        return None
    failed = 0 if found.group(1) or "Result: PASS" in text else 1
    return Summary(int(found.group(2)), None, failed)


def _tap(text: str) -> Summary | None:
    plan = _TAP_PLAN.search(text)
    marks = _TAP.findall(text)
    if plan is None or not marks:
        return None
    failed = sum(bool(mark) for mark in marks)
    return Summary(len(marks), len(marks) - failed, failed)


def _jest(text: str) -> Summary | None:
    """Suites that do not even load fail without a failed test."""
    made = worded(_re(r"^[ \t]*Tests:\s+((?:\d+ \w+(?:, )?)+)"))(text)
    if made is not None and not made.failed and (found := _JEST_SUITES.search(text)):
        return Summary(made.run + int(found.group(1)), made.passed, int(found.group(1)))
    return made


_VITEST = _re(r"^[ \t]*Tests[ \t]+([^\n()]{1,200})\((\d+)\)")


def _vitest(text: str) -> Summary | None:
    made = worded(_VITEST)(text)
    found = _JEST_SUITES.search(text) if made is None or not made.failed else None
    if found is not None and "Test Files" in found.group():
        return Summary((made.run if made else 0) + int(found.group(1)), made.passed if made else 0, int(found.group(1)))
    return made


_MOCHA = _re(r"^[ \t]+(\d+) (passing|failing)\b.*$")


def _mocha(text: str) -> Summary | None:
    counted = {word: int(n) for n, word in _MOCHA.findall(text)}
    if not counted:
        return None
    good, bad = counted.get("passing", 0), counted.get("failing", 0)
    return Summary(good + bad, good, bad)


def _gradle(text: str) -> Summary | None:
    """Green runs are silent about their number: that the task ran and the build went well is all there is."""
    end = _GRADLE_END.search(text)
    if end is None or not _GRADLE_RAN.search(text):
        return None
    return Summary(1, None, 0) if end.group(1) == "SUCCESSFUL" else None


def _bazel(text: str) -> Summary | None:
    found = _re(r"^Executed \d+ out of (\d+) tests?: (.*)$").search(text)
    if found is None:
        return None
    failed = sum(
        counts(found.group(2).replace("fails", "failed").replace("fail ", "failed ")).get(w, 0) for w in ("failed",)
    )
    run = int(found.group(1))
    return Summary(run, run - failed, failed)


def _ad_hoc(text: str) -> Summary | None:
    found = _AD_HOC.search(text)
    return None if found is None else Summary(int(found.group(1) or 1), None, 0)


_PLAYWRIGHT = words_by_line(_re(r"^  (?P<n>\d+) (?P<word>passed|failed|flaky)(?: \([\d.]+\w+\))?$"), "passed", "failed")
_NOTHING = _re(
    r"^(?:\[INFO\] |Error: )?(?:No tests? (?:files? )?(?:were )?found|No tests to run\.|No test is available in"
    r"|no tests? (?:files|found|to run)|testing: warning: no tests to run)"
)
_SKIPPED = r"(?:, (?P<skipped>\d+) (?:pending|skipped|ignored|skips?))?"

RUNNERS: tuple[tuple[str, str, Reader], ...] = (
    ("pytest", " in ", _pytest),
    ("unittest", "Ran ", _unittest),
    ("sympy", "tests finished:", worded(_re(r"tests finished: ((?:\d+ [a-z ]+(?:, )?)+)"))),
    ("jest", "Tests:", _jest),
    ("vitest", "Test Files ", _vitest),
    ("vitest", "Tests ", _vitest),
    ("mocha", "ing", _mocha),
    ("cargo", "test result:", named(_re(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;"), every=True)),
    ("nextest", "run: ", named(_re(
        r"^[ \t]*Summary \[.*?\]\s+(?:\d+/)?\d+ tests? run: (?P<passed>\d+) passed(?: \([^)]*\))?"
        r"(?:, (?P<failed>\d+) (?:failed|timed out))?(?:, (?P<errors>\d+) exec failed)?"))),
    ("surefire", "Tests run:", named(_re(
        r"^(?:\[\w+\]\s+)?Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+)"
        r"(?:, Skipped: (?P<skipped>\d+))?"
        r"(?!.*(?:Time elapsed| -- in | - in ))"))),
    ("junit", "JUnit", named(_re(r"^OK \((?P<total>\d+) tests?\)$"))),
    ("junit", "tests successful", words_by_line(
        _re(r"^\[ +(?P<n>\d+) tests (?P<word>successful|failed) +\]"), "successful", "failed")),
    ("ctest", "tests passed,", named(_re(r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)"))),
    ("ctest", "No tests were found", nothing_ran(_re(r"^No tests were found!!!"))),
    ("dotnet", "Passed:", named(_re(
        r"^[ \t]*(?:Passed|Failed)!\s+- Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+)"), every=True)),
    ("dotnet", "Test summary:", named(_re(
        r"^[ \t]*Test summary: total: (?P<total>\d+), failed: (?P<failed>\d+), succeeded: \d+, skipped: (?P<skipped>\d+)"))),
    ("dotnet", "Total tests:", named(_re(
        r"^Total tests: (?P<total>\d+)(?:\s+Passed: \d+)?(?:\s+Failed: (?P<failed>\d+))?(?:\s+Skipped: (?P<skipped>\d+))?"))),
    ("gradle", "completed", named(_re(
        r"^(?P<total>\d+) tests? completed(?:, (?P<failed>\d+) failed)?(?:, (?P<skipped>\d+) skipped)?"))),
    ("gradle", "BUILD ", _gradle),
    ("node", " fail ", _node),
    ("rspec", "example", named(_re(
        r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?"
        r"(?:, (?P<skipped>\d+) pending)?(?:, (?P<errors>\d+) errors? occurred)?"))),
    ("minitest", "assertions,", named(_re(
        r"^(?P<total>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors"
        r"(?:, (?P<skipped>\d+) skips)?"))),
    ("specs", "specs, ", named(_re(rf"^(?P<total>\d+) specs?, (?P<failed>\d+) failures?{_SKIPPED}"))),
    ("exunit", "failure", named(_re(
        rf"^(?:\d+ (?:doctests?|propert(?:y|ies)), )*(?P<total>\d+) tests?, (?P<failed>\d+) failures?{_SKIPPED}"))),
    ("phpunit", "OK (", named(_re(r"^OK \((?P<passed>\d+) tests?, \d+ assertions?\)"))),
    ("phpunit", "Assertions:", named(_re(
        r"^Tests: (?P<total>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?"
        r"(?:, \w+: \d+)*?(?:, Skipped: (?P<skipped>\d+))?"))),
    ("phpunit", "No tests executed", nothing_ran(_re(r"^No tests executed!"))),
    ("gtest", "[  ", _gtest),
    ("catch2", "test cases:", named(_re(
        r"^(?:\[doctest\] )?test cases:\s+(?P<total>\d+)(?: \|\s+\d+ passed)?"
        r"(?: \|\s+(?P<failed>\d+) failed)?(?: \|\s+(?P<skipped>\d+) skipped)?"))),
    ("catch2", "All tests passed (", named(_re(r"^All tests passed \(\d+ assertions? in (?P<passed>\d+) test cases?\)"))),
    ("bun", " fail", named(_re(r"^[ \t]*(?P<passed>\d+) pass\n(?:\s*\d+ skip\n)?(?:\s*\d+ todo\n)?\s*(?P<failed>\d+) fail$"))),
    ("deno", " passed", named(_re(r"^(?:ok|FAILED) \| (?P<passed>\d+) passed.*?\| (?P<failed>\d+) failed"))),
    ("swift", "Executed ", named(_re(r"^[ \t]*Executed (?P<total>\d+) tests?, with (?P<failed>\d+) failures?"))),
    ("swift", "Test run with ", named(_re(
        r"Test run with (?P<total>\d+) tests? (?:in \d+ suites? )?(?:passed|failed after .* with (?P<failed>\d+) issues?)"))),
    ("scalatest", "Tests: succeeded", named(_re(r"Tests: succeeded (?P<passed>\d+), failed (?P<failed>\d+)"))),
    ("sbt", "Total ", named(_re(r"(?:Passed|Failed): Total (?P<total>\d+), Failed (?P<failed>\d+), Errors (?P<errors>\d+)"))),
    ("karma", "Executed ", named(_re(
        r"Executed \d+ of (?P<total>\d+)(?: \((?P<failed>\d+) FAILED\))?(?: \(skipped (?P<skipped>\d+)\))?"))),
    ("bazel", "Executed ", _bazel),
    ("behave", "scenario", named(_re(r"^(?P<passed>\d+) scenarios? passed, (?P<failed>\d+) failed"))),
    ("busted", "successes", named(_re(r"^(?P<passed>\d+) success(?:es)? / (?P<failed>\d+) failures? / (?P<errors>\d+) errors?"))),
    ("gotestsum", "DONE ", named(_re(
        r"^DONE (?:\d+ runs, )?(?P<total>\d+) tests?(?:, (?P<skipped>\d+) skipped)?(?:, (?P<failed>\d+) failures?)?"
        r"(?:, (?P<errors>\d+) errors?)? in "))),
    ("ava", "test", words_by_line(_re(r"^[ \t]+(?P<n>\d+) tests? (?P<word>passed|failed)$"), "passed", "failed")),
    ("trial", "=", _trial),
    ("prove", "Files=", _prove),
    ("go", "\"Action\"", _go_json),
    ("go", "\t", _go),
    ("go", "--- ", _go),
    ("playwright", "passed", _PLAYWRIGHT),
    ("playwright", "failed", _PLAYWRIGHT),
    ("zig", "tests passed", named(_re(r"^All (?P<passed>\d+) tests passed\.$"))),
    ("tap", "ok ", _tap),
    ("pytest", "%]", _pytest_dots),
    ("ad_hoc", "ests", _ad_hoc),
    ("ad_hoc", "est", _ad_hoc),
    ("none", "No test", nothing_ran(_NOTHING)),
    ("none", "no test", nothing_ran(_NOTHING)),
)  # fmt: skip
"""Runner, a word its summary holds, and how to read it; the first that reads anything counts."""
