"""What training and evaluation left in folders: outcomes of a benchmark, metrics by step, scores by question. Needs no torch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout.errors import ClientError
from turnout.train.bench import Line, Outcome, table
from turnout.train.evaluation import Scored, summary
from turnout.train.settings import METRICS

_NAMED = ("model", "data", "arm")


class Kept(Struct, frozen=True):
    """One scored answer and whose it is. `group`: the setting of a benchmark, or the model that was evaluated. `world`: of the
    benchmark, or the file of questions. `run`: what answered."""

    group: str
    arm: str
    world: str
    run: str
    scored: Scored


class Run(Struct, frozen=True):
    """A training run: its name and the metrics of every step, as it logged them."""

    name: str
    steps: tuple[dict[str, Any], ...]


class Results(Struct, frozen=True):
    """All that was found. `lines`: the means, with their intervals, of `rows`. `notes`: what could not be read."""

    runs: tuple[Run, ...]
    rows: tuple[Kept, ...]
    lines: tuple[Line, ...]
    seconds: dict[str, float]
    notes: tuple[str, ...]


def read(places: Sequence[Path]) -> Results:
    """The results in folders: of `train bench` (outcomes, and a folder for each run), of `train run` (metrics), and scores that
    `train evaluate --out` kept there; a file of such scores may be named itself. Raises ClientError for a place without any."""
    runs: list[Run] = []
    outcomes: list[Outcome] = []
    evaluated: dict[tuple[str, str, str, str], Kept] = {}
    notes: list[str] = []
    for place in places:
        if not place.exists():
            raise ClientError(f"{place} does not exist; name the folder of a training run or of a benchmark")
        before = len(runs), len(outcomes), len(evaluated)
        for file in _files(place):
            if file.name == METRICS:
                runs.append(Run(_name(file.parent, places), tuple(_steps(file, notes))))
            elif file.suffix == ".json":
                outcomes += _outcome(file)
            else:
                # Scores of the same questions, kept twice, count once: the last.
                evaluated |= {(one.run, one.world, one.arm, one.scored.question): one for one in _scores(file, notes)}
        if before == (len(runs), len(outcomes), len(evaluated)):
            raise ClientError(
                f"{place} holds no results: neither {METRICS}, nor outcomes of `turnout train bench`, nor scores that "
                "`turnout train evaluate --out` kept"
            )
    rows = [
        Kept(one.job.setting, one.job.arm, world, one.job.name, scored)
        for one in outcomes
        for world, scores in one.rows.items()
        for scored in scores
    ]
    return Results(
        tuple(runs),
        (*rows, *evaluated.values()),
        (*table(outcomes), *_lines(list(evaluated.values()))),
        {one.job.name: one.seconds for one in outcomes},
        tuple(notes),
    )


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    return [path for ending in ("*.json", "*.jsonl", f"*/{METRICS}") for path in sorted(place.glob(ending))]


def _name(folder: Path, places: Sequence[Path]) -> str:
    """The folder's own name; with its parent's where two named places might hold the same."""
    return folder.name if len(places) == 1 else f"{folder.parent.name}/{folder.name}".removeprefix("/")


def _outcome(file: Path) -> list[Outcome]:
    try:
        return [msgspec.json.decode(file.read_bytes(), type=Outcome)]
    except msgspec.MsgspecError:
        return []  # another file of JSON that lies there


def _objects(file: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    broken = 0
    for line in file.read_bytes().splitlines():
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError:
            broken += 1
            continue
        if isinstance(row, dict):
            yield row
    if broken:
        notes.append(f"{file}: {broken} lines are cut or damaged, and left out")


def _steps(file: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    # The last line of a run that came to its end is about the whole of it, and has no time of a step.
    return (row for row in _objects(file, notes) if "step_time" in row)


def _scores(file: Path, notes: list[str]) -> Iterator[Kept]:
    for row in _objects(file, notes):
        if any(name not in row for name in _NAMED):
            return  # questions, or anything else that is no scores
        scored = msgspec.convert({name: value for name, value in row.items() if name not in _NAMED}, Scored)
        yield Kept(Path(row["model"]).name, row["arm"], Path(row["data"]).name, row["model"], scored)


def _lines(rows: Sequence[Kept]) -> list[Line]:
    """As `table`, of evaluated models: intervals over questions."""
    by: dict[tuple[str, str, str], list[Scored]] = {}
    for row in rows:
        by.setdefault((row.group, row.arm, row.world), []).append(row.scored)
    lines = []
    for (group, arm, world), scores in by.items():
        means = summary(scores)
        fields = {name: getattr(means, name) for name in Line.__struct_fields__ if hasattr(means, name)}
        lines.append(Line(setting=group, arm=arm, title=arm, world=world, runs=1, **fields))
    return lines
