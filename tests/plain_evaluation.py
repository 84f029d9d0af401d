"""The comparison of two models, computed a second time: plainly, from the definitions, with none of the package's code."""

import gzip
import json
import math
import random
from collections import defaultdict
from pathlib import Path
from typing import Any


def plain(path: Path, capable: tuple[str, str | None], efficient: tuple[str, str | None]) -> dict[str, Any]:
    """Every figure of the comparison of two (model, harness) arms over an outcome file."""
    runs: dict[tuple[str, str | None], dict[str, dict[Any, Any]]] = {
        capable: defaultdict(dict),
        efficient: defaultdict(dict),
    }
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            arm = (row["model"], row.get("harness"))
            if arm in runs:
                runs[arm][row.get("task_id") or row["query_id"]][row.get("trial")] = (row["success"], row["cost_usd"])
    units = [
        (task, runs[capable][task][trial], runs[efficient][task][trial])
        for task in runs[capable]
        for trial in runs[capable][task]
        if trial in runs[efficient].get(task, {})
    ]
    found: dict[str, Any] = {"n": len(units), "tasks": len({task for task, *_ in units})}
    sets = {"SAFE": 0, "LOSS": 0, "RESCUE": 0, "HARD": 0}
    rows = []
    for task, (good_c, usd_c), (good_e, usd_e) in units:
        if good_c and good_e:
            sets["SAFE"] += 1
        elif good_c:
            sets["LOSS"] += 1
        elif good_e:
            sets["RESCUE"] += 1
        else:
            sets["HARD"] += 1
        costed = usd_c is not None and usd_e is not None
        best = None
        if costed:
            # Of the successes, else of the failures, the cheaper.
            pool = [(usd, good) for usd, good in ((usd_c, good_c), (usd_e, good_e)) if good == (good_c or good_e)]
            best = min(pool)[0]
        rows.append((task, good_c, good_e, good_c or good_e, costed, usd_c, usd_e, best))
    found["quadrants"] = sets
    found["n_cost"] = sum(row[4] for row in rows)
    for place, name in enumerate(("capable", "efficient", "oracle")):
        paid = [row[5 + place] for row in rows if row[4]]
        done = sum(row[1 + place] for row in rows if row[4])
        ordered = sorted(paid)
        found[name] = {
            "success": sum(row[1 + place] for row in rows) / len(rows),
            "interval": _bootstrap([(row[0], row[1 + place], 1) for row in rows]),
            "total": sum(paid),
            "mean": sum(paid) / len(paid),
            "mean_interval": _bootstrap([(row[0], row[5 + place] if row[4] else 0.0, row[4]) for row in rows]),
            "per_completed": sum(paid) / done,
            "p50": _percentile(ordered, 0.5),
            "p90": _percentile(ordered, 0.9),
            "p95": _percentile(ordered, 0.95),
            "max": ordered[-1],
        }
    found["cascade_total"] = sum(row[6] + (0 if row[2] else row[5]) for row in rows if row[4])
    found["mcnemar"] = _mcnemar(units)
    found["control"] = {}
    for name, arm in (("capable", capable), ("efficient", efficient)):
        shares = []
        for task in {task for task, *_ in units}:
            trials = [good for good, _ in runs[arm][task].values()]
            if len(trials) > 1:
                pairs = [(a, b) for i, a in enumerate(trials) for j, b in enumerate(trials) if i != j]
                shares.append(sum(a and not b for a, b in pairs) / len(pairs))
        found["control"][name] = sum(shares) / len(shares) if shares else None
    return found


def _mcnemar(units: list[Any]) -> float:
    first: dict[str, tuple[bool, bool]] = {}
    for task, (good_c, _), (good_e, _) in units:
        first.setdefault(task, (good_c, good_e))
    b = sum(c and not e for c, e in first.values())
    c = sum(e and not c for c, e in first.values())
    return min(1.0, 2 * sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c))


def _percentile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _bootstrap(rows: list[tuple[str, float, float]], resamples: int = 3000) -> tuple[float, float]:
    """95 % percentile interval of sum(top) / sum(bottom), tasks drawn with replacement; other dice than the package's."""
    by_task: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for task, top, bottom in rows:
        by_task[task][0] += top
        by_task[task][1] += bottom
    sums = list(by_task.values())
    dice = random.Random(7)
    drawn = []
    for _ in range(resamples):
        sample = dice.choices(sums, k=len(sums))
        below = sum(one[1] for one in sample)
        if below:
            drawn.append(sum(one[0] for one in sample) / below)
    drawn.sort()
    return _percentile(drawn, 0.025), _percentile(drawn, 0.975)
