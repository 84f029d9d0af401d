"""The whole comparison: equal to an independent computation on the recorded outcomes."""

from pathlib import Path

import pytest
from tests.outcomes import BIG, ROUTER, SMALL, row, written
from tests.plain_evaluation import plain
from tests.recorded import needs_recordings, shared

from turnout.evaluate.arms import Arm, Wanted
from turnout.evaluate.evaluation import Asked, Evaluation, evaluate
from turnout.evaluate.outcomes import read
from turnout.pricing import Prices

SWE_AGENT = "SWE-agent (250-turn limit, Scale AI SWE-bench Pro runs Oct-2025)"
SETS = {
    "swebench-pro": (
        "outcomes_swebench_pro_sweagent",
        ("anthropic/claude-sonnet-4.5", SWE_AGENT),
        ("openai/gpt-5", SWE_AGENT),
    ),
    "terminal-bench": (
        "outcomes_terminal_bench_core_0_1_1",
        ("claude-4.1-opus", "orchestrator"),
        ("qwen-3-coder-480B", "orchestrator"),
    ),
    "bfcl": ("router_bfcl_2024_08_11", ("gpt-4-turbo-2024-04-09-FC", None), ("gpt-4o-mini-2024-07-18-FC", None)),
}


def compared(path: Path, capable: str, efficient: str, routed: str = "", **asked: object) -> Evaluation:
    wanted = [Wanted(name) for name in (capable, efficient, routed) if name]
    found = read(path, wanted)
    arms = [one.among(found.arms) for one in wanted]
    return evaluate(found, Asked(*arms, **asked), Prices.load().rates)[0]  # type: ignore[arg-type]


@needs_recordings
@pytest.mark.parametrize("name", SETS)
def test_the_figures_are_those_of_an_independent_computation(name: str) -> None:
    file, capable, efficient = SETS[name]
    folder = shared()
    assert folder is not None
    path = folder / "data" / "traces" / f"{file}.jsonl.gz"
    found, expected = compared(path, capable[0], efficient[0]), plain(path, capable, efficient)
    assert (found.n, found.n_tasks, found.n_cost) == (expected["n"], expected["tasks"], expected["n_cost"])
    assert found.quadrants == expected["quadrants"]
    for arm in ("capable", "efficient", "oracle"):
        ours, theirs = getattr(found, arm), expected[arm]
        cost = ours.cost_usd
        assert ours.success.value == pytest.approx(theirs["success"])
        assert cost.total.value == pytest.approx(theirs["total"])
        assert cost.value == pytest.approx(theirs["mean"])
        assert cost.per_completed.value == pytest.approx(theirs["per_completed"])
        for spread in ("p50", "p90", "p95", "max"):
            assert getattr(cost.tails, spread) == pytest.approx(theirs[spread])
        # Two bootstraps with different dice agree to within a tenth of the interval's width.
        for ours_at, theirs_at in (((ours.success.low, ours.success.high), theirs["interval"]),
                                   ((cost.low, cost.high), theirs["mean_interval"])):  # fmt: skip
            width = theirs_at[1] - theirs_at[0]
            assert ours_at == pytest.approx(theirs_at, abs=width / 10)
    assert found.cascade.cost_usd.total.value == pytest.approx(expected["cascade_total"])
    assert found.tests.mcnemar.p == pytest.approx(expected["mcnemar"])
    for arm in ("capable", "efficient"):
        if expected["control"][arm] is None:
            assert found.control is None
        else:
            assert getattr(found.control, arm).LOSS.value == pytest.approx(expected["control"][arm])


@needs_recordings
def test_a_model_against_itself_loses_as_much_as_published() -> None:
    # 6 to 10 % in each of LOSS and RESCUE on five trials of terminal-bench.
    file, capable, efficient = SETS["terminal-bench"]
    folder = shared()
    assert folder is not None
    found = compared(folder / "data" / "traces" / f"{file}.jsonl.gz", capable[0], efficient[0], resamples=200)
    assert found.control is not None
    assert found.control.capable is not None
    assert 0.06 <= (found.control.capable.LOSS.value or 0) <= 0.105


ROWS = [
    one
    for i in range(40)
    for one in (
        row(str(i), "big", i < 30, 10.0, category="odd" if i % 2 else "even", steps=30),
        row(str(i), "small", i < 20 or i == 35, 1.0, steps=10 + i),
        row(str(i), "router", i < 28, 4.0, judge_cost_usd=0.4, efficient_share=0.6),
    )
]


