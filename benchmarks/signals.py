"""Signals against labels: Turnout and nemo-switchyard 0.3.0 side by side on the same inputs.

    python benchmarks/signals.py [--sy VENV] [--out FOLDER] [FOLDER]
    python benchmarks/signals.py --sample 300 --seed 1 [--all] [--ask | --draft] [FOLDER]
    python benchmarks/signals.py --cost

FOLDER holds the recordings and `labels_tool_results.jsonl`, `labels_windows.jsonl`; default: `traces` in $TURNOUT_SHARED/data,
else in `../shared/data` beside the repository. Labels of our own lie in `benchmarks/labels`; of those, the half `second` was
not looked at while rules were written. Prints the figures as Markdown; `--out` also writes them as JSON and as a plot. Which
labels Turnout misses, and why, says `turnout observe --labels FILE --data FOLDER --errors`.

`--sample` draws tool results at random that nobody labelled and prints what Turnout calls a failure that matters, with call,
excerpt and evidence, for reading by hand (`--all`: every result drawn). What a reader says goes to `benchmarks/labels/
false_alarms.jsonl`: `--ask` asks for it result by result, `--draft` writes a line for each alarm not yet read, with the verdict
`unread` to be replaced by `right`, `false_alarm` or `unclear`; `missed` is for results that should have been called one.

`--cost` measures what observing a long turn costs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import signals_sample
from signals_contenders import THRESHOLDS, Verdicts, switchyard, turnout

from turnout.errors import ConfigError
from turnout.evaluate.agreement import MATTERING, MATTERS, Agreement, agreement
from turnout.evaluate.labels import Labelled, labelled
from turnout.signals import observe
from turnout.statistics.shares import Share, share
from turnout.wire import CODECS

LABELS = Path(__file__).resolve().parent / "labels"
OURS = ("results.jsonl", "windows.jsonl")
SHARED = ("labels_tool_results.jsonl", "labels_windows.jsonl")
WITHHELD = ("returncode",)
"""Recorders keep return codes beside results; no wire format carries them, and one contender could not be told."""

WANTED = {
    (MATTERING, "precision"): 0.93,
    (MATTERING, "recall"): 0.88,
    ("critical", "precision"): 0.8,
    ("critical", "recall"): 0.8,
    ("tests_passed", "precision"): 0.95,
    ("tests_passed", "recall"): 0.9,
    ("tool kind", "accuracy"): 0.95,
    ("repeated", "F1"): 0.8,
    ("spinning", "F1"): 0.8,
}


def default_folder() -> Path:
    """Where the recordings lie."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    return Path(os.environ.get("TURNOUT_SHARED", str(beside))) / "data" / "traces"


def label_sets(folder: Path) -> list[tuple[str, Labelled]]:
    """The sets of labels by name: the shared ones, and each half of our own."""
    found = [("shared", _both([labelled(folder / name, folder, WITHHELD) for name in SHARED]))]
    ours = _both([labelled(LABELS / name, folder, WITHHELD) for name in OURS if (LABELS / name).exists()])
    for half in sorted({str(one.row.get("split", "")) for one in (*ours.results, *ours.windows)}):
        part = Labelled(
            tuple(one for one in ours.results if str(one.row.get("split", "")) == half),
            tuple(one for one in ours.windows if str(one.row.get("split", "")) == half),
        )
        found.append((f"new, {half} half" + (" (unseen)" if half == "second" else ""), part))
    return found


def _both(parts: Sequence[Labelled]) -> Labelled:
    return Labelled(tuple(x for p in parts for x in p.results), tuple(x for p in parts for x in p.windows))


def report(sets: Sequence[tuple[str, Labelled]], venv: Path | None) -> dict[str, Any]:
    """All figures, by set, question, measure and contender."""
    names: list[str] = []
    made = []
    for name, read in sets:
        said = [turnout(read), *([switchyard(read, venv)] if venv else [])]
        names = [one.name for one in said]
        agreements = [_agreement(read, one) for one in said]
        rows: dict[tuple[str, str], dict[str, Share]] = {}
        for one, agreed in zip(said, agreements, strict=True):
            for question, measure, value in [*_questions(agreed), *_decisions(read, one)]:
                rows.setdefault((question, measure), {})[one.name] = value
        made.append({
            "name": name,
            "results": len(read.results),
            "windows": len(read.windows),
            "rows": [{"question": q, "measure": m, "shares": msgspec.to_builtins(s)} for (q, m), s in rows.items()],
            "curves": {one.name: _curve(read, one) for one in said},
            "agreement": {one.name: msgspec.to_builtins(agreed) for one, agreed in zip(said, agreements, strict=True)},
        })  # fmt: skip
    return {"contenders": names, "intervals": "95 % Wilson score intervals", "sets": made}


def _agreement(read: Labelled, said: Verdicts) -> Agreement:
    return agreement(
        list(zip((one.label for one in read.results), said.results, strict=True)),
        list(zip((one.label for one in read.windows), said.windows, strict=True)),
    )


