"""The benchmark that shows what credit by path does: one small model, taught alike, trained by reward in several ways.

Every way starts from the same weights and takes the same number of steps on as many trajectories (compute-matched but for the
teacher, whose time is reported). Needs the extra `train` for the work itself.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from turnout.statistics.bootstrap import nested_draws, resampled_mean
from turnout.train.credit import Route, RouteBy, Shaping, Thresholds
from turnout.train.evaluation import Mean, Scored, Summary, summary
from turnout.train.lessons import WORDS, Lessons, asked, taught
from turnout.train.rollout import Limits
from turnout.train.settings import METRICS, Engine, Optimisation, Settings, Teacher
from turnout.train.world import Search, Shape, World, edited, made, words

WORLDS = ("known", "held_out", "edited")
UNSHAPED = Shaping(path=0.0, explored=0.0, stopped_early=0.0, ran_out=0.0, repeated=0.0, format="every_step")
SHAPED = Shaping(format="every_step")


class Arm(Struct, frozen=True):
    """One way to train. `title`: for people."""

    title: str
    route_by: RouteBy
    shaping: Shaping
    teacher: Teacher


_TEACHER = Teacher(top_k=32)
_NONE = Teacher(on="none")

ARMS: dict[str, Arm] = {
    "grpo": Arm("GRPO: answer and format", "none", UNSHAPED, _NONE),
    "shaped": Arm("GRPO with the path's reward", "none", SHAPED, _NONE),
    "routing": Arm("routing only", "both", SHAPED, _NONE),
    "teacher": Arm("teacher only", "none", UNSHAPED, _TEACHER),
    "full": Arm("PathRouter", "both", SHAPED, _TEACHER),
}
"""The ways that are compared. `routing` is PathRouter without its teacher, `teacher` GRPO with it."""


class Preset(Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of a benchmark. `misses`: of the search in the harder setting. `known_share`: of the questions in training, those
    whose answers are known by heart."""

    shape: Shape = Shape()
    warm_steps: int = 1500
    warm_rows: int = 72
    warm_learning_rate: float = 3e-3
    steps: int = 50
    questions: int = 24
    group: int = 8
    learning_rate: float = 3e-4
    known_share: float = 0.9
    evaluated: int = 240
    misses: float = 0.2
    path_threshold: float = 0.25
    arms: tuple[str, ...] = tuple(ARMS)
    seeds: tuple[int, ...] = (0, 1, 2)
    hard_arms: tuple[str, ...] = ("grpo", "full")
    hard_seeds: tuple[int, ...] = (0, 1, 2)


PRESETS: dict[str, Preset] = {
    "cpu-small": Preset(),
    "cpu-tiny": Preset(
        shape=Shape(entities=12, relations=2, timed=1, times=4, distractors=4, known=24, unknown=24, held_out=24),
        warm_steps=30,
        warm_rows=16,
        steps=3,
        questions=4,
        group=4,
        evaluated=24,
        arms=("grpo", "full"),
        seeds=(0,),
        hard_arms=("full",),
        hard_seeds=(0,),
    ),
}
"""`cpu-small`: the benchmark, on two cores in under half an hour. `cpu-tiny`: whether it runs at all, in seconds."""


class Job(Struct, frozen=True):
    """One training run of the benchmark. `setting`: `main`, or `hard` where the search misses facts."""

    arm: str
    seed: int
    setting: str

    @property
    def name(self) -> str:
        return f"{self.setting}-{self.arm}-{self.seed}"


class Outcome(Struct, frozen=True):
    """What a run came to. `rows`: scores by world. `seconds`: of training; `parts`: where they went, by the step's own clock."""

    job: Job
    rows: dict[str, tuple[Scored, ...]]
    seconds: float
    parts: dict[str, float]

    def summary(self, world: str) -> Summary:
        return summary(self.rows[world], self.job.seed)


def jobs(preset: Preset) -> list[Job]:
    """Every run of a benchmark, the quickest answers to the question first."""
    main = [Job(arm, seed, "main") for seed in preset.seeds for arm in preset.arms]
    hard = [Job(arm, seed, "hard") for seed in preset.hard_seeds for arm in preset.hard_arms]
    return main + hard


def world_of(preset: Preset) -> World:
    return made(preset.shape, 0)


def vocabulary(preset: Preset) -> list[str]:
    return [*WORDS, *words(preset.shape)]


def limits(preset: Preset) -> Limits:
    longest = max(preset.shape.hops)
    return Limits(turns=longest + 2, turn_tokens=24, tokens=64 * (longest + 1), shown_tokens=40, facts=2, style="lines")


def settings_of(preset: Preset, job: Job, warm: Path, out: Path) -> Settings:
    """The settings of one run: the product's own, with its arm's switches."""
    arm = ARMS[job.arm]
    return Settings(
        model=str(warm),
        train="",
        knowledge="",
        out=out,
        limits=limits(preset),
        route_by=arm.route_by,
        thresholds=Thresholds(path=preset.path_threshold),
        shaping=arm.shaping,
        teacher=arm.teacher,
        optimisation=Optimisation(
            learning_rate=preset.learning_rate,
            questions=preset.questions,
            group=preset.group,
            micro_batch=preset.questions * preset.group,
            steps=preset.steps,
            seed=job.seed,
        ),
        engine=Engine(device="cpu"),
        save_every=10 * preset.steps,
        log_to=("jsonl",),
    )


