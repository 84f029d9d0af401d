"""What `turnout train` does and prints, behind its options."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from turnout.cli import output, progress
from turnout.cli.exits import CommandError

if TYPE_CHECKING:
    from turnout.train.answers import Answerer
    from turnout.train.bench import Job, Line, Outcome, Preset
    from turnout.train.comparison import Comparison
    from turnout.train.credit import Calibration
    from turnout.train.data import Read
    from turnout.train.evaluation import Mean
    from turnout.train.plan import Plan
    from turnout.train.rollout import Limits, LookUp


def told_of_questions(read: "Read") -> None:
    """Say what of a file could not be used."""
    if read.skipped:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in read.skipped.items())
        output.say(f"{sum(read.skipped.values())} rows were left out: {reasons} ({read.problems[0]})")
    bare = sum(not question.gold_passages for question in read.questions)
    if bare:
        output.say(f"{bare} of {len(read.questions)} questions have no gold passages: no credit by path for them")


def knowledge(name: str) -> "LookUp":
    """The search of a knowledge folder or of a served one."""
    from turnout.knowledge import open_knowledge

    if not name:
        raise CommandError("no knowledge is named", step="give a folder made by `turnout knowledge build`, or a URL")
    return open_knowledge(name).look_up


def answerer(model: str, limits: "Limits") -> "Answerer":
    """A model ready to answer, on a GPU where there is one."""
    import torch
    from transformers import AutoModelForCausalLM

    from turnout.train.answers import Answerer
    from turnout.train.spelling import tokenizer_of

    loaded = AutoModelForCausalLM.from_pretrained(model, dtype="auto")
    return Answerer(loaded.to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer_of(model), limits)


def evaluated(
    models: Sequence[str],
    data: Sequence[str],
    names: Sequence[str],
    arms: Sequence[str],
    limit: int,
    turns: int,
    path_threshold: float,
    out: Path | None,
) -> "Comparison":
    """Every model on every file, by every arm."""
    import msgspec

    from turnout.train.answers import marked
    from turnout.train.comparison import Cell, Comparison, transfer
    from turnout.train.credit import Thresholds
    from turnout.train.data import questions_of
    from turnout.train.evaluation import summary
    from turnout.train.rollout import Limits

    unknown = [arm for arm in arms if arm not in ("agent", "one-shot", "closed-book")]
    if unknown:
        raise CommandError(f"no arm is called {unknown[0]}", step="there are agent, one-shot, closed-book")
    needed = any(arm != "closed-book" for arm in arms)
    if needed and len(names) not in (1, len(data)):
        raise CommandError(
            f"{len(names)} --knowledge for {len(data)} --data", step="give one for each file, or one for all"
        )
    places = list(names) * len(data) if len(names) == 1 else list(names)
    searches = [knowledge(name) for name in places] if needed else []
    reads = [questions_of(file, limit) for file in data]
    for read in reads:
        told_of_questions(read)
    thresholds = Thresholds(path=path_threshold)
    cells = []
    with progress.shown() as told:
        for model in models:
            one = answerer(model, Limits(turns=turns))
            for i, (file, read) in enumerate(zip(data, reads, strict=True)):
                questions = read.questions
                for arm in arms:

                    def heard(done: int, what: str = f"{Path(model).name} on {Path(file).name}, {arm}") -> None:
                        told(what, done, len(questions))  # noqa: B023 - heard within this round only

                    if arm == "closed-book":
                        done = one.closed_book(questions, heard)
                    elif arm == "one-shot":
                        done = one.one_shot(questions, searches[i], heard)
                    else:
                        done = one.answer(questions, searches[i], told=heard)
                    rows = marked(questions, done, thresholds)
                    cells.append(Cell(model, file, arm, summary(rows)))
                    if out is not None:
                        with out.open("ab") as kept:
                            for row in rows:
                                line = {"model": model, "data": file, "arm": arm, **output.whole(row)}
                                kept.write(msgspec.json.encode(line) + b"\n")
    return Comparison(tuple(cells), transfer(cells, models, data))


def ran(preset: "Preset", out: Path, jobs: int, told: progress.Told) -> list["Outcome"]:
    """Every run of a benchmark, some at once, each in a process of its own with one thread."""
    from turnout.train import bench

    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from multiprocessing import get_context

    wanted = bench.jobs(preset)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_quiet) as pool:
        warm = pool.submit(bench.warm_started, preset, out, _nobody)
        while not warm.done():
            told("teaching the model all runs start from", 0, 0)
            time.sleep(0.2)
        warm.result()
        waiting: dict[Future[Outcome], Job] = {pool.submit(bench.done, preset, job, out): job for job in wanted}
        steps = preset.steps * len(wanted)
        while not all(one.done() for one in waiting):
            finished = sum(one.done() for one in waiting)
            at = sum(_steps(out / job.name / "metrics.jsonl", preset.steps) for job in wanted)
            told("training", at, steps, f"{finished} of {len(wanted)} runs done")
            for one in waiting:
                if one.done() and one.exception() is not None:
                    pool.shutdown(cancel_futures=True)
                    raise one.exception() or RuntimeError
            time.sleep(0.5)
        return [one.result() for one in waiting]


def _nobody(step: int, loss: float) -> None:
    pass


def _quiet() -> None:
    """One thread a process, and no chatter of the engine's over the progress bar."""
    import logging
    import warnings

    import torch
    from transformers.utils import logging as chatter

    torch.set_num_threads(1)
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")


