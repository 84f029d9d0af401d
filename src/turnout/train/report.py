"""The report of training and evaluation: arms and worlds with intervals, how runs learned, P, and the rows. Needs matplotlib."""

from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from turnout.pages.page import Cell, Page, Preset, Rows, Section, Tone, absent, link, listed, render, table, tile
from turnout.train.bench import Line
from turnout.train.credit import Calibration, Route, calibrated
from turnout.train.evaluation import Mean, Scored
from turnout.train.report_plots import (
    MEANS,
    PROGRESS,
    SHARES,
    TEACHING,
    curves_plot,
    means_plot,
    paths_plot,
    routes_plot,
    time_plot,
)
from turnout.train.results import Results

_SETTINGS = {"main": "Every look-up finds its fact", "hard": "A share of look-ups misses its fact"}
_WHOSE = ("group", "arm", "world", "run", "place")
_INTERVALS = "Bars: 95 % intervals that resample questions, of a benchmark also seeds."
_ANSWERS = "Where theta_P tells best answers that covered half of the gold from the others, as `turnout train calibrate` puts it."


def html(found: Results) -> str:
    """The page, complete."""
    tone, verdict = _verdict(found)
    return render(
        Page(
            title="Training and evaluation",
            kicker="Does credit by path pay?" if _compared(found) else "How did it learn?",
            verdict=verdict,
            tone=tone,
            who=escape(_read(found)),
            tiles="".join(_tiles(found)),
            sections=tuple(_sections(found)),
            tables=(_scores(found), _steps(found)),
            presets=(
                Preset("all scores", "scores"),
                Preset("right without the evidence", "scores", {"route": Route.SHORTCUT.value}),
                Preset("steps", "steps"),
            ),
            figures={
                "lines": found.lines,
                "seconds": found.seconds,
                "paths": paths(found),
            },
            warnings=found.notes,
        )
    )


def paths(found: Results) -> dict[str, Calibration]:
    """How P is spread over the answers of each group, and the threshold it suggests."""
    by: dict[str, list[tuple[float, float]]] = {}
    for row in found.rows:
        if row.scored.p is not None and row.scored.coverage is not None:
            by.setdefault(row.group, []).append((row.scored.p, row.scored.coverage))
    return {name: calibrated([p for p, _ in of], [c for _, c in of]) for name, of in by.items()}


def _compared(found: Results) -> tuple[Line, Line] | None:
    """PathRouter and GRPO on questions that neither was trained on; None where the benchmark did not run both."""
    by = {(line.setting, line.world, line.arm): line for line in found.lines}
    full, plain = by.get(("main", "held_out", "full")), by.get(("main", "held_out", "grpo"))
    return None if full is None or plain is None else (full, plain)


def _verdict(found: Results) -> tuple[Tone, str]:
    compared = _compared(found)
    if compared is None:
        steps = sum(len(run.steps) for run in found.runs)
        return "open", f"{len(found.runs)} training runs of {steps:,} steps in all, {len(found.rows):,} scored answers."
    full, plain = compared
    said = (
        f"On held-out questions {full.title} has F1 {_said(full.f1, True)}, {plain.title} {_said(plain.f1, True)}; right without "
        f"the evidence: {_said(full.shortcut_share, True)} beside {_said(plain.shortcut_share, True)}."
    )
    if full.f1.low > plain.f1.high:
        return "good", said
    return ("bad" if full.f1.high < plain.f1.low else "open"), said


def _read(found: Results) -> str:
    names = ", ".join(run.name for run in found.runs)
    return f"runs: {names or 'none'}; scores of {len(found.rows):,} answers"


def _tiles(found: Results) -> Iterator[str]:
    for line in found.lines:
        if (line.setting, line.world) == ("main", "held_out"):
            of = {"group": line.setting, "arm": line.arm, "world": line.world}
            lines = [_of_tile(line.f1, "F1, held out", **of)]
            if line.shortcut_share is not None:
                route = Route.SHORTCUT.value
                lines.append(_of_tile(line.shortcut_share, "right without the evidence", **of, route=route))
            yield tile(line.title, lines)


