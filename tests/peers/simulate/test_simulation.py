"""Simulations: baselines, figures and intervals, the same results however they are run, and what the recordings show."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.peers.simulate.tables import MODELS, recorded, rows, written
from tests.recorded import needs_recordings, shared

from turnout.errors import ClientError
from turnout.peers.simulate.arms import Grid
from turnout.peers.simulate.figures import Figures
from turnout.peers.simulate.players import player
from turnout.peers.simulate.playing import CallPrices
from turnout.peers.simulate.recorded import Table, read
from turnout.peers.simulate.running import COLUMNS, Worker, jobs, run, totals
from turnout.peers.simulate.simulation import Simulation, Wanted, arms, simulate
from turnout.peers.simulate.splits import Split, halves

PRICES = {"large": 8.0, "middle": 3.0, "small": 1.0, "odd": 1.0}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return read(written(tmp_path_factory.mktemp("answers"), rows(samples=3)))


@pytest.fixture(scope="module")
def found(table: Table) -> Simulation:
    return simulate(table, Wanted(Grid(by_type=True), splits=4, resamples=200))


def test_halves_share_nothing_and_are_all() -> None:
    calibration, test = halves(11, 1)
    assert sorted(calibration + test) == list(range(11))
    assert halves(11, 1) == (calibration, test)
    assert halves(11, 2) != (calibration, test)


def test_nothing_of_the_test_half_is_known_before(table: Table) -> None:
    """Other answers in the test half, the same graph and the same choices."""
    split = Split(table, CallPrices((1.0,) * 4), 5)
    changed = list(table.questions)
    for at in split.test:
        changed[at] = msgspec.structs.replace(changed[at], values=(0.0,) * 4, scores=((9.0,) * 4,) * 4)
    other = Split(msgspec.structs.replace(table, questions=tuple(changed)), split.prices, 5)
    settings = arms(Grid(), 4, comparable=True, samples=False)["default"].settings
    assert other.relations(settings) == split.relations(settings)
    assert other.by_labels == split.by_labels


def test_labels_are_not_used_but_where_it_says_so(table: Table) -> None:
    blind = tuple(msgspec.structs.replace(q, values=(0.0,) * 4) for q in table.questions)
    settings = arms(Grid(), 4, comparable=True, samples=False)["default"].settings
    prices = CallPrices((1.0,) * 4)
    seen = Split(table, prices, 1).relations(settings)
    assert Split(msgspec.structs.replace(table, questions=blind), prices, 1).relations(settings) == seen


def test_baselines(table: Table) -> None:
    split = Split(table, CallPrices(tuple(PRICES[m] for m in MODELS)), 2)
    tried = arms(Grid(firsts=("best", "cheapest")), 4, comparable=True, samples=True)
    plays = {name: player(split, tried[name], optimistic=False) for name in tried}
    hopeful = player(split, tried["random_chain"], optimistic=True)
    for at in split.test:
        question = table.questions[at]
        values, marks = question.values, question.marks
        assert plays["best_single"](question).value == values[0]
        assert plays["best_single"](question).cost == 8.0
        assert plays["single first=cheapest"](question).value == values[2]  # as cheap as odd, and better scored
        all_of_them = plays["majority"](question)
        assert (all_of_them.generations, all_of_them.votes, all_of_them.cost) == (4, 0, 13.0)
        most = max(set(marks), key=marks.count)
        if marks.count(most) > 2:
            assert all_of_them.value == values[marks.index(most)]
        two = plays["majority of 2"](question)
        assert (two.value, two.cost) == (values[0], 11.0)  # of two that differ, the better scored one's
        walk, rosy = plays["random_chain"](question), hopeful(question)
        assert (walk.generations, walk.votes) == (4, 0)
        assert rosy.value >= max(walk.value, values[0])
        mixed = plays["self_mixture"](question)
        taken = [mark for mark, _ in question.samples[0]]
        assert (mixed.generations, mixed.cost) == (3, 24.0)
        most_often = max(taken, key=lambda mark: (taken.count(mark), -taken.index(mark)))
        assert mixed.value == dict(question.samples[0])[most_often]


def test_every_strategy_has_its_figures(found: Simulation) -> None:
    assert {"best_single", "majority", "majority_C", "self_mixture", "paper", "default", "non_targeted", "random_chain",
            "paper first=worst", "default graph=by_type"} <= set(found.strategies)  # fmt: skip
    assert not any("self-mixture" in note for note in found.notes)
    for name, one in found.strategies.items():
        assert 0 <= one.accuracy.low <= one.accuracy.value <= one.accuracy.high <= 1, name
        assert one.cost == pytest.approx(one.generations + 0.5 * one.votes), name
        if one.optimistic:
            assert one.optimistic.accuracy.value >= one.accuracy.value - 0.02, name
    assert found.strategies["majority"].generations == 4
    assert found.strategies["random_chain"].generations == 4
    assert found.strategies["default"].generations <= 4
    assert set(found.told) == {one.strategy for one in found.strategies.values()}


def test_a_name_carries_only_what_its_strategy_goes_by() -> None:
    grid = Grid(d1s=(25.0,), d2s=(75.0, 50.0), pickers=("weighted",), edge_scores=("judge_centered",))
    named = arms(grid, 4, comparable=True, samples=False)
    assert [name for name in named if name.startswith("random_chain")] == [
        "random_chain",
        "random_chain first=worst",
        "random_chain first=random",
    ]
    assert "default d2=50" in named


def test_intervals_are_paired_bootstraps_over_questions(table: Table) -> None:
    tried = arms(Grid(firsts=("best",)), 4, comparable=True, samples=False)
    prices, seeds = CallPrices((1.0,) * 4), (1, 2, 3)
    done = list(run(table, prices, jobs(tried, seeds)))
    figures = Figures(totals(table, tried, done), tried, 400, 1)
    # By hand: each split's rows, one after the other.
    rows_of = {name: np.concatenate([o.rows[:, 0] for _, out in done for o in out if o.arm == name]) for name in tried}
    tested = [at for seed in seeds for at in halves(120, seed)[1]]
    assert figures.accuracy("default").value == pytest.approx(rows_of["default"].mean())
    apart = figures.difference("default", "paper")
    assert apart.value == pytest.approx((rows_of["default"] - rows_of["paper"]).mean())
    per_question = [
        [d for d, at in zip(rows_of["default"] - rows_of["paper"], tested, strict=True) if at == q] for q in range(120)
    ]
    sums = np.array([sum(d) for d in per_question])
    counts = np.array([len(d) for d in per_question])
    dice = np.random.default_rng(9)
    drawn = [dice.integers(0, 120, 120) for _ in range(400)]
    spread = np.std([sums[one].sum() / counts[one].sum() for one in drawn])
    assert (apart.high - apart.low) / 4 == pytest.approx(spread, rel=0.3)
    assert figures.difference("paper", "paper") == (zero := figures.difference("default", "default"))
    assert (zero.value, zero.low, zero.high) == (0, 0, 0)


def test_a_budget_buys_a_mix_of_the_same_cost(found: Simulation, table: Table) -> None:
    for name, one in found.strategies.items():
        if (budget := one.equal_budget) is None:
            continue
        assert budget.cost <= one.cost + 1e-9, name
        if "costs less" not in budget.made_of:
            assert budget.cost == pytest.approx(one.cost), name
        assert one.accuracy.value - budget.accuracy == pytest.approx(budget.difference.value), name
    # A single model costs what it costs: the budget of 1 buys exactly that.
    labelled = found.strategies["best_single_by_labels"].equal_budget
    assert labelled
    assert labelled.made_of == "best_single"


def test_processes_and_order_change_nothing(table: Table) -> None:
    """On two processes, and with every arm in a job of its own."""
    grid = Grid(("default",), firsts=("random",), pickers=("random", "weighted"))
    one = simulate(table, Wanted(grid, splits=2, resamples=100, processes=1))
    two = simulate(table, Wanted(grid, splits=2, resamples=100, processes=2))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)
    tried = arms(grid, 4, comparable=True, samples=True)
    prices = CallPrices((1.0,) * 4)
    worker, together = (
        Worker(table, prices),
        {o.arm: o.rows for _, out in run(table, prices, jobs(tried, (1,))) for o in out},
    )
    for job in reversed(jobs(tried, (1,))):
        for name, arm in reversed(job.arms.items()):
            alone = worker.work(msgspec.structs.replace(job, arms={name: arm}))[0]
            assert np.array_equal(alone.rows, together[name]), name
            assert alone.rows.shape[1] == 2 * len(COLUMNS)


def test_ray_is_asked_for_in_a_line_where_it_is_not_installed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ClientError, match="pip install ray"):
        simulate(table, Wanted(Grid(), splits=1, ray="auto"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(prices={"large": 1.0}), "no price for middle, small, odd"),
        (Wanted(prices={"huge": 1.0}), "a price for huge"),
        (Wanted(Grid(firsts=("cheapest",))), "`cheapest` needs to know the price"),
    ],
)
def test_prices_are_for_all_models_or_none(table: Table, wanted: Wanted, said: str) -> None:
    with pytest.raises(ClientError, match=said):
        simulate(table, wanted)


def test_too_little_to_halve(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="at least 20 questions, got 19"):
        simulate(read(written(tmp_path, rows(19))), Wanted())
    with pytest.raises(ClientError, match="at least 3 models, got 2"):
        simulate(read(written(tmp_path, rows(30)), ["large", "odd"]), Wanted())

    unlabelled = [{**row, "gold": None} for row in rows(30)]
    with pytest.raises(ClientError, match="got 0; 30 questions without a gold answer"):
        simulate(read(written(tmp_path, unlabelled)), Wanted())


def test_where_c_is_empty_its_majority_is_the_best_scored_alone(tmp_path: Path) -> None:
    lines = [{**row, "answers": dict.fromkeys(MODELS)} for row in rows(30)]
    found = simulate(read(written(tmp_path, lines)), Wanted(splits=2, resamples=20, processes=1))
    alone = found.strategies["majority_C"]
    assert (alone.generations, alone.accuracy.value) == (1.0, 0.0)


@needs_recordings
def test_prd_with_real_votes_and_human_labels() -> None:
    """Targeted > non-targeted > random: five models' own verdicts as votes, people's as worth, over repeated splits."""
    folder = shared()
    assert folder
    table = read(folder / "data" / "peers" / "prd_vicuna80.jsonl.gz")
    found = simulate(table, Wanted(Grid(firsts=("random",)), splits=30, resamples=500))
    beside = {(one.one, one.other): one for one in found.comparisons}
    for pair in (("paper", "non_targeted"), ("non_targeted", "random_chain"), ("default", "default_non_targeted")):
        one = beside[pair]
        assert one.difference.low > 0, pair
        assert one.positive >= 0.8 * one.splits, pair
    assert "majority" not in found.strategies
    # Without genuine refinement no chain beats the best single model.
    best = found.strategies["best_single"].accuracy
    assert all(one.accuracy.value <= best.high for one in found.strategies.values())


@needs_recordings
@pytest.mark.parametrize("name", ["gsm8k", "math_l5", "mmlu_pro"])
def test_our_rules_are_no_worse_than_the_first_answer_kept(name: str) -> None:
    found = simulate(recorded(name, 400), Wanted(Grid(firsts=("best", "random")), splits=2, resamples=300))
    for first in ("", " first=random"):
        ours = found.strategies[f"default{first}"]
        kept = ours.minus_first
        assert kept
        noise = (kept.high - kept.low) / 2
        assert kept.value >= -noise, first
        assert ours.cost > 1
        # Unanimity is a stop signal: what all approve of is right more often.
        assert ours.accuracy_agreed
        assert ours.accuracy_agreed > ours.accuracy.value + 0.02, first
    # The published rules end with the last answer, and lose by it where the first was the best.
    beside = next(c for c in found.comparisons if (c.one, c.other) == ("default", "paper"))
    assert beside.difference.value > 0
