"""Splits and arms played one after the other, on all cores of a machine, or on a Ray cluster, with the same results. Needs numpy.

A job is some arms on one split; what comes of it depends on nothing but the table, the prices, the seed and these arms.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from turnout.errors import ClientError, UpstreamError
from turnout.peers.simulate.arms import Arm
from turnout.peers.simulate.players import player
from turnout.peers.simulate.playing import CallPrices, Played
from turnout.peers.simulate.recorded import Table
from turnout.peers.simulate.splits import Split, halves
from turnout.statistics.bootstrap import Matrix

COLUMNS = ("value", "generations", "votes", "cost", "agreed", "agreed_value", "unseen")
"""What is known of a question in a play. `agreed_value`: its value where it was agreed on, else 0."""
_ARMS_A_JOB = 6

Told: TypeAlias = Callable[[int, int], None]


class Job(Struct, frozen=True):
    """Some arms on one split."""

    seed: int
    arms: dict[str, Arm]


class Outcome(Struct, frozen=True):
    """What an arm did on the test half of a split. `rows`: for each question, COLUMNS of the pessimistic play, then of the
    optimistic one."""

    arm: str
    rows: Matrix


class Worker:
    """Does jobs on a table; keeps the split it was last asked for."""

    def __init__(self, table: Table, prices: CallPrices) -> None:
        self._table = table
        self._prices = prices
        self._split: Split | None = None

    def work(self, job: Job) -> list[Outcome]:
        """What came of a job."""
        if self._split is None or self._split.seed != job.seed:
            self._split = Split(self._table, self._prices, job.seed)
        return [Outcome(name, self._rows(self._split, arm)) for name, arm in job.arms.items()]

    def _rows(self, split: Split, arm: Arm) -> Matrix:
        questions = [split.table.questions[at] for at in split.test]
        plays: list[Matrix] = []
        for optimistic in (False, True):
            if optimistic and arm.kind not in ("chain", "random_chain"):
                plays.append(plays[0])  # nobody improves anything
                continue
            play = player(split, arm, optimistic=optimistic)
            plays.append(np.array([_row(play(question)) for question in questions], float))
        return np.concatenate(plays, axis=1)


def _row(played: Played) -> tuple[float, ...]:
    worth = played.value if played.agreed else 0.0
    return (played.value, played.generations, played.votes, played.cost, played.agreed, worth, played.unseen)


def jobs(arms: Mapping[str, Arm], seeds: Sequence[int]) -> list[Job]:
    """The jobs of a simulation, in order."""
    names = list(arms)
    parts = [names[at : at + _ARMS_A_JOB] for at in range(0, len(names), _ARMS_A_JOB)]
    return [Job(seed, {name: arms[name] for name in part}) for seed in seeds for part in parts]


def run(
    table: Table,
    prices: CallPrices,
    todo: Sequence[Job],
    processes: int = 1,
    ray: str = "",
    told: Told = lambda done, of: None,
) -> Iterator[tuple[Job, list[Outcome]]]:
    """Every job with what came of it, in order. `processes`: on this machine, 0 = one a core. `ray`: the address of a cluster
    instead, such as `auto`, `local` or ray://host:10001."""
    processes = min(processes or os.cpu_count() or 1, len(todo))
    if ray:
        done = _on_ray(table, prices, todo, ray)
    elif processes > 1:
        done = _on_cores(table, prices, todo, processes)
    else:
        done = map(Worker(table, prices).work, todo)
    for number, (job, outcomes) in enumerate(zip(todo, done, strict=True), 1):
        yield job, outcomes
        told(number, len(todo))


_worker: Worker | None = None
"""Of a process of its own."""


def _begin(table: Table, prices: CallPrices) -> None:
    global _worker
    _worker = Worker(table, prices)


def _work(job: Job) -> list[Outcome]:
    assert _worker is not None
    return _worker.work(job)


def _on_cores(table: Table, prices: CallPrices, todo: Sequence[Job], processes: int) -> Iterator[list[Outcome]]:
    # Not forked: the threads of numerical libraries do not survive that everywhere.
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, _begin, (table, prices)) as pool:
        yield from pool.map(_work, todo, chunksize=max(1, math.ceil(len(todo) / processes / 8)))


def _on_ray(table: Table, prices: CallPrices, todo: Sequence[Job], address: str) -> Iterator[list[Outcome]]:
    try:
        import ray
    except ModuleNotFoundError:
        raise ClientError(
            "--ray needs ray on this machine and on the workers, beside turnout; pip install ray"
        ) from None
    from ray.util import ActorPool

    started = not ray.is_initialized()
    if started:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except ConnectionError as error:
            reason = str(error).splitlines()[0] if str(error) else "no answer"
            raise UpstreamError("unavailable", f"no Ray cluster at {address}: {reason}") from None
    try:
        given = ray.put((table, prices))
        remote = ray.remote(RemoteWorker)
        many = max(1, min(int(ray.cluster_resources().get("CPU", 1)), len(todo)))
        pool: Any = ActorPool([remote.remote(given) for _ in range(many)])
        yield from pool.map(lambda worker, job: worker.work.remote(job), todo)
    finally:
        if started:
            ray.shutdown()


class RemoteWorker:
    """A worker on a cluster."""

    def __init__(self, given: tuple[Table, CallPrices]) -> None:
        self._worker = Worker(*given)

    def work(self, job: Job) -> list[Outcome]:
        """What came of a job."""
        return self._worker.work(job)


def totals(table: Table, arms: Iterable[str], done: Iterable[tuple[Job, list[Outcome]]]) -> "Totals":
    """Sums over splits of what came of the jobs."""
    found = Totals(len(table.questions), tuple(arms))
    for job, outcomes in done:
        found.add(job.seed, outcomes)
    return found


class Totals:
    """What every arm did on each question, summed over the splits it was tested in."""

    def __init__(self, questions: int, arms: tuple[str, ...]) -> None:
        self.questions = questions
        self.times = np.zeros(questions)
        self.sums: dict[str, Matrix] = {arm: np.zeros((questions, 2 * len(COLUMNS))) for arm in arms}
        self.by_split: dict[str, dict[int, float]] = {arm: {} for arm in arms}
        self._seen: set[int] = set()

    def add(self, seed: int, outcomes: Sequence[Outcome]) -> None:
        """Add what came of a job."""
        _, test = halves(self.questions, seed)
        if seed not in self._seen:
            self._seen.add(seed)
            self.times[test] += 1
        for outcome in outcomes:
            self.sums[outcome.arm][test] += outcome.rows
            self.by_split[outcome.arm][seed] = float(outcome.rows[:, 0].mean())