def _questions(agreed: Agreement) -> list[tuple[str, str, Share]]:
    made = []
    for question in (MATTERING, "critical", "tests_passed"):
        one = agreed.scores[question]
        made += [(question, "precision", one.precision), (question, "recall", one.recall), (question, "F1", one.f1)]
    if agreed.kinds.of:
        made.append(("tool kind", "accuracy", agreed.kinds))
    for question, one in agreed.windows.items():
        if one.labelled:
            made += [(question, "precision", one.precision), (question, "recall", one.recall), (question, "F1", one.f1)]
    return made


def _decisions(read: Labelled, said: Verdicts) -> list[tuple[str, str, Share]]:
    """How often the next turn goes to the capable model where the label calls for it, and where it does not."""
    needed = [one.label.error_class in MATTERS for one in read.results if one.label.error_class is not None]
    made = []
    for how, decided in (("capable model, no memory", said.alone), ("capable model, in session", said.session)):
        up = [x for x, one in zip(decided, read.results, strict=True) if one.label.error_class is not None]
        chosen = [x for x, wanted in zip(up, needed, strict=True) if wanted]
        others = [x for x, wanted in zip(up, needed, strict=True) if not wanted]
        if needed:
            made += [(how, "where needed", share(sum(chosen), len(chosen)))]
            made += [(how, "elsewhere", share(sum(others), len(others)))]
    return made


def _curve(read: Labelled, said: Verdicts) -> list[dict[str, Any]]:
    """How often the capable model is chosen where it is needed and elsewhere, without memory, by threshold."""
    made = []
    for number, threshold in enumerate(THRESHOLDS):
        rows = [(one.label.error_class, up[number]) for one, up in zip(read.results, said.curve, strict=True)]
        needed = [up for truth, up in rows if truth in MATTERS]
        others = [up for truth, up in rows if truth is not None and truth not in MATTERS]
        shares = {"where needed": share(sum(needed), len(needed)), "elsewhere": share(sum(others), len(others))}
        made.append({"threshold": threshold, **msgspec.to_builtins(shares)})
    return made


def markdown(told: dict[str, Any]) -> str:
    """The figures as tables: all sets in one, then each with counts, thresholds and confusions."""
    lines = [*_summary(told), ""]
    for one in told["sets"]:
        lines += [f"**{one['name']}**: {one['results']} results, {one['windows']} windows", ""]
        lines += [
            f"| | | {' | '.join(told['contenders'])} | wanted |",
            "|---|---|" + "---|" * (len(told["contenders"]) + 1),
        ]
        before = ""
        for row in one["rows"]:
            cells = [_cell(row["shares"].get(name)) for name in told["contenders"]]
            wanted = WANTED.get((row["question"], row["measure"]))
            question = "" if row["question"] == before else row["question"]
            before = row["question"]
            lines.append(
                f"| {question} | {row['measure']} | {' | '.join(cells)} | {'' if wanted is None else f'{wanted:.2f}'} |"
            )
        lines.append("")
        lines += [*_thresholds(one["curves"]), ""] if one["results"] else []
        for name, agreed in one["agreement"].items():
            lines += [f"{name}, labelled class by what it says:", "", *_confusion(agreed["confusion"]), ""]
    return "\n".join(lines)


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not told apart"
    if found["value"] is None:
        return "none called" if not found["of"] else "-"
    return f"{found['value']:.2f} [{found['low']:.2f} {found['high']:.2f}] {found['hits']}/{found['of']}"


def _summary(told: dict[str, Any]) -> list[str]:
    """What is wanted, and the decisions, in all sets."""
    columns = [(one, name) for one in told["sets"] for name in told["contenders"]]
    lines = [f"| | {' | '.join(one['name'] + ': ' + name for one, name in columns)} | wanted |"]
    lines.append("|---|" + "---|" * (len(columns) + 1))
    found = [{(row["question"], row["measure"]): row["shares"] for row in one["rows"]} for one in told["sets"]]
    asked = [place for place in dict.fromkeys(place for rows in found for place in rows) if _summed(*place)]
    for place in asked:
        cells = [_short(rows.get(place, {}).get(name)) for rows in found for name in told["contenders"]]
        wanted = f"{WANTED[place]:.2f}" if place in WANTED else ""
        lines.append(f"| {', '.join(place)} | {' | '.join(cells)} | {wanted} |")
    return lines


def _summed(question: str, measure: str) -> bool:
    return (question, measure) in WANTED or question.startswith("capable model")


