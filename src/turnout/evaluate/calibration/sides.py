"""The split of tasks into those to choose by and those to judge on, and whether there is enough of both. Pure."""

import random
from collections.abc import Sequence

from msgspec import Struct

from turnout.evaluate.pairing import Unit
from turnout.evaluate.quadrants import quadrant

LEAST_TASKS = 8
"""Tasks on either side without which nothing is chosen or judged."""
LEAST_LOSS = 3
"""Tasks to choose by that only the capable model solves, without which all settings look alike."""


class TooLittle(Exception):
    """There is too little data to calibrate on; the message says of what."""


class Split(Struct, frozen=True):
    """Which tasks are chosen by and which are judged on: all trials of a task are on one side. `train_share`: of the tasks."""

    seed: int
    train_share: float
    train: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def words(self) -> str:
        """The split in a sentence."""
        return f"{len(self.train)} tasks to choose by, {len(self.held_out)} to judge on, drawn by task with seed {self.seed}"


def split(units: Sequence[Unit], train_share: float, seed: int) -> Split:
    """Tasks drawn by names alone: nothing of their outcomes has a part in it."""
    tasks = sorted({unit.task for unit in units})
    random.Random(seed).shuffle(tasks)
    train = tasks[: round(train_share * len(tasks))]
    return Split(seed, train_share, tuple(sorted(train)), tuple(sorted(tasks[len(train) :])))


def require_enough(units: Sequence[Unit], parts: Split) -> None:
    """Raises TooLittle."""
    if not units:
        raise TooLittle("no task was run by both models")
    for what, tasks in (("choose by", parts.train), ("judge on", parts.held_out)):
        if len(tasks) < LEAST_TASKS:
            total = len(parts.train) + len(parts.held_out)
            raise TooLittle(
                f"{total} tasks were run by both models, which leaves {len(tasks)} to {what}; it takes {LEAST_TASKS} at least"
            )
    lossy = {unit.task for unit in units if unit.task in parts.train and quadrant(unit) == "LOSS"}
    if len(lossy) < LEAST_LOSS:
        raise TooLittle(
            f"of the {len(parts.train)} tasks to choose by, {len(lossy)} are solved by the capable model only; with fewer than "
            f"{LEAST_LOSS} a bound on tasks lost tells no setting from another"
        )
