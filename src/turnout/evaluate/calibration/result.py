"""What a calibration found, with everything it rests on: the JSON of `turnout calibrate`, and the data of its report."""

from typing import Literal, TypeAlias

from msgspec import Struct

from turnout.evaluate.arms import Arm
from turnout.evaluate.calibration.figures import Difference, Judged, Side
from turnout.evaluate.calibration.reliability import Bin
from turnout.evaluate.calibration.settings import Settings
from turnout.evaluate.calibration.sides import Split
from turnout.evaluate.quadrants import Quadrant

Bound: TypeAlias = Literal["estimate", "upper end"]
Result: TypeAlias = Literal["better", "not better", "none allowed"]


class Data(Struct, frozen=True):
    """What was calibrated on. `digest`: of the units and steps used. `rows`: read from all files. `n`: units, of `tasks` tasks,
    `n_cost` of them with known costs."""

    files: str
    digest: str
    rows: int
    damaged: int
    n: int
    tasks: int
    n_cost: int
    arms: dict[str, Arm]


class Constraint(Struct, frozen=True):
    """What a point had to keep on the tasks to choose by: no more than `max_loss` of them lost, a lost one counting
    `loss_weights` by category ("" = all others); `by`: the estimate, or the upper end of its interval."""

    max_loss: float
    loss_weights: dict[str, float]
    by: Bound = "estimate"


class Point(Struct, frozen=True):
    """One setting that was tried; all others are as in force. `held_out` is shown, and had no part in the choice. `allowed`: it
    keeps the constraint on the tasks to choose by, where its share of tasks lost has the upper end `lost_high`."""

    settings: Settings
    train: Side
    held_out: Side
    lost_high: float
    allowed: bool
    chosen: bool = False
    in_force: bool = False


class Tried(Struct, frozen=True):
    """A unit, so that every figure can be made again. Lines are those of the outcomes. `score`: the highest that the chosen
    router gives in the efficient run (held out only; None where it gives none). `in_force`, `chosen`: after how many replies of
    that run these settings move to the capable model, None = never."""

    task: str
    trial: str
    category: str
    side: Literal["train", "held_out"]
    quadrant: Quadrant
    capable_line: int
    capable_success: bool
    capable_usd: float | None
    efficient_line: int
    efficient_success: bool
    efficient_usd: float | None
    score: float | None
    in_force: int | None
    chosen: int | None


class Calibration(Struct, frozen=True):
    """A sweep, a choice and its judgement.

    `settings`: those that are swept, as `in_force` and as `chosen` (None where no point is allowed). `points`: all that were
    tried, `refused` those that the router does not take. `train`, `held_out`: ways of choosing by name: `chosen`, `in_force`,
    `capable`, `efficient`, `random_mix` (costs what `chosen` does), `oracle`. `against`: chosen less each of them, held out.
    `units`: all that was calibrated on. `reliability`: of the chosen router's score, held out. `holds`: the constraint on
    the held-out tasks, by the estimate.
    """

    verdict: str
    result: Result
    route: str
    router: str
    data: Data
    split: Split
    constraint: Constraint
    in_force: Settings
    chosen: Settings | None
    points: tuple[Point, ...]
    refused: int
    train: dict[str, Judged]
    held_out: dict[str, Judged]
    against: dict[str, Difference]
    holds: bool | None
    reliability: tuple[Bin, ...]
    assumption: str
    method: str
    notes: tuple[str, ...]
    units: tuple[Tried, ...]
