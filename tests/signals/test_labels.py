"""Observations agree with hand labels of recorded tool results at least as well as stated."""

from pathlib import Path

from tests.recorded import needs_recordings, shared

from turnout.evaluate.agreement import agreement, said_by_turnout
from turnout.evaluate.labels import labelled

LABELS = Path(__file__).resolve().parents[2] / "benchmarks" / "labels" / "results.jsonl"
FLOORS = {
    # question: precision, recall
    "capability or critical": (0.97, 1.0),
    "critical": (1.0, 1.0),
    "informational": (1.0, 0.80),
    "tests_passed": (1.0, 1.0),
}


@needs_recordings
def test_agreement_with_hand_labels() -> None:
    folder = shared()
    assert folder is not None
    read = labelled(folder / "data" / "traces" / "labels_tool_results.jsonl")
    assert len(read.results) >= 80
    found = agreement([(one.label, said_by_turnout(one)) for one in read.results])
    for question, (precision, recall) in FLOORS.items():
        assert (found.scores[question].precision.value or 0) >= precision, question
        assert (found.scores[question].recall.value or 0) >= recall, question
    assert (found.kinds.value or 0) >= 0.98


WANTED = {
    # question: precision, recall
    "capability or critical": (0.93, 0.88),
    "critical": (0.8, 0.8),
    "tests_passed": (0.95, 0.9),
}


@needs_recordings
def test_agreement_with_labels_of_our_own() -> None:
    folder = shared()
    assert folder is not None
    read = labelled(LABELS, folder / "data" / "traces")
    assert len(read.results) >= 300
    found = agreement([(one.label, said_by_turnout(one)) for one in read.results])
    for question, (precision, recall) in WANTED.items():
        assert (found.scores[question].precision.value or 0) >= precision, question
        assert (found.scores[question].recall.value or 0) >= recall, question
    assert (found.kinds.value or 0) >= 0.95
