"""Replays a ledger of stage turns: every decision must come out as it was, and how long that takes on one core.

    python benchmarks/replay.py [--turns 100000] [--seed 1] [--capture signals]

Writes agents' sessions of 20 to 60 turns through the ledger's own writer, each turn decided by a stage router from the signals of
its conversation, the lane's memory and what its caches hold; then decides them all again, as `turnout replay` does. It fails
(exit 1) when a decision differs.
"""

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from turnout.conversation import Usage
from turnout.evaluate.recordings import read_conversation
from turnout.evaluate.replay_report import ReplayReport, Tally
from turnout.evaluate.replaying import Candidate, Replaying
from turnout.gateway.config import Route, parse
from turnout.gateway.facts import facts
from turnout.ledger.store import Ledger
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing.rates import cost
from turnout.routing.core import Forward, Lane, Placed, State, TargetFacts, Turn
from turnout.routing.warmth import Warmed
from turnout.sessions.store import folded
from turnout.signals import Signals, observe

TOML = """
[upstreams.vendor]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
[targets.small]
upstream = "vendor"
model = "small"
price = { input = 0.25, output = 2.0, cache_read = 0.025 }
[targets.large]
upstream = "vendor"
model = "large"
price = { input = 3.0, output = 15.0, cache_read = 0.3 }
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
"""
PROSE = "The parser keeps a cursor into the token list and advances it only when a rule matches. "
FAILED = "FAILED tests/test_{n}.py::test_{n} - AssertionError: {n} != {m}\\n==== {n} failed, 12 passed in 0.{m}1s ===="
TRACEBACK = 'Traceback (most recent call last):\\n  File "tool_{n}.py", line {m}\\nValueError: bad {m}'
STEPS: tuple[tuple[str, dict[str, str], str], ...] = (
    ("Read", {"file_path": "src/part_{n}.py"}, PROSE * 20),
    ("Grep", {"pattern": "def rule_{n}"}, "src/part_{n}.py:12: def rule_{n}(self):\\n" * 6),
    ("Edit", {"file_path": "part_{n}.py", "old_string": "a{m}", "new_string": "b{m}"}, "The file part_{n}.py has been updated."),
    ("Bash", {"command": "pytest -q tests/test_{n}.py"}, FAILED),
    ("Bash", {"command": "pytest -q tests/test_{n}.py"}, "==== 12 passed in 0.{m}1s ===="),
    ("Bash", {"command": "python tool_{n}.py"}, TRACEBACK),
    ("Bash", {"command": "ls src"}, "part_1.py\\npart_2.py"),
)  # fmt: skip