def warm_started(preset: Preset, folder: Path, told: Callable[[int, float], None]) -> Path:
    """The taught model all runs start from; made once."""
    from turnout.train.tiny import Size, save_model, word_tokenizer
    from turnout.train.warm import warmed

    out = folder / "warm"
    if (out / "config.json").exists():
        return out
    save_model(folder / "start", word_tokenizer(vocabulary(preset)), Size(), seed=0)
    draw = Lessons(world_of(preset), 0).draw
    rate = preset.warm_learning_rate
    warmed(folder / "start", folder / "warming", draw, preset.warm_steps, preset.warm_rows, rate, told=told)
    (folder / "warming").rename(out)
    return out


def done(preset: Preset, job: Job, folder: Path, told: Callable[[int], None] = lambda step: None) -> Outcome:
    """Train and evaluate one run, or read what came of it before. `told` hears of each step."""
    kept = folder / f"{job.name}.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=Outcome)
    outcome = _ran(preset, job, folder, told)
    written = kept.with_suffix(".part")
    written.write_bytes(msgspec.json.encode(outcome))
    written.rename(kept)
    return outcome


def _ran(preset: Preset, job: Job, folder: Path, told: Callable[[int], None]) -> Outcome:
    import random
    import time

    from transformers import TrainerCallback

    from turnout.train.run import prepared

    class Told(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            told(state.global_step)

    world = world_of(preset)
    misses = preset.misses if job.setting == "hard" else 0.0
    dice = random.Random(f"questions {job.seed}")
    wanted = preset.steps * preset.questions
    known = round(preset.known_share * wanted)
    asked_for = [dice.choice(world.known) for _ in range(known)] + [
        dice.choice(world.unknown) for _ in range(wanted - known)
    ]
    dice.shuffle(asked_for)
    out = folder / job.name
    chosen = settings_of(preset, job, folder / "warm", out)
    search = Search(world, misses=misses, seed=job.seed)
    trainer = prepared(chosen, world.questions(asked_for), search, asked, taught, [Told()])
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    model = trainer.accelerator.unwrap_model(trainer.model)
    rows = evaluated(preset, model, trainer._tokenizer, misses, job.seed)
    return Outcome(job, rows, seconds, _parts(out / METRICS))


def evaluated(preset: Preset, model: Any, tokenizer: Any, misses: float, seed: int) -> dict[str, tuple[Scored, ...]]:
    """Scores of a model in each world, decoded greedily."""
    from turnout.train.answers import Answerer

    world = world_of(preset)
    other = edited(world, 0)
    answerer = Answerer(model, tokenizer, limits(preset), rows=preset.evaluated)
    thresholds = Thresholds(path=preset.path_threshold)
    sets: Mapping[str, tuple[World, Any]] = {
        "known": (world, world.known),
        "held_out": (world, world.held_out),
        "edited": (other, other.known),
    }
    return {
        name: tuple(
            answerer.scores(
                place.questions(chosen[: preset.evaluated]),
                Search(place, misses=misses, seed=1000 + seed),
                thresholds,
                asked,
            )
        )
        for name, (place, chosen) in sets.items()
    }


def _parts(metrics: Path) -> dict[str, float]:
    total: dict[str, float] = {}
    for line in metrics.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        for name, value in row.items():
            if name.startswith("seconds/") or name == "step_time":
                total[name.removeprefix("seconds/")] = total.get(name.removeprefix("seconds/"), 0.0) + value
    return total


class Line(Struct, frozen=True):
    """A row of the table: an arm in a setting, in one world, over all its seeds."""

    setting: str
    arm: str
    title: str
    world: str
    runs: int
    f1: Mean
    em: Mean
    p: Mean | None
    coverage: Mean | None
    uar: Mean
    turns: Mean
    lookups: Mean
    shortcut_share: Mean | None


def table(outcomes: list[Outcome], seed: int = 0) -> list[Line]:
    """Means over questions and seeds, with 95 % intervals that resample seeds and, within them, questions."""
    lines = []
    for setting in dict.fromkeys(one.job.setting for one in outcomes):
        for arm in dict.fromkeys(one.job.arm for one in outcomes if one.job.setting == setting):
            runs = [one for one in outcomes if (one.job.setting, one.job.arm) == (setting, arm)]
            for world in WORLDS:
                lines.append(_line(setting, arm, world, [one.rows[world] for one in runs], seed))
    return lines


def _line(setting: str, arm: str, world: str, runs: list[tuple[Scored, ...]], seed: int) -> Line:
    rows = [row for run in runs for row in run]
    times = np.array(list(nested_draws([len(run) for run in runs], 400, seed)), float)

    def mean(value: Callable[[Scored], float]) -> Mean:
        return resampled_mean([value(row) for row in rows], times)

    return Line(
        setting=setting,
        arm=arm,
        title=ARMS[arm].title,
        world=world,
        runs=len(runs),
        f1=mean(lambda row: row.f1),
        em=mean(lambda row: row.em),
        p=mean(lambda row: row.p or 0.0),
        coverage=mean(lambda row: row.coverage or 0.0),
        uar=mean(lambda row: row.uar),
        turns=mean(lambda row: float(row.turns)),
        lookups=mean(lambda row: float(row.lookups)),
        shortcut_share=mean(lambda row: float(row.route is Route.SHORTCUT)),
    )
