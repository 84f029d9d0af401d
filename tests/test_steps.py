"""Run: one decision procedure, driven step by step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.steps import Run


class Decision:
    """Finished work: its iterator asks nothing and returns itself."""

    def __iter__(self):
        return self
        yield


def asking(batches):
    got = []
    for batch in batches:
        got.append((yield batch))
    return got


def test_finished_work_is_done_at_once():
    decision = Decision()
    run = Run(decision)
    assert run.done
    assert run.pending == ()
    assert run.result is decision
    assert run.log == []


@given(st.lists(st.lists(st.integers(), max_size=3).map(tuple), max_size=6))
def test_every_outcome_reaches_the_procedure_in_order_and_the_log_keeps_all(batches):
    run = Run(asking(batches))
    expected = []
    while not run.done:
        calls = run.pending
        outcomes = tuple(call * 2 for call in calls)
        expected.append((calls, outcomes))
        run.feed(iter(outcomes))
    assert [calls for calls, _ in expected] == batches
    assert run.result == [outcomes for _, outcomes in expected]
    assert run.log == expected
    assert run.pending == ()


def test_one_procedure_delegates_to_another():
    def outer():
        inner = yield from asking([("a",)])
        last = yield ("b",)
        return inner, last

    run = Run(outer())
    run.feed(["x"])
    assert run.pending == ("b",)
    run.feed(["y"])
    assert run.result == ([("x",)], ("y",))


def test_the_result_is_not_there_before_the_end():
    run = Run(asking([("a",)]))
    with pytest.raises(RuntimeError, match="pending"):
        _ = run.result


@pytest.mark.parametrize("outcomes", [[], ["x", "y"]])
def test_a_wrong_number_of_outcomes_is_refused_and_changes_nothing(outcomes):
    run = Run(asking([("a",)]))
    with pytest.raises(ValueError, match="1 calls are pending"):
        run.feed(outcomes)
    assert run.log == []
    run.feed(["x"])
    assert run.result == [("x",)]


def test_a_finished_run_takes_nothing_more():
    run = Run(Decision())
    with pytest.raises(RuntimeError, match="done"):
        run.feed([])
    run.close()
    assert run.done


def test_closing_unwinds_the_procedure_once():
    unwound = []

    def steps():
        try:
            yield ("a",)
        finally:
            unwound.append(True)

    run = Run(steps())
    run.close()
    run.close()
    assert unwound == [True]
    assert run.pending == ()
    assert not run.done
    with pytest.raises(RuntimeError, match="closed"):
        run.feed([])
    with pytest.raises(RuntimeError, match="no result"):
        _ = run.result


def test_a_failure_propagates_and_ends_the_run():
    def steps():
        yield ("a",)
        raise LookupError("no such target")

    run = Run(steps())
    with pytest.raises(LookupError):
        run.feed(["x"])
    assert run.log == [(("a",), ("x",))]
    assert run.pending == ()
    with pytest.raises(RuntimeError, match="failed"):
        run.feed([])
    with pytest.raises(RuntimeError, match="no result"):
        _ = run.result


def test_a_failure_before_the_first_call_propagates_from_the_constructor():
    def steps():
        raise LookupError("no such target")
        yield

    with pytest.raises(LookupError):
        Run(steps())