def conversations(dice: random.Random, kinds: int) -> list[list[tuple[Signals, int]]]:
    """For each kind of session, the signals and the prompt's tokens turn by turn."""
    found = []
    for _ in range(kinds):
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": f"Make the tests of part {dice.random()} pass. {PROSE * 30}"}
        ]
        turns: list[tuple[Signals, int]] = []
        for step in range(dice.randint(20, 60)):
            text = json.dumps({"messages": messages}).encode()
            turns.append((observe(read_conversation(text).conversation), 9_000 + len(text) // 4))
            name, arguments, output = dice.choice(STEPS)
            n, m = dice.randint(1, 3), dice.randint(1, 4)
            filled = json.dumps({k: v.format(n=n, m=m) for k, v in arguments.items()})
            function = {"name": name, "arguments": filled}
            call = {"id": f"c{step}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append(
                {"role": "tool", "tool_call_id": f"c{step}", "content": output.replace("\\n", "\n").format(n=n, m=m)}
            )
            if dice.random() < 0.04:
                messages += [
                    {"role": "assistant", "content": "Done."},
                    {"role": "user", "content": f"Not yet: {n} {m}."},
                ]
        found.append(turns)
    return found


def records(route: Route, targets: Any, turns: int, seed: int) -> Iterator[TurnRecord]:
    """So many turns, several sessions at a time as a gateway would see them."""
    dice = random.Random(seed)
    kinds = conversations(dice, 200)
    running: list[tuple[str, list[tuple[Signals, int]], dict[str, State], int]] = []
    at, made = 1_700_000_000.0, 0
    for n in range(turns):
        while len(running) < 50:
            running.append((f"session-{made:07d}", kinds[made % len(kinds)], {}, 0))
            made += 1
        index = dice.randrange(len(running))
        session, steps, memory, step = running[index]
        at += dice.expovariate(10.0)
        record, memory = recorded(route, targets, f"t{n:012d}", at, session, steps[step], memory, dice)
        yield record
        if step + 1 < len(steps):
            running[index] = (session, steps, memory, step + 1)
        else:
            del running[index]


def recorded(
    route: Route,
    targets: dict[Any, TargetFacts],
    name: str,
    at: float,
    session: str,
    seen: tuple[Signals, int],
    memory: dict[str, State],
    dice: random.Random,
) -> tuple[TurnRecord, dict[str, State]]:
    """A turn as the gateway records it, and what the lane remembers after it."""
    signals, prompt = seen
    lane = Lane("", session, "", "header")
    conversation: Any = None
    turn = Turn(name, lane, conversation, conversation, signals, targets, memory, at, 600.0, "coder")
    decision = route.router.route(turn)
    assert isinstance(decision, Forward)
    read = int(prompt * 0.9) if memory else 0
    usage = Usage(prompt - read, dice.randint(50, 900), read, 0)
    charged = cost(usage, targets[decision.target].rates)
    call = Call(decision.target, decision.target, served=True, status=200, usage=usage, cost_usd=charged.usd, reply="r")
    warmed = Warmed(decision.target, at, 1, prompt * 4, prompt, usage.output_tokens or 0, prompt)
    record = TurnRecord(
        id=name, at=at, route=route.name, policy=route.policy, router=route.kind, session=session, rung="header",
        format="openai_chat", upstream_format="openai_chat", stream=True, asked_for="coder", target=decision.target,
        model=decision.target, why=decision.why, signals=signals, memory=memory, remembered=decision.remember, calls=(call,),
        usage=usage, cost_usd=charged.usd, decision_s=0.0002, first_byte_s=0.4, total_s=3.0,
    )  # fmt: skip
    return record, folded(memory, (*decision.remember, Placed("gateway", warmed)))


def write(url: str, turns: int, seed: int, config: Any) -> None:
    """Fill a ledger."""
    route, targets = config.routes["coder"], facts(config)
    ledger = Ledger.open(url)
    for n, record in enumerate(records(route, targets, turns, seed)):
        ledger.append(record)
        if n % 5000 == 0:
            ledger.flush(60)
    ledger.flush(120)
    ledger.close()


def replayed(url: str, config: Any, changed: dict[str, Any]) -> ReplayReport:
    """Decide every turn again. `changed`: fields of the router that are others."""
    route = config.routes["coder"]
    router = msgspec.structs.replace(route.router, **changed)
    candidate = Candidate("coder", router, "another" if changed else route.policy, route.fault)
    ledger, tally = Ledger.read(url), Tally()
    replaying = Replaying(lambda _: candidate, facts(config), ledger.request, config.server.deadline_s)
    with ledger.whole_lanes() as turns:
        for one in replaying.turns(record for record, _ in turns):
            tally.add(one)
    ledger.close()
    return tally.report()


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, help="where to keep the ledger; it is used again where it exists")
    given = parser.parse_args()
    config = parse(TOML)
    with tempfile.TemporaryDirectory() as folder:
        file = given.ledger or Path(folder) / "turnout.db"
        url = f"sqlite:///{file}"
        if not file.exists():
            began = time.perf_counter()
            write(url, given.turns, given.seed, config)
            print(f"written in {time.perf_counter() - began:.0f} s, {file.stat().st_size / 2**20:.0f} MiB", flush=True)
        wrong = 0
        for name, changed in (("its own router", {}), ("another: threshold 0.7", {"threshold": 0.7})):
            began, cpu = time.perf_counter(), time.process_time()
            report = replayed(url, config, changed)
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
            rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            wrong += report.replayed < report.turns or report.own.exact < report.own.turns
            print(
                f"{name}: {report.turns:,} turns, {report.replayed:,} replayed, {report.own.exact:,} of {report.own.turns:,} "
                f"exact, {report.agreed:,} agree; {wall:.1f} s, {cpu:.1f} CPU s, {report.turns / wall:,.0f} turns/s, "
                f"{rss:.0f} MiB",
                flush=True,
            )
            for other in report.own.different[:3]:
                print("  ", other)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
