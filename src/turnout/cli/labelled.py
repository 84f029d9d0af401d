"""`turnout observe --labels`: how far observations agree with what people say of the same results."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnout.cli import output
from turnout.cli.exits import CommandError

if TYPE_CHECKING:
    from turnout.evaluate.agreement import Agreement
    from turnout.evaluate.labels import Labelled, LabelledResult, LabelledWindow
    from turnout.evaluate.scores import Score
    from turnout.signals import Vocabulary

INTERVALS = "95 % intervals are Wilson score intervals, for F1 through the share right / (right + false + missed)."
NONE_LEFT = "no label and observation differ"
_SHOWN = 300
"""Characters of a call's arguments that a miss shows."""


def report(
    file: Path, folder: Path | None, vocabulary: "Vocabulary", by: str, where: str, errors: bool, as_json: bool
) -> None:
    """Print the agreement of a label file with what is observed, and with `errors` every miss."""
    from turnout.evaluate.labels import labelled

    if folder is not None and not folder.is_dir():
        raise CommandError(f"--data {folder}: no such folder")
    field, is_equal, value = where.partition("=")
    if where and not is_equal:
        raise CommandError(f"--where {where}: expected FIELD=VALUE")
    read = labelled(file, folder, vocabulary=vocabulary)
    if where:
        read = _part(read, field, value)
    if not read.results and not read.windows:
        raise CommandError(f"{file}: holds no labels" + (f" with {where}" if where else ""))
    groups = {name: _agreement(part) for name, part in _groups(read, by)}
    misses = [*_missed_results(read.results), *_missed_windows(read.windows)] if errors else []
    if as_json:
        shown = {name: output.whole(found) for name, found in groups.items()}
        whole: dict[str, Any] = {"labels": str(file), "intervals": INTERVALS}
        whole |= {"by": by, "groups": shown} if by else next(iter(shown.values()))
        output.emit(whole | ({"errors": misses} if errors else {}))
        return
    for name, found in groups.items():
        print_agreement(found, f"{file}, {by} {name}" if by else str(file))
    output.emit_text(INTERVALS)
    for miss in misses:
        output.emit_text("\n" + _shown(miss))
    if errors and not misses:
        output.emit_text(NONE_LEFT)


def _groups(read: "Labelled", by: str) -> "Iterator[tuple[str, Labelled]]":
    """The labels, apart by the value of a field of their rows."""
    if not by:
        yield "", read
        return
    rows = [*(one.row for one in read.results), *(one.row for one in read.windows)]
    for value in sorted({str(row.get(by, "")) for row in rows}):
        yield value or "(none)", _part(read, by, value)


def _part(read: "Labelled", field: str, value: str) -> "Labelled":
    """The labels whose rows have that value."""
    from turnout.evaluate.labels import Labelled

    return Labelled(
        tuple(one for one in read.results if str(one.row.get(field, "")) == value),
        tuple(one for one in read.windows if str(one.row.get(field, "")) == value),
    )


def _agreement(read: "Labelled") -> "Agreement":
    from turnout.evaluate.agreement import agreement, said_by_turnout, window_said_by_turnout

    return agreement(
        [(one.label, said_by_turnout(one)) for one in read.results],
        [(one.label, window_said_by_turnout(one)) for one in read.windows],
    )


def print_agreement(found: "Agreement", title: str) -> None:
    """The figures as tables for people."""
    counted = [output.count(n, noun) for n, noun in ((found.results, "result"), (found.window_count, "window")) if n]
    output.emit_text(f"{title}: {', '.join(counted)}\n")
    scores = {name: one for name, one in found.scores.items() if one.labelled or one.called}
    scores |= {f"window {name}": one for name, one in found.windows.items() if one.labelled or one.called}
    _print_scores(scores)
    if found.kinds.of:
        output.emit_text(f"tool kind: {found.kinds.hits} of {found.kinds.of} agree, {found.kinds}\n")
    if any(any(row.values()) for row in found.confusion.values()):
        table = output.table("labelled \\ observed", *found.confusion, "")
        for truth, row in found.confusion.items():
            table.row(truth, *(str(row[said]) if row[said] else "." for said in found.confusion), "")
        table.print()


def _print_scores(scores: "dict[str, Score]") -> None:
    table = output.table("", "precision", "recall", "F1", "labelled", "observed", "right")
    for name, one in scores.items():
        counts = (str(one.labelled), str(one.called), str(one.right))
        table.row(name, str(one.precision), str(one.recall), str(one.f1), *counts)
    table.print()


def _missed_results(results: "Sequence[LabelledResult]") -> Iterator[dict[str, Any]]:
    from turnout.evaluate.agreement import differences, said_by_turnout

    for one in results:
        said = said_by_turnout(one)
        differs = differences(one.label, said)
        if differs:
            seen = one.seen
            yield {
                "at": one.place,
                "id": str(one.row.get("id", "")),
                "expected": {name: getattr(one.label, name) for name in differs},
                "observed": {name: getattr(said, name) for name in differs},
                "tool": seen.tool,
                "call": one.call,
                "status": seen.status,
                "evidence": seen.evidence,
                "error_kind": seen.error_kind,
                "evidence_text": seen.evidence_text,
                "note": one.label.note,
            }


def _missed_windows(windows: "Sequence[LabelledWindow]") -> Iterator[dict[str, Any]]:
    from turnout.evaluate.agreement import window_said_by_turnout

    for one in windows:
        said = window_said_by_turnout(one)
        labels = {name: getattr(one.label, name) for name in ("repeated", "spinning")}
        expected = {name: value for name, value in labels.items() if value not in (None, getattr(said, name))}
        if expected:
            yield {
                "at": one.place,
                "id": str(one.row.get("id", "")),
                "expected": expected,
                "observed": {name: getattr(said, name) for name in expected},
                "results": [
                    {"tool": o.tool, "target": o.target, "status": o.status, "error_kind": o.error_kind}
                    for o in one.seen
                ],
                "note": one.label.note,
            }


def _shown(miss: dict[str, Any]) -> str:
    """A miss in a few lines."""
    differ = ", ".join(
        f"{name} {_value(truth)}, observed {_value(miss['observed'][name])}" for name, truth in miss["expected"].items()
    )
    lines = [f"{miss['id']} {miss['at']}".strip(), f"labelled  {differ}"]
    if "results" in miss:
        lines += [
            f"          {r['tool']} {r['target']}: {r['status']} {r['error_kind']}".rstrip() for r in miss["results"]
        ]
    else:
        by = f"{miss['error_kind']} " if miss["error_kind"] else ""
        lines.append(f"because   {miss['status']} by {miss['evidence']} {by}{miss['evidence_text']!r}")
        lines.append(f"call      {miss['tool']} {_cut(miss['call'])}")
    return "\n  ".join([*lines, *([f"note      {miss['note']}"] if miss["note"] else [])])


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
