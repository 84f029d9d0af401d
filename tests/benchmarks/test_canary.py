"""The simulation of canaries: the same seed is the same run, and a difference is found by the metric it is in."""

from functools import partial

from benchmarks.canary import INCUMBENT, together, uncached


def test_a_seeded_run_ends_where_it_ended_before_and_by_the_metric_that_differs() -> None:
    run = partial(together, incumbent=INCUMBENT, share=0.2, most=1000, alpha=0.05)
    first = run(1, candidate=uncached)
    assert first is not None
    assert first.metric == "cache"
    assert first == run(1, candidate=uncached)
    assert run(1, candidate=INCUMBENT) is None
