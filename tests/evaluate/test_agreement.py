"""The figures over labels, worked by hand, and what counts as a difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.evaluate.agreement import (
    CLASSES,
    MATTERING,
    MATTERS,
    Said,
    SaidOfWindow,
    agreement,
    differences,
)
from turnout.evaluate.labels import ResultLabel, WindowLabel
from turnout.signals import TOOL_KINDS

RESULTS = [
    (ResultLabel("capability", "test", False), Said("capability", False, "test")),
    (ResultLabel("capability", "test", False), Said("none", True, "test")),
    (ResultLabel("critical", "execute", False), Said("capability", False, "execute")),
    (ResultLabel("none", "read", False), Said("none", False, "search")),
    (ResultLabel("none", "test", True), Said("none", True, "test")),
    (ResultLabel("informational", "search", False), Said("capability", False, "search")),
]


def test_the_figures_are_those_counted_by_hand() -> None:
    found = agreement(RESULTS)
    matters = found.scores[MATTERING]
    assert (matters.labelled, matters.called, matters.right) == (3, 3, 2)
    assert matters.precision.value == pytest.approx(2 / 3)
    critical = found.scores["critical"]
    assert (critical.labelled, critical.called, critical.right) == (1, 0, 0)
    passed = found.scores["tests_passed"]
    assert (passed.labelled, passed.called, passed.right) == (1, 2, 1)
    assert (found.kinds.hits, found.kinds.of) == (5, 6)
    assert found.kind_confusion == {"read": {"search": 1}}
    assert found.confusion["capability"] == {"none": 1, "informational": 0, "capability": 1, "critical": 0}
    assert found.confusion["critical"]["capability"] == 1


def test_a_label_counts_only_for_what_it_labels() -> None:
    found = agreement([(ResultLabel(tests_passed=True), Said("none", True, "test"))])
    assert found.results == 1
    assert found.kinds.of == 0
    assert found.scores["none"].called == 0
    assert found.scores["tests_passed"].f1.value == 1.0
    assert differences(ResultLabel(tests_passed=False), Said("critical", True, "test")) == ("tests_passed",)


def test_who_tells_no_kinds_apart_has_no_kind_accuracy() -> None:
    assert agreement([(ResultLabel("none", "read"), Said("none", False))]).kinds.of == 0
    assert differences(ResultLabel("none", "read"), Said("none", False)) == ()


def test_windows_are_scored_by_question() -> None:
    found = agreement([], [
        (WindowLabel(True, False), SaidOfWindow(True, True)),
        (WindowLabel(None, True), SaidOfWindow(True, True)),
        (WindowLabel(True, None), SaidOfWindow(False, True)),
    ])  # fmt: skip
    assert found.window_count == 3
    repeated, spinning = found.windows["repeated"], found.windows["spinning"]
    assert (repeated.labelled, repeated.called, repeated.right) == (2, 1, 1)
    assert (spinning.labelled, spinning.called, spinning.right) == (1, 2, 1)


labels = st.builds(ResultLabel, st.sampled_from(CLASSES), st.sampled_from(TOOL_KINDS), st.booleans())
said = st.builds(Said, st.sampled_from(CLASSES), st.booleans(), st.sampled_from(TOOL_KINDS))


@given(st.lists(st.tuples(labels, said)))
def test_the_confusion_holds_every_result_and_the_scores_its_sums(pairs: list[tuple[ResultLabel, Said]]) -> None:
    found = agreement(pairs)
    assert sum(sum(row.values()) for row in found.confusion.values()) == len(pairs)
    for name in CLASSES:
        one = found.scores[name]
        assert one.labelled == sum(found.confusion[name].values())
        assert one.called == sum(row[name] for row in found.confusion.values())
        assert one.right == found.confusion[name][name]
    within = sum(found.confusion[truth][name] for truth in MATTERS for name in MATTERS)
    assert found.scores[MATTERING].right == within


@given(st.lists(st.tuples(labels, said)))
def test_who_says_what_is_labelled_differs_nowhere(pairs: list[tuple[ResultLabel, Said]]) -> None:
    agreeing = [(x, Said(x.error_class or "none", bool(x.tests_passed), x.tool_kind)) for x, _ in pairs]
    assert all(differences(x, s) == () for x, s in agreeing)
    for one in agreement(agreeing).scores.values():
        assert one.right == one.labelled == one.called
    for x, s in pairs:
        assert ("error_class" in differences(x, s)) == (x.error_class != s.error_class)
