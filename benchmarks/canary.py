"""How often a canary stops by mistake, and how soon it stops a worse candidate: seeded runs, looked at after every session.

python benchmarks/canary.py [--runs 500] [--share 0.05] [--sessions 20000]       the test on success alone
python benchmarks/canary.py --together [--runs 500] [--sessions 20000] [--jobs 2] the gateway's own watch, all metrics at once

A candidate that is no worse is looked at for two fifths of --sessions: it is hardly ever stopped, so each run takes all of them.
"""

import argparse
import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from turnout.conversation import Usage
from turnout.gateway.canary.watch import Watch
from turnout.ledger.outcome import Outcome, Reported
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing import Canary, Passthrough, TargetName
from turnout.routing.canary.watching import METRICS, Watching
from turnout.routing.core import Why
from turnout.sequential.worse import Worse
from turnout.signals import Signals
from turnout.signals.course import Course, Repeat


class Stopped(NamedTuple):
    """After how many sessions a run stopped, how many of them were the candidate's, and by which metric."""

    sessions: int
    candidates: int
    metric: str = "success"


def alone(seed: int, incumbent: float, candidate: float, share: float, most: int, alpha: float) -> Stopped | None:
    """A run on success alone; None = not stopped within `most` sessions."""
    dice, bet, drawn = random.Random(seed), Worse(), 0
    for n in range(1, most + 1):
        arm = dice.random() < share
        drawn += arm
        bet.add(arm, float(dice.random() < (candidate if arm else incumbent)), share)
        if bet.evidence >= 1 / alpha:
            return Stopped(n, drawn)
    return None


class Session(NamedTuple):
    """What a session shows."""

    success: bool
    uncleared: bool
    repeated: bool
    error: bool
    cost_usd: float
    seconds: float
    unheard: bool
    cached: float


def session(dice: random.Random, success: float, told: bool = True) -> Session:
    """A session that succeeds with this probability. What else it shows hangs together with that: sessions that fail leave more
    failures uncleared, go in circles more often and cost more. `told`: False = nothing but the outcome shows how it went."""
    done = dice.random() < success
    failed = not (done if told else dice.random() < 0.7)
    return Session(
        success=done,
        uncleared=dice.random() < (0.35 if failed else 0.05),
        repeated=dice.random() < (0.4 if failed else 0.1),
        error=dice.random() < 0.02,
        cost_usd=dice.lognormvariate(0.0, 1.2) * (1.5 if failed else 1.0),
        seconds=dice.lognormvariate(0.0, 0.6) * (1.2 if failed else 1.0),
        unheard=dice.random() < 0.03,
        cached=dice.betavariate(8.0, 2.0),
    )


Arm = Callable[[random.Random], Session]


def dearer(dice: random.Random) -> Session:
    """As good as the incumbent at twice the cost."""
    found = session(dice, 0.7)
    return found._replace(cost_usd=2.0 * found.cost_usd)


def slower(dice: random.Random) -> Session:
    """As good as the incumbent in twice the time."""
    found = session(dice, 0.7)
    return found._replace(seconds=2.0 * found.seconds)


def uncached(dice: random.Random) -> Session:
    """As good as the incumbent, with half the cache hits."""
    found = session(dice, 0.7)
    return found._replace(cached=0.5 * found.cached)


def unheeded(dice: random.Random) -> Session:
    """As good as the incumbent, but its judge gives no verdict in a fifth of sessions."""
    return session(dice, 0.7)._replace(unheard=dice.random() < 0.2)


def breaking(dice: random.Random) -> Session:
    """As good as the incumbent, but a tenth of sessions meet an error."""
    return session(dice, 0.7)._replace(error=dice.random() < 0.1)


INCUMBENT: Arm = partial(session, success=0.7)
CANDIDATES: tuple[tuple[str, Arm], ...] = (
    ("no difference", INCUMBENT),
    ("10 points less success, and what goes with it", partial(session, success=0.6)),
    ("10 points less success, told by outcomes alone", partial(session, success=0.6, told=False)),
    ("twice the cost", dearer),
    ("twice the time", slower),
    ("half the cache hits", uncached),
    ("a judge without a verdict in a fifth of sessions", unheeded),
    ("errors in a tenth of sessions", breaking),
)

