"""A review that is killed and goes on, as the benchmark does it, in a smaller size."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import peers_review  # noqa: E402


def test_a_killed_review_ends_as_one_left_alone_and_pays_for_no_call_twice(tmp_path: Path) -> None:
    found = peers_review.rehearse(tmp_path, models=4, questions=25, kills=2, delay_s=0.004)
    assert found.same_scores
    assert found.same_spending
    assert found.paid_alone > 4 * 25 * 4
    # What had come back and was written is never asked for again: only calls in flight at a kill are paid once more.
    assert found.paid_killed == found.paid_alone + sum(found.lost)
    assert len(found.lost) == 2
    assert all(0 <= lost <= peers_review.AT_ONCE for lost in found.lost)
    assert found.most_at_once <= peers_review.AT_ONCE