def _short(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    return "none called" if found["value"] is None else f"{found['value']:.2f} [{found['low']:.2f} {found['high']:.2f}]"


def _thresholds(curves: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Both routers at every threshold: capable model where needed, and elsewhere."""
    first = next(iter(curves.values()))
    lines = [
        f"| capable model by threshold | {' | '.join(str(at['threshold']) for at in first)} |",
        "|---|" + "---|" * len(first),
    ]
    for name, curve in curves.items():
        for where in ("where needed", "elsewhere"):
            cells = ("-" if at[where]["value"] is None else f"{at[where]['value']:.2f}" for at in curve)
            lines.append(f"| {name}, {where} | {' | '.join(cells)} |")
    return lines


def _confusion(counts: dict[str, dict[str, int]]) -> list[str]:
    names = list(counts)
    rows = [f"| {truth} | {' | '.join(str(counts[truth][said]) for said in names)} |" for truth in names]
    return [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names), *rows]


def cost_us() -> tuple[float, float]:
    """Microseconds to observe a 99 KB turn of 120 messages, first and once its history is known."""
    codec = CODECS["openai_chat"]
    body = long_turn()
    first = time.perf_counter()
    observe(codec.read_request(body).conversation)
    cold = time.perf_counter() - first
    spent = []
    for _ in range(200):
        conversation = codec.read_request(body).conversation
        began = time.perf_counter()
        observe(conversation)
        spent.append(time.perf_counter() - began)
    return cold * 1e6, sorted(spent)[len(spent) // 2] * 1e6


def long_turn() -> bytes:
    """A Chat request of about 99 KB: one task, then 59 calls with results."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "x" * 2000},
        {"role": "user", "content": "Fix the bug."},
    ]
    for i in range(59):
        call = {
            "id": f"c{i}",
            "type": "function",
            "function": {"name": "bash", "arguments": f'{{"command": "cat src/m{i}.py"}}'},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": f"line {i}\n" + "y = 1\n" * 230})
    return json.dumps({"model": "coder", "messages": messages}).encode()


def sample(chosen: argparse.Namespace) -> None:
    """Draw, show, ask; print the false-alarm rate."""
    known = [*(chosen.folder / name for name in SHARED), *(LABELS / name for name in OURS)]
    places, labelled_ones = signals_sample.population(chosen.folder), signals_sample.labelled_places(known)
    chance = signals_sample.drawn(places, labelled_ones, chosen.sample, chosen.seed)
    drawn = list(signals_sample.observed(chosen.folder, chance))
    found = signals_sample.verdicts(chosen.verdicts)
    shown = [(p, one) for p, one in drawn if chosen.all or one.seen.error_class in MATTERS]
    if chosen.draft:
        signals_sample.keep(chosen.verdicts, signals_sample.draft(drawn, found))
    elif chosen.ask:
        for number, (place, one) in enumerate(shown, 1):
            if place not in found or found[place].verdict == "unread":
                verdict = signals_sample.ask(number, one, place, chosen.excerpt)
                if verdict is None:
                    break
                found[place] = verdict
                signals_sample.keep(chosen.verdicts, found)
    elif not chosen.quiet:
        for number, (place, one) in enumerate(shown, 1):
            print(signals_sample.show(number, one, found.get(place), chosen.excerpt))
    told = signals_sample.figures(drawn, found)
    print(
        f"\n{len(places)} results, {len(labelled_ones)} of them labelled, {len(drawn)} others drawn with seed {chosen.seed}\n"
    )
    signals_sample.print_figures(told)
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "false_alarms.json").write_text(json.dumps({"seed": chosen.seed, **told}, indent=1) + "\n")


def main() -> int:
    """Do what the command line says."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", nargs="?", type=Path, default=default_folder())
    options.add_argument("--sy", type=Path, metavar="VENV", help="virtual environment with nemo-switchyard 0.3.0")
    options.add_argument("--out", type=Path, metavar="FOLDER", help="write JSON and the plot (needs matplotlib) here")
    options.add_argument("--cost", action="store_true", help="measure the cost of observing a long turn")
    options.add_argument("--sample", type=int, metavar="N", help="draw N unlabelled results for reading by hand")
    options.add_argument("--seed", type=int, default=1, help="of the draw")
    options.add_argument("--all", action="store_true", help="show every result drawn")
    options.add_argument("--quiet", action="store_true", help="show none, only the rate")
    options.add_argument("--excerpt", type=int, default=900, metavar="N", help="characters of call and result to show")
    options.add_argument("--ask", action="store_true", help="ask for a verdict on each result shown that has none")
    options.add_argument("--draft", action="store_true", help="write a line for each alarm without a verdict")
    options.add_argument("--verdicts", type=Path, default=LABELS / "false_alarms.jsonl", metavar="FILE")
    chosen = options.parse_args()
    if chosen.cost:
        cold, warm = cost_us()
        print(f"99 KB turn of 120 messages: {cold:.0f} us first, {warm:.0f} us once its history is known")
        return 0
    try:
        if chosen.sample:
            sample(chosen)
            return 0
        told = report(label_sets(chosen.folder), chosen.sy)
    except (ConfigError, FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(markdown(told))
    if chosen.out:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "signals.json").write_text(json.dumps(told, indent=1) + "\n")
        from signals_plot import plot

        plot(told, WANTED, chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