_JUDGES = {False: (), True: (Call("judge", "judge", purpose="judge", unheard="timeout"),)}
_SIGNALS = {
    (uncleared, repeated): Signals(course=Course(troubled=uncleared, failing=(Repeat(2, ()),) if repeated else ()))
    for uncleared in (False, True)
    for repeated in (False, True)
}


def together(seed: int, candidate: Arm, incumbent: Arm, share: float, most: int, alpha: float) -> Stopped | None:
    """A run through the gateway's watch with every metric; None = not stopped within `most` sessions."""
    dice, drawn = random.Random(seed), 0
    routers = Passthrough(TargetName("a")), Passthrough(TargetName("b"))
    watch = Watch("r", Canary(*routers, share=share, watching=Watching(alpha=alpha, settle_s=1.0)))
    whys = {
        arm: Why("canary", "", values={"canary": {"name": "canary", "arm": arm, "share": share}})
        for arm in ("candidate", "incumbent")
    }
    for n in range(1, most + 1):
        arm = "candidate" if dice.random() < share else "incumbent"
        drawn += arm == "candidate"
        watch.turn(
            _record(str(n), 10.0 * n, whys[arm], found := (candidate if arm == "candidate" else incumbent)(dice))
        )
        watch.pass_to(10.0 * n + 1.0)
        watch.outcome(Reported(10.0 * n + 2.0, Outcome(session=str(n), success=found.success)), _nowhere)
        if watch.stop is not None:
            return Stopped(n, drawn, watch.stop.metric)
    return None


def _record(name: str, at: float, why: Why, found: Session) -> TurnRecord:
    cached = int(10_000 * found.cached)
    return TurnRecord(
        name,
        at,
        "r",
        session=name,
        why=why,
        signals=_SIGNALS[found.uncleared, found.repeated],
        calls=_JUDGES[found.unheard],
        usage=Usage(input_tokens=10_000 - cached, output_tokens=100, cache_read_tokens=cached),
        cost_usd=found.cost_usd,
        ended="error" if found.error else "ok",
        total_s=found.seconds,
    )


def _nowhere(turn: str) -> None:
    return None


def line(name: str, found: Sequence[Stopped | None], metrics: bool = False) -> str:
    """One row of the table."""
    hits = [one for one in found if one is not None]
    median = "-"
    if hits:
        sessions, candidates = (statistics.median(one[at] for one in hits) for at in (0, 1))
        median = f"{sessions:.0f} ({candidates:.0f})"
    row = f"| {name} | {len(hits)} of {len(found)} ({len(hits) / len(found):.1%}) | {median} |"
    if not metrics:
        return row
    by = Counter(one.metric for one in hits).most_common()
    return row + " " + (", ".join(f"{metric} {count}" for metric, count in by) or "-") + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--sessions", type=int, default=20_000, help="at most, a run")
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    runs: Any = range(given.runs)
    if given.together:
        print(f"{len(METRICS)} metrics: {', '.join(METRICS)}\n", flush=True)
        print("| candidate | stopped | median sessions until then (the candidate's) | by |\n|---|---|---|---|")
        with ProcessPoolExecutor(given.jobs) as pool:
            for name, candidate in CANDIDATES:
                most = given.sessions if candidate is not INCUMBENT else given.sessions * 2 // 5
                settings = {"share": given.share, "most": most, "alpha": given.alpha}
                run = partial(together, candidate=candidate, incumbent=INCUMBENT, **settings)
                print(line(name, list(pool.map(run, runs, chunksize=5)), metrics=True), flush=True)
        return
    print("| incumbent, candidate | stopped | median sessions until then (the candidate's) |\n|---|---|---|")
    for incumbent, candidate in ((0.7, 0.7), (0.9, 0.9), (0.7, 0.6), (0.9, 0.8), (0.5, 0.4), (0.7, 0.75)):
        found = [alone(seed, incumbent, candidate, given.share, given.sessions, given.alpha) for seed in runs]
        print(line(f"{incumbent:.0%}, {candidate:.0%}", found), flush=True)


if __name__ == "__main__":
    main()