def _steps(metrics: Path, most: int) -> int:
    try:
        return min(most, metrics.read_bytes().count(b'"step_time"'))
    except OSError:
        return 0


def print_plan(made: "Plan") -> None:
    """A plan for people."""
    spread = ", weights spread" if made.sharded else ""
    output.emit_text(f"{made.parameters / 1e9:.2f}e9 parameters on {made.devices} x {made.device.name}{spread}\n")
    table = output.table("memory of one device", "GiB", "assumption")
    for part in made.memory:
        table.row(part.name, f"{part.amount:.1f}", part.because)
    verdict = "fits with a tenth to spare" if made.fits else "does not fit with a tenth to spare"
    table.row("in all", f"{made.memory_gib:.1f}", f"of {made.device.memory_gib:.0f}: {verdict}")
    table.print()
    table = output.table("time of one step", "s", "assumption")
    for part in made.step_s:
        table.row(part.name, f"{part.amount:.0f}", part.because)
    table.row("in all", f"{sum(part.amount for part in made.step_s):.0f}", "an estimate: measure the first steps")
    table.print()
    if made.hours is None:
        output.emit_text("How many steps is not known: name the questions, or --questions N.")
    else:
        output.emit_text(f"{made.steps} steps: about {made.hours:.1f} hours")
    for warning in made.warnings:
        output.emit_text(f"note: {warning}")


def print_calibration(found: "Calibration", now: float) -> None:
    """The histogram of P and the suggestion."""
    most = max(found.counts)
    for low, high, count in zip(found.edges, found.edges[1:], found.counts, strict=False):
        mark = " <- suggested" if low <= found.suggested < high else ""
        output.emit_text(f"{low:6.3f} {'#' * round(50 * count / most):<50} {count}{mark}")
    how = "found and missed evidence are not told apart: the median" if found.separation is None else (
        f"tells found evidence from missed with J = {found.separation:.2f}")  # fmt: skip
    output.emit_text(
        f"theta_P = {found.suggested:.3f} ({how}); {found.below:.0%} of trajectories lie below. Now: {now:g}"
    )


def shown(mean: "Mean | None", percent: bool = False) -> str:
    """A mean with its interval."""
    if mean is None:
        return "-"
    scale = 100.0 if percent else 1.0
    places = 1 if percent else 2
    return f"{scale * mean.value:.{places}f} [{scale * mean.low:.{places}f} {scale * mean.high:.{places}f}]"


def print_evaluation(found: "Comparison") -> None:
    """A comparison for people."""
    table = output.table("model", "data", "arm", "n", "EM", "F1", "P", "coverage", "UAR", "turns", "shortcuts")
    for cell in found.cells:
        one = cell.summary
        table.row(
            Path(cell.model).name,
            Path(cell.data).name,
            cell.arm,
            str(one.n),
            shown(one.em, True),
            shown(one.f1, True),
            shown(one.p, True),
            shown(one.coverage, True),
            shown(one.uar, True),
            shown(one.turns),
            shown(one.shortcut_share, True),
        )
    table.print()
    if found.transfer:
        output.emit_text(
            "F1 kept away from home (row: trained on, column: asked), in percent of the model trained there:"
        )
        for row in found.transfer:
            output.emit_text("  ".join("    -" if value is None else f"{100 * value:5.1f}" for value in row))
    output.emit_text("Percent but for turns; 95 % bootstrap intervals over questions.")


def print_bench(lines: Sequence["Line"], outcomes: Sequence["Outcome"]) -> None:
    """The benchmark's table for people."""
    for setting in dict.fromkeys(line.setting for line in lines):
        title = "every look-up finds its fact" if setting == "main" else "a share of look-ups misses its fact"
        output.emit_text(f"\n{title}")
        table = output.table("trained by", "world", "runs", "F1", "EM", "shortcuts", "P", "UAR", "turns")
        for line in lines:
            if line.setting == setting:
                table.row(
                    line.title,
                    line.world,
                    str(line.runs),
                    shown(line.f1),
                    shown(line.em),
                    shown(line.shortcut_share, True),
                    shown(line.p),
                    shown(line.uar),
                    shown(line.turns),
                )
        table.print()
    for arm in dict.fromkeys(one.job.arm for one in outcomes):
        runs = [one for one in outcomes if one.job.arm == arm]
        seconds = sum(one.seconds for one in runs) / len(runs)
        teacher = sum(one.parts.get("teacher", 0.0) + one.parts.get("student_forward", 0.0) for one in runs) / len(runs)
        output.emit_text(f"{arm}: {seconds:.0f} s of training a run, {teacher:.0f} s of them for the teacher")
    output.emit_text(
        "Greedy answers; 95 % intervals resample seeds and questions. Shortcuts: right without the evidence, %."
    )
