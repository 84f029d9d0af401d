"""Observations agree with hand labels of recorded tool results at least as well as stated."""

import importlib.util
from pathlib import Path
from types import ModuleType

from tests.recorded import needs_recordings, shared

ROOT = Path(__file__).resolve().parents[2]


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_signals", ROOT / "benchmarks" / "signals.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FLOORS = {
    # question: precision, recall
    "capability or critical": (0.97, 1.0),
    "critical": (1.0, 1.0),
    "informational": (1.0, 0.80),
    "tests_passed": (1.0, 1.0),
}


@needs_recordings
def test_agreement_with_hand_labels() -> None:
    module = benchmark()
    folder = shared()
    assert folder is not None
    found = list(module.labelled(folder / "data"))
    assert len(found) >= 80
    for question, (precision, recall, _) in module.table(found).items():
        floor = FLOORS[question]
        assert precision >= floor[0], question
        assert recall >= floor[1], question
    assert sum(r["tool_kind"] == o.kind for r, o in found) >= 0.98 * len(found)
