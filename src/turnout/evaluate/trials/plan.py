"""Which runs a trial consists of, and in what order."""

import hashlib
import random
from collections.abc import Sequence

from msgspec import Struct

from turnout.evaluate.trials.journal import Key
from turnout.evaluate.trials.tasks import Task


class Planned(Struct, frozen=True):
    """One run to make. `trial`: from 1. `seed`: the same for all arms."""

    arm: str
    task: Task
    trial: int
    seed: int

    @property
    def key(self) -> Key:
        """Which run it is."""
        return self.arm, self.task.id, self.trial


def planned(arms: Sequence[str], tasks: Sequence[Task], trials: int, seed: int) -> list[Planned]:
    """All runs in the order to make them: the arms of one task and trial one after another, in an order drawn for each, so that
    neither the time of day nor being the first favours an arm. First trials of all tasks come before second ones."""
    found = []
    for trial in range(1, trials + 1):
        dice = random.Random(f"order:{seed}:{trial}")
        for task in dice.sample(tasks, len(tasks)):
            found += [Planned(arm, task, trial, seed_of(seed, task.id, trial)) for arm in dice.sample(arms, len(arms))]
    return found


def seed_of(seed: int, task: str, trial: int) -> int:
    """The seed of a run, from 0 to below 2 ** 31."""
    drawn = hashlib.blake2b(f"{seed}:{trial}:{task}".encode(), digest_size=4).digest()
    return int.from_bytes(drawn, "big") >> 1
