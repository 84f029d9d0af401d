"""How often a canary stops by mistake, and how soon it stops a worse candidate: seeded runs, looked at after every session.

python benchmarks/canary.py [--runs 500] [--share 0.05] [--sessions 20000]
"""

import argparse
import random
import statistics
from collections.abc import Sequence

from turnout.sequential.worse import Worse


def stopped(
    seed: int, incumbent: float, candidate: float, share: float, most: int, alpha: float
) -> tuple[int, int] | None:
    """After how many sessions, and how many of the candidate's, a run stops; None = not within `most`."""
    dice, bet, drawn = random.Random(seed), Worse(), 0
    for n in range(1, most + 1):
        arm = dice.random() < share
        drawn += arm
        bet.add(arm, float(dice.random() < (candidate if arm else incumbent)), share)
        if bet.evidence >= 1 / alpha:
            return n, drawn
    return None


def line(name: str, found: Sequence[tuple[int, int] | None]) -> str:
    """One row of the table."""
    hits = [one for one in found if one is not None]
    median = "-"
    if hits:
        median = f"{statistics.median(n for n, _ in hits):.0f} ({statistics.median(n for _, n in hits):.0f})"
    return f"| {name} | {len(hits)} of {len(found)} ({len(hits) / len(found):.1%}) | {median} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--alpha", type=float, default=0.05)
    given = parser.parse_args()
    print("| incumbent, candidate | stopped | median sessions until then (the candidate's) |\n|---|---|---|")
    for incumbent, candidate in ((0.7, 0.7), (0.9, 0.9), (0.7, 0.6), (0.9, 0.8), (0.5, 0.4), (0.7, 0.75)):
        runs = [
            stopped(seed, incumbent, candidate, given.share, given.sessions, given.alpha) for seed in range(given.runs)
        ]
        print(line(f"{incumbent:.0%}, {candidate:.0%}", runs), flush=True)


if __name__ == "__main__":
    main()
