"""Regular expressions of operators: which are refused for the texts that would keep them busy."""

import pytest

from turnout.signals import regex


@pytest.mark.parametrize(
    "pattern",
    [
        r"^quota of .* exhausted",
        r"\s+error",
        r"error.*failed",
        r"(\w+\s+)*error",
        r"(\d+, )+x",
        r"^(?P<passed>\d+) good, (?P<failed>\d+) bad$",
        r"(?i)error:?\s+(\S+)\s+not found",
        r"^\s*at .+\(.+:\d+\)$",
        r'"error"\s*:\s*"[^"]*"',
        r"(?>a+)b|(?:x++)+y|(?<=a)b(?!c)(z)\1?",
        "plain words",
    ],
)
def test_what_people_write_is_taken(pattern: str) -> None:
    assert regex("match", pattern).pattern == pattern


@pytest.mark.parametrize(
    ("pattern", "busy"),
    [
        (r"(a+)+$", "a"),
        (r"ERROR: (\w+\s?)+$", "a"),
        (r".*a.*b", "a"),
        (r".*quota.*exceeded", "quota"),
        (r"(\s*;\s*)*x", ";"),
        (r"(x+x+)+y", "x"),
        (r"(a|aa)+$", "a"),
        (r"^(.*,)*z", ","),
        (r"level=(?:[a-z]+|\w)+!", "a"),
        (r"\[[0-9]+\] (([^x])+.)+[A-Z]([a-z])+$", "a"),
        (r"(?i)FAILED (?:[^\n]|\S+)*: done", "a"),
    ],
)
def test_what_a_text_could_keep_busy_is_refused_and_the_text_named(pattern: str, busy: str) -> None:
    with pytest.raises(ValueError, match="match: takes too long on a text such as") as caught:
        regex("match", pattern)
    assert busy in str(caught.value)


def test_what_is_no_regular_expression_is_named() -> None:
    with pytest.raises(ValueError, match="match: not a regular expression"):
        regex("match", "(")
