"""Fingerprints: what changes from run to run does not matter, what failed does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.signals.results.fingerprint import fingerprint, normalised, shown

LINES = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)) | st.sampled_from("0123456789abcdef:/.-_ \\"),
    max_size=300,
)


@given(LINES)
def test_a_normalised_line_stays_as_it_is(line: str) -> None:
    once = normalised(line)
    assert normalised(once) == once
    assert len(once) <= 240


@given(LINES, st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_do_not_matter(line: str, first: int, second: int) -> None:
    assert normalised(f"{line} at line {first}") == normalised(f"{line} at line {second}")


@given(LINES)
def test_a_fingerprint_shows_nothing_of_the_text(line: str) -> None:
    made = fingerprint("exception", line)
    assert made.startswith("exception:")
    assert len(made) == len("exception:") + 12


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.c:14:22: error: x", "a.c:3:1: error: x"),
        ("File /tmp/a1/b.py failed", "File /home/c/d.py failed"),
        ("at 2025-01-02T10:11:12Z it broke", "at 2026-11-12T20:31:52Z it broke"),
        ("object at 0x7f1a is gone", "object at 0xdeadbeef is gone"),
        ("commit a1b2c3d4e5 not found", "commit 0f9e8d7c6b not found"),
        ("took 1.5s", "took 20s"),
        ("request 6f9619ff-8b86-d011-b42d-00cf4fc964ff", "request aaaaaaaa-8b86-d011-b42d-00cf4fc964aa"),
        ("see https://a.example/x", "see https://b.example/y"),
    ],
)
def test_the_same_failure_looks_the_same(first: str, second: str) -> None:
    assert fingerprint("x", first) == fingerprint("x", second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("KeyError: 'name'", "KeyError: 'title'"),
        ("TypeError: f() takes no arguments", "TypeError: g() takes no arguments"),
        ("error[E0308]: mismatched types", "error[E0425]: cannot find value"),
    ],
)
def test_different_failures_differ(first: str, second: str) -> None:
    assert fingerprint("x", first) != fingerprint("x", second)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEF0123456789", min_size=20, max_size=40))
def test_evidence_shows_no_secret(secret: str) -> None:
    for line in (
        f"Authorization: Bearer {secret}",
        f"api_key={secret}",
        f"https://me:{secret}@example.com/x",
        f"sk-{secret}",
    ):
        assert secret not in shown(line)
