"""Summaries of test runners."""

import pytest

from turnout.signals.results.summaries import Summary, read_summary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("======= 3 failed, 5 passed, 1 skipped in 0.12s =======", Summary(8, 5, 3)),
        ("5 passed in 0.01s", Summary(5, 5, 0)),
        ("==== 1 failed, 2 errors in 3.20s (0:00:03) ====", Summary(3, 0, 3)),
        ("===== no tests ran in 0.02s =====", Summary(0, 0, 0)),
        ("...\nRan 3 tests in 0.001s\n\nOK", Summary(3, 3, 0)),
        ("Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)", Summary(3, 1, 2)),
        ("Ran 0 tests in 0.000s\n\nOK", Summary(0, 0, 0)),
        ("Ran 4 tests in 0.0s\n\nOK (skipped=1)", Summary(3, 3, 0)),
        ("Tests:       1 failed, 2 skipped, 4 passed, 7 total", Summary(5, 4, 1)),
        ("Tests:       4 passed, 4 total", Summary(4, 4, 0)),
        (" Test Files  11 passed (11)\n      Tests  30 passed (30)\n", Summary(30, 30, 0)),
        ("      Tests  1 failed | 29 passed (30)\n", Summary(30, 29, 1)),
        ("  12 passing (30ms)\n  2 failing\n", Summary(14, 12, 2)),
        ("  12 passing (30ms)\n", Summary(12, 12, 0)),
        ("# tests 3\n# pass 2\n# fail 1", Summary(3, 2, 1)),
        ("ok  \texample.com/a\t0.01s\nok  \texample.com/b\t0.01s", Summary(2, 2, 0)),
        ("--- FAIL: TestX (0.00s)\nFAIL\nFAIL\texample.com/a\t0.01s", Summary(1, None, 1)),
        (
            "test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: FAILED. 1 passed; 2 failed; 0 ignored",
            Summary(6, 4, 2),
        ),
        ("[INFO] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1", Summary(4, 3, 1)),
        ("90% tests passed, 1 tests failed out of 10", Summary(10, 9, 1)),
        ("Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12", Summary(12, 12, 0)),
        ("5 tests completed, 2 failed", Summary(5, 3, 2)),
        ("7 examples, 1 failure", Summary(7, 6, 1)),
        ("3 runs, 5 assertions, 0 failures, 1 errors, 0 skips", Summary(3, 2, 1)),
        ("OK (5 tests, 7 assertions)", Summary(5, 5, 0)),
        ("[  PASSED  ] 3 tests.\n[  FAILED  ] 1 test, listed below:", Summary(4, 3, 1)),
        (" 5 pass\n 1 fail\n", Summary(6, 5, 1)),
        ("All tests passed!", Summary(1, None, 0)),
    ],
)
def test_summary(text: str, expected: Summary) -> None:
    assert read_summary(f"some output\n{text}\n") == expected


@pytest.mark.parametrize(
    "text", ["", "the tests passed", "I think all tests passed, but", "5 passed the bar", "Error: 3 failed"]
)
def test_prose_is_no_summary(text: str) -> None:
    assert read_summary(text) is None
