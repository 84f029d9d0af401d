"""`turnout train ...`: training retrieval agents by the path they took, and showing whether it pays."""

from pathlib import Path
from typing import Annotated

import typer

from turnout.cli import options, output, progress
from turnout.cli.exits import NOT_FOUND, CommandError

app = typer.Typer(
    help="Train retrieval agents on the path they took, not only on the answer they gave (PathRouter).",
    no_args_is_help=True,
)


@app.command("preset")
def preset(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="qwen2.5-1.5b, -3b, -7b, one-gpu, fsdp-8, zero3-8, nodes.")
    ],
) -> None:
    """Print a preset: settings with the paper's hyperparameters, or a launcher's file for accelerate.

    Example: turnout train preset qwen2.5-3b > train.toml
    """
    from turnout.train.loading import preset as text

    output.emit_text(text(name))


@app.command("plan")
def plan(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="Training settings, TOML.")],
    device: Annotated[str, typer.Option(help="a100-40, a100-80, h100, h200, l40s, rtx4090.")] = "h100",
    devices: Annotated[int, typer.Option(min=1, help="How many.")] = 1,
    sharded: Annotated[bool, typer.Option("--sharded", help="Weights spread over them (FSDP, ZeRO-3).")] = False,
    questions: Annotated[int, typer.Option(min=0, help="How many to train on; 0 = count those of the file.")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Say what a run will take in memory and time before anything starts.

    Example: turnout train plan train.toml --device h100 --devices 8 --sharded
    """
    from turnout.cli.training import print_plan
    from turnout.train.data import questions_of
    from turnout.train.loading import load_settings
    from turnout.train.plan import DEVICES
    from turnout.train.plan import plan as planned

    settings = load_settings(config)
    if device not in DEVICES:
        raise CommandError(f"no device is called {device}", NOT_FOUND, f"known are {', '.join(DEVICES)}")
    count = questions or None
    if count is None and settings.optimisation.steps is None and Path(settings.train).exists():
        count = len(questions_of(settings.train).questions)
    made = planned(settings, DEVICES[device], devices, sharded, count)
    output.emit(output.whole(made)) if as_json else print_plan(made)


@app.command("run")
def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="Training settings, TOML.")],
    as_json: options.AsJson = False,
) -> None:
    """Train, or go on from the last checkpoint. Under torchrun or accelerate, on every process.

    Example: turnout train run train.toml
             accelerate launch --config_file fsdp-8.yaml -m turnout train run train.toml
    """
    from turnout.cli.training import knowledge, told_of_questions
    from turnout.train.data import questions_of
    from turnout.train.loading import load_settings

    settings = load_settings(config)
    needs_engine()
    read = questions_of(settings.train)
    told_of_questions(read)
    from turnout.train.run import trained

    trainer = trained(settings, read.questions, knowledge(settings.knowledge))
    if trainer.accelerator.is_main_process:
        last = trainer.state.log_history[-1] if trainer.state.log_history else {}
        done = {
            "out": str(settings.out),
            "model": str(settings.out / "model"),
            "steps": trainer.state.global_step,
            **last,
        }
        output.emit(done) if as_json else output.emit_text(
            f"trained {done['steps']} steps; the model is in {done['model']}"
        )


@app.command("calibrate")
def calibrate(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="Training settings, TOML.")],
    limit: Annotated[int, typer.Option(min=1, help="Questions to try.")] = 200,
    as_json: options.AsJson = False,
) -> None:
    """Suggest theta_P for a corpus: let the untrained agent answer, and look where P tells found evidence from missed.

    Example: turnout train calibrate train.toml --limit 100
    """
    from turnout.cli.training import answerer, knowledge, print_calibration, told_of_questions
    from turnout.train.credit import calibrated
    from turnout.train.data import questions_of
    from turnout.train.loading import load_settings

    settings = load_settings(config)
    needs_engine()
    read = questions_of(settings.train, limit=limit)
    told_of_questions(read)
    look_up = knowledge(settings.knowledge)
    with progress.shown() as told:
        rows = answerer(settings.model, settings.limits).scores(
            read.questions, look_up, settings.thresholds, told=lambda done: told("answering", done, len(read.questions))
        )
    scored = [(row.p, row.coverage) for row in rows if row.p is not None and row.coverage is not None]
    if not scored:
        raise CommandError(f"{settings.train} has no gold passages, without which P is not known", NOT_FOUND)
    found = calibrated([p for p, _ in scored], [share for _, share in scored])
    output.emit(output.whole(found)) if as_json else print_calibration(found, settings.thresholds.path)


@app.command("evaluate")
def evaluate(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Folders or hub ids.")],
    data: Annotated[list[str], typer.Option(metavar="FILE|hub:NAME", help="Questions; may be repeated.")],
    knowledge: Annotated[
        list[str] | None, typer.Option(metavar="FOLDER|URL", help="For each --data, or one for all.")
    ] = None,
    arms: Annotated[str, typer.Option(help="Of agent, one-shot, closed-book; with commas.")] = "agent",
    limit: Annotated[int, typer.Option(min=1, help="Questions of each file.")] = 500,
    turns: Annotated[int, typer.Option(min=1, help="Turns of the agent at most.")] = 10,
    path_threshold: Annotated[float, typer.Option(min=0.0, max=1.0, help="theta_P of the routes.")] = 0.1,
    out: Annotated[Path | None, typer.Option(metavar="FILE.jsonl", help="Keep the scores of each question.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate models as agents: EM, F1, P, coverage, unsupported answer tokens, turns, routes, with 95 % intervals.

    Of as many models as files, in one order, also the transfer matrix is given: what a model trained on one set keeps on others.

    Example: turnout train evaluate runs/qwen/model --data dev.jsonl --knowledge knowledge --arms agent,one-shot,closed-book
    """
    from turnout.cli.training import evaluated, print_evaluation

    needs_engine()
    found = evaluated(models, data, knowledge or [], arms.split(","), limit, turns, path_threshold, out)
    output.emit(output.whole(found)) if as_json else print_evaluation(found)


@app.command("bench")
def bench(
    preset: Annotated[
        str, typer.Option(help="cpu-small: two cores, half an hour. cpu-tiny: does it run at all.")
    ] = "cpu-small",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Keeps every run; what is there is not run again.")
    ] = Path("bench"),
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once, one thread each.")] = 2,
    as_json: options.AsJson = False,
) -> None:
    """Show on a generated world what credit by path does: one small model, taught alike, trained by reward in several ways.

    GRPO, GRPO with the path's reward, routing only, teacher only, and PathRouter, on as many trajectories; evaluated on known
    questions, held-out ones, and in an edited world, where what was learnt by heart is wrong. No network.

    Example: turnout train bench --preset cpu-small --out bench
    """
    from turnout.cli.training import print_bench, ran
    from turnout.train.bench import PRESETS, table

    if preset not in PRESETS:
        raise CommandError(f"no preset is called {preset}", NOT_FOUND, f"there are {', '.join(PRESETS)}")
    needs_engine()
    with progress.shown() as told:
        outcomes = ran(PRESETS[preset], out, jobs, told)
    lines = table(outcomes)
    if as_json:
        runs = [{"run": one.job.name, **output.whole(one.job), "seconds": one.seconds, "parts": one.parts,
                 "worlds": {world: output.whole(one.summary(world)) for world in one.rows}} for one in outcomes]  # fmt: skip
        output.emit({"preset": preset, "runs": runs, "table": output.whole(tuple(lines))})
    else:
        print_bench(lines, outcomes)


@app.command("report")
def report(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of runs or of a benchmark, or scores kept by evaluate."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Where to write the page.")] = Path("training.html"),
    as_json: options.AsJson = False,
) -> None:
    """Write one page of what runs came to: scores with intervals, learning curves, the histogram of P.

    Example: turnout train report bench --out bench.html
    """
    from turnout.train.report import html
    from turnout.train.results import read

    results = read(places)
    out.write_text(html(results), encoding="utf-8")
    output.emit({"file": str(out), "notes": list(results.notes)}) if as_json else output.emit_text(f"wrote {out}")
    for note in results.notes:
        output.say(f"note: {note}")


def needs_engine() -> None:
    """Say in one line what to install where the extra `train` is missing."""
    from importlib.util import find_spec

    missing = [name for name in ("torch", "transformers", "trl") if find_spec(name) is None]
    if missing:
        raise CommandError(f"training needs {', '.join(missing)}", step="pip install 'turnout[train]'")
