"""How far what is said of tool results agrees with labels: the figures, the confusion, the misses. Pure.

What is said may come from Turnout or from anything else; it is compared in the same way.
"""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from turnout.evaluate.labels import LabelledResult, LabelledWindow, ResultLabel, WindowLabel
from turnout.evaluate.scores import Score, confusion, score
from turnout.signals import ErrorClass, ToolKind, window_signals
from turnout.statistics.shares import Share, share

CLASSES: tuple[ErrorClass, ...] = ("none", "informational", "capability", "critical")
MATTERS: frozenset[ErrorClass] = frozenset(("capability", "critical"))
"""Failures that call for a capable model."""

MATTERING = "capability or critical"
TESTS_PASSED = "tests_passed"


class Said(Struct, frozen=True):
    """What is said of one result. `tool_kind`: None where kinds are not told apart."""

    error_class: ErrorClass
    tests_passed: bool
    tool_kind: ToolKind | None = None


class SaidOfWindow(Struct, frozen=True):
    """What is said of one window of calls."""

    repeated: bool
    spinning: bool


class Agreement(Struct, frozen=True):
    """`scores` by question: failures that matter, each error class, tests passed. `confusion`: labelled class, then said class.

    `kinds`: share of tool kinds that agree, `kind_confusion` those that do not. `windows` by `repeated`, `spinning`.
    """

    results: int
    scores: dict[str, Score]
    confusion: dict[str, dict[str, int]]
    kinds: Share
    kind_confusion: dict[str, dict[str, int]]
    window_count: int
    windows: dict[str, Score]


Results: TypeAlias = Sequence[tuple[ResultLabel, Said]]
Windows: TypeAlias = Sequence[tuple[WindowLabel, SaidOfWindow]]


def agreement(results: Results, windows: Windows = ()) -> Agreement:
    """The figures. A label counts only for what it labels."""
    classes = [(label.error_class, said.error_class) for label, said in results if label.error_class is not None]
    kinds = [
        (x.tool_kind, said.tool_kind) for x, said in results if x.tool_kind is not None and said.tool_kind is not None
    ]
    scores = {MATTERING: score((truth in MATTERS, said in MATTERS) for truth, said in classes)}
    scores |= {name: score((truth == name, said == name) for truth, said in classes) for name in CLASSES[::-1]}
    scores[TESTS_PASSED] = score((x.tests_passed, s.tests_passed) for x, s in results if x.tests_passed is not None)
    return Agreement(
        results=len(results),
        scores=scores,
        confusion=_ordered(confusion(classes)),
        kinds=share(sum(truth == said for truth, said in kinds), len(kinds)),
        kind_confusion=confusion((str(truth), str(said)) for truth, said in kinds if truth != said),
        window_count=len(windows),
        windows={
            "repeated": score((x.repeated, s.repeated) for x, s in windows if x.repeated is not None),
            "spinning": score((x.spinning, s.spinning) for x, s in windows if x.spinning is not None),
        },
    )


def _ordered(counts: dict[ErrorClass, dict[ErrorClass, int]]) -> dict[str, dict[str, int]]:
    """Every class in both directions, in the order of `CLASSES`, zeros included."""
    return {truth: {said: counts.get(truth, {}).get(said, 0) for said in CLASSES} for truth in CLASSES}


def differences(label: ResultLabel, said: Said) -> tuple[str, ...]:
    """On which questions a label and what is said differ: `error_class`, `tool_kind`, `tests_passed`."""
    return tuple(
        name
        for name in ("error_class", "tool_kind", "tests_passed")
        if getattr(label, name) is not None
        and getattr(said, name) is not None
        and getattr(label, name) != getattr(said, name)
    )


def said_by_turnout(one: LabelledResult) -> Said:
    """What Turnout's observation says of a labelled result."""
    return Said(one.seen.error_class, one.seen.tests_passed is True, one.seen.kind)


def window_said_by_turnout(one: LabelledWindow) -> SaidOfWindow:
    """What Turnout's signals say of a labelled window."""
    seen = window_signals(one.seen, one.before)
    return SaidOfWindow(seen.repeated, seen.spinning)
