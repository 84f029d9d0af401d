"""How far the turn map's labels agree with a person's: `python benchmarks/turns.py [DATA]`.

Prints JSON: for each draw of `benchmarks/labels/turns.jsonl` the share of turns with the same label, kappa, precision and recall
of each label with 95 % intervals, and the confusion; the same for cheap work or not. DATA: folder of
recorded data (default: TURNOUT_SHARED, else ../shared).
"""

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnout.evaluate.importers.formats import BY_NAME
from turnout.evaluate.importers.run import Options, items
from turnout.evaluate.importers.source import Source
from turnout.evaluate.scores import confusion, kappa, score
from turnout.evaluate.turnmap_labels import CHEAP, LABELS, labelled
from turnout.ledger.trace import TurnRecord
from turnout.pricing import Prices
from turnout.statistics.shares import share

LABELLED = Path(__file__).parent / "labels" / "turns.jsonl"
AIDER = 13
"""The first row of the collection that is an aider history; the rows before are agents with tools."""


def said(path: Path) -> dict[tuple[int, int], str | None]:
    """The label of every turn of a collection, by row and message from 0."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    places = iter(
        [(r, i) for r, row in enumerate(rows) for i, m in enumerate(row["messages"]) if m["role"] == "assistant"]
    )
    named: dict[str, tuple[int, int]] = {}

    def turns() -> Iterator[TurnRecord]:
        for item in items(Source(path), BY_NAME["openai-chat"], Options(), Prices.load())[1]:
            if isinstance(item, TurnRecord):
                named[item.id] = next(places)
                yield item

    return {named[one.turn.id]: one.label for one in labelled(turns())}


def figures(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """How far hand (first) and map (second) agree."""
    counts = confusion(pairs)
    agree = kappa(pairs)
    return {
        "turns": len(pairs),
        "same": str(share(sum(a == b for a, b in pairs), len(pairs))),
        "cheap or not": str(share(sum((a in CHEAP) == (b in CHEAP) for a, b in pairs), len(pairs))),
        "cheap by hand": str(share(sum(a in CHEAP for a, _ in pairs), len(pairs))),
        "cheap by the map": str(share(sum(b in CHEAP for _, b in pairs), len(pairs))),
        "kappa": None if agree is None else round(agree, 2),
        "labels": {
            name: {"n": found.labelled, "precision": str(found.precision), "recall": str(found.recall)}
            for name in LABELS
            for found in [score((a == name, b == name) for a, b in pairs)]
        },
        "confusion": {a: {b: counts.get(a, {}).get(b, 0) for b in LABELS} for a in LABELS},
    }


def main(arguments: list[str]) -> None:
    """Print the figures."""
    root = Path(__file__).parents[1]
    given = (
        [Path(arguments[0])]
        if arguments
        else [Path(os.environ.get("TURNOUT_SHARED") or root.parent / "shared") / "data"]
    )
    path = given[0] / "traces" / "sessions_coding_agents.jsonl.gz"
    found = said(path)
    labels = [row for row in map(json.loads, LABELLED.read_text("utf-8").splitlines()) if row["label"]]
    first = [row for row in labels if row["draw"] != 20261202]
    sets = {
        "first draws": first,
        "first draws, agents with tools": [row for row in first if row["row"] < AIDER],
        "first draws, aider": [row for row in first if row["row"] >= AIDER],
        "held out, agents with tools": [row for row in labels if row["draw"] == 20261202],
        "all": labels,
    }
    for name, rows in sets.items():
        pairs = [(row["label"], str(found[row["row"], row["message_index"]])) for row in rows]
        print(json.dumps({"set": name, **figures(pairs)}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
