"""How long the collaboration router itself takes a hop: its own work between model calls, which here answer at once.

    PYTHONPATH=src python benchmarks/collaboration.py [--turns 300] [--chars 4000]

Everybody disapproves of every answer in the published mode, so each turn has `alpha` hops with a vote of both anchors, on a
conversation of `chars` characters. The time is that of the router's process alone: prompts, keys, checks, tallies, the account.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

from turnout.conversation import Conversation, Message, Reply, Settings, Text, Usage
from turnout.routing import Collaboration, Lane, TargetName, Turn
from turnout.routing.collaboration.graph import read
from turnout.signals import observe
from turnout.steps import Run

GRAPH = Path(__file__).parents[1] / "src/turnout/cli/presets/collaboration-graph.json"


def turn_of(number: int, chars: int) -> Turn:
    """A turn that asks about a text of so many characters."""
    asked = Conversation((Message("user", (Text("What is 17 x 24? " + "word " * (chars // 5)),)),))
    return Turn(f"t{number}", Lane(), asked, Settings(), observe(asked), {}, now=1.8e9)


def outcome_of(purpose: str, number: int, chars: int) -> Reply:
    """An answer of its own, or a vote against one."""
    usage = Usage(1000, 50)
    if purpose == "vote":
        return Reply(
            (Text(json.dumps({"reason": "The sum is wrong.", "severity": "major", "approve": False})),), usage=usage
        )
    return Reply((Text(f"answer {number} " + "word " * (chars // 5)),), usage=usage)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--chars", type=int, default=4000)
    given = parser.parse_args()
    graph = read(GRAPH.read_bytes(), str(GRAPH))
    router = Collaboration(
        "graph.json", {name: TargetName(name) for name in graph.models}, mode="paper", alpha=3, prefer=("dune",)
    )
    router.bind(graph)
    spent, hops = [], 0
    for number in range(given.turns):
        turn = turn_of(number, given.chars)
        began = time.process_time()
        run: Run = Run(router.route(turn))
        made = time.process_time() - began
        count = 0
        while not run.done:
            outcomes = [outcome_of(ask.purpose, count + at, given.chars) for at, ask in enumerate(run.pending)]
            count += len(outcomes)
            began = time.process_time()
            run.feed(outcomes)
            made += time.process_time() - began
        hops = len(run.result.why.values["hops"])
        spent.append(made / hops * 1000)
    spent.sort()
    figures = {
        "turns": given.turns,
        "chars": given.chars,
        "hops_per_turn": hops,
        "ms_per_hop_median": round(statistics.median(spent), 3),
        "ms_per_hop_p99": round(spent[int(0.99 * len(spent))], 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