def test_a_routed_run_is_placed_between_its_models_and_the_oracle(tmp_path: Path) -> None:
    found = compared(written(tmp_path / "o.jsonl", ROWS), "big", "small", "router", resamples=500)
    assert found.arms == {"capable": BIG, "efficient": SMALL, "routed": ROUTER}
    assert found.routed is not None
    assert found.gap_closed is not None
    # 30 by the better model, 28 routed, 31 by the oracle: two back on a way of one.
    assert found.gap_closed.success.value == pytest.approx((28 - 30) / (31 - 30))
    mix = 0.6 * 21 + 0.4 * 30
    assert found.gap_closed.success_from_mix.value == pytest.approx((28 - mix) / (31 - mix))
    oracle_cost = (20 + 1 + 9) * 1.0 + 10 * 10.0
    assert found.gap_closed.cost.value == pytest.approx((400 - 160) / (400 - oracle_cost))
    assert found.judge_share.value == pytest.approx(0.1)
    assert found.frontier is not None
    assert {"routed", "capable", "efficient", "oracle", "random_mix"} <= {one.name for one in found.frontier.points}
    assert found.spent_usd["oracle"] == {"SAFE": 20.0, "LOSS": 100.0, "RESCUE": 1.0, "HARD": 9.0}


def test_categories_add_up_and_have_their_own_weights(tmp_path: Path) -> None:
    found = compared(written(tmp_path / "o.jsonl", ROWS), "big", "small", weights={"odd": 3.0}, resamples=200)
    assert [(one.name, one.n, one.loss_weight) for one in found.categories] == [("even", 20, 1.0), ("odd", 20, 3.0)]
    for name, whole in found.quadrants.items():
        assert sum(one.quadrants[name] for one in found.categories) == whole
    # Ten lost, five of them odd and weighing three; one gained.
    assert found.efficient.risk.value == pytest.approx((5 + 5 * 3 - 1) / 40)


def test_restarts_are_swept_where_steps_are_recorded(tmp_path: Path) -> None:
    found = compared(written(tmp_path / "o.jsonl", ROWS), "big", "small", resamples=200)
    assert found.restarts.arms
    # Weak runs have 10 to 49 steps. Given up after 22, those of tasks 0 to 12 stand, and the others are paid in part and again.
    step = min(found.restarts.arms, key=lambda step: abs(step - 22))
    one = found.restarts.arms[step]
    stand = [i for i in range(40) if 10 + i <= step]
    total = len(stand) + sum(step / (10 + i) + 10.0 for i in range(40) if i not in stand)
    assert one.cost_usd.total.value == pytest.approx(total)
    assert one.success.value == 30 / 40


def test_what_is_left_out_is_counted_and_noted(tmp_path: Path) -> None:
    rows = [*ROWS, "{", row("x", "big", True, 1.0), row("0", "big", True, 1.0), row("y", "big", None)]
    rows += [row("z", "big", True, None), row("z", "small", True, 1.0)]
    found = compared(written(tmp_path / "o.jsonl", rows), "big", "small", resamples=200)
    assert (found.counted.damaged, found.counted.unknown_success) == (1, 1)
    assert found.counted.damaged_lines[0][0] == 121
    assert found.counted.left_over == {"big": 2, "small": 0}
    assert found.counted.unknown_cost == {"capable": 1, "efficient": 0}
    assert any("40 of 41 units" in note for note in found.notes)
    # Task 0 was tried twice by one model: a control, but of one task.
    assert found.control is not None
    assert any("control of the capable model rests on 1 of 41 tasks" in note for note in found.notes)
    assert any("cold caches" in note for note in found.notes)


def test_logged_propensities_bring_off_policy_estimates(tmp_path: Path) -> None:
    rows = [row(str(i), "big" if i % 2 else "small", i % 3 > 0, 1.0, propensity=0.5) for i in range(60)]
    rows += [row("p", "big", True, 1.0, propensity=0.5), row("p", "small", True, 1.0, propensity=0.5)]
    found = compared(written(tmp_path / "o.jsonl", rows), "big", "small", resamples=200)
    assert found.off_policy is not None
    assert [one.policy for one in found.off_policy] == ["capable", "efficient"]
    assert all(one.success is not None for one in found.off_policy)


def test_the_same_call_gives_the_same_figures(tmp_path: Path) -> None:
    file = written(tmp_path / "o.jsonl", ROWS)
    assert compared(file, "big", "small", resamples=200) == compared(file, "big", "small", resamples=200)


def test_arms_without_a_task_in_common_make_an_empty_comparison(tmp_path: Path) -> None:
    found = compared(written(tmp_path / "o.jsonl", [row("a", "big", True), row("b", "small", True)]), "big", "small")
    assert found.n == 0
    assert found.verdict.startswith("Not enough data")
    assert found.capable.success.value is None
    assert found.arms["capable"] == Arm("big")