def _of_tile(mean: Mean, said: str, **of: Cell) -> tuple[str, str]:
    bounds = f"[{100 * mean.low:.1f} {100 * mean.high:.1f}]"
    return link(f"{100 * mean.value:.1f} %", "scores", **of), f"{said} {bounds}"


def _sections(found: Results) -> Iterator[Section]:
    for place, setting in enumerate(dict.fromkeys(line.setting for line in found.lines)):
        lines = [line for line in found.lines if line.setting == setting]
        yield Section(_SETTINGS.get(setting, setting), means_plot(lines, f"means{place}"), _INTERVALS)
        yield Section("The same in figures", _lines(lines))
    if not found.lines:
        yield Section(
            "Means", absent("No answers were scored here: nothing was evaluated, or its scores were not kept.")
        )
    for title, plot, said in (
        (
            "Outcomes of trajectories, by step",
            routes_plot(found.runs),
            "Shares of the trajectories a step was made from.",
        ),
        ("Paths and answers, by step", curves_plot(found.runs, PROGRESS, "progress"), ""),
        ("The teacher, by step", curves_plot(found.runs, TEACHING, "teaching"), "KL in nats, a token."),
        ("Where the time of a step went", time_plot(found.runs), "Seconds of the main process, mean over steps."),
    ):
        if plot:
            yield Section(title, plot, said)
    if spread := paths(found):
        yield Section("How P is spread", paths_plot(spread), _ANSWERS)
        yield Section("Suggested theta_P", _suggested(spread))
    if found.seconds:
        rows = [(escape(name), f"{seconds:,.0f}") for name, seconds in found.seconds.items()]
        yield Section("Training", table(("run", "seconds"), rows))
    yield Section("How to read this", listed(_WORDS))


_WORDS = (
    "P is the F1 of the words of the facts a run looked up against those of its gold passages; C the share of gold covered.",
    "Right without the evidence: the answer is right, yet P stays under theta_P. Known by heart, guessed, or found elsewhere.",
    "Answers are decoded greedily. Intervals that overlap do not show two ways to be equal.",
)


def _lines(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        of = {"group": line.setting, "arm": line.arm, "world": line.world}
        means = [link(_said(getattr(line, name), name in SHARES), "scores", **of) for name in MEANS]
        rows.append((escape(line.title), escape(line.world), str(line.runs), *means))
    return table(("", "world", "runs", *MEANS.values()), rows)


def _suggested(spread: dict[str, Calibration]) -> str:
    rows = [
        (
            escape(name),
            f"{sum(one.counts):,}",
            f"{one.suggested:.3f}",
            f"{one.below:.0%}",
            "found and missed evidence are not told apart: the median"
            if one.separation is None
            else f"{one.separation:.2f}",
        )
        for name, one in spread.items()
    ]
    return table(("answers of", "n", "theta_P", "below it", "Youden's J"), rows)


def _said(mean: Mean | None, percent: bool) -> str:
    if mean is None:
        return "-"
    if percent:
        return f"{100 * mean.value:.1f} % [{100 * mean.low:.1f} {100 * mean.high:.1f}]"
    return f"{mean.value:.2f} [{mean.low:.2f} {mean.high:.2f}]"


def _scores(found: Results) -> Rows:
    rows: list[Sequence[Cell]] = [
        (kept.group, kept.arm, kept.world, kept.run, place, *msgspec.structs.astuple(kept.scored))
        for place, kept in enumerate(found.rows)
    ]
    said = "A row is the answer of one run to one question."
    return Rows(
        "scores", (*_WHOSE, *Scored.__struct_fields__), rows, ("run", "world", "arm", "place"), _read(found), said
    )


def _steps(found: Results) -> Rows:
    names = list(dict.fromkeys(name for run in found.runs for step in run.steps for name in step if name != "step"))
    rows = [(run.name, step["step"], *(step.get(name) for name in names)) for run in found.runs for step in run.steps]
    said = "A row is a step of a run, with the metrics it logged."
    return Rows("steps", ("run", "step", *names), rows, ("run", "step"), "metrics.jsonl", said)
