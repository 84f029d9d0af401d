"""Draw turns at random from recorded sessions and show them for labelling: `python draw_turns.py DATA [SEED] [N]`.

Prints what a person needs to say what a turn is for: what was asked, the results before it, what it says and does.
"""

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

COLLECTION = "sessions_coding_agents"
SEED, N = 20261130, 100


def turns(folder: Path) -> list[tuple[int, int]]:
    """Every turn of the collection: row and message, from 0."""
    return [
        (r, i) for r, row in enumerate(rows(folder)) for i, m in enumerate(row["messages"]) if m["role"] == "assistant"
    ]


def rows(folder: Path) -> list[dict[str, Any]]:
    """The sessions."""
    with gzip.open(folder / "traces" / f"{COLLECTION}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def draw(folder: Path, seed: int = SEED, n: int = N) -> list[tuple[int, int]]:
    """`n` turns, each as likely as any other."""
    return sorted(random.Random(seed).sample(turns(folder), n))


def shown(messages: list[dict[str, Any]], at: int) -> str:
    """A turn with what stands around it."""

    def cut(text: Any, size: int) -> str:
        flat = " ".join(str(text or "").split())
        return flat if len(flat) <= size else f"{flat[: size * 2 // 3]} ... {flat[-size // 3 :]}"

    lines = []
    asked = next((m for m in reversed(messages[:at]) if m["role"] == "user"), None)
    lines.append(f"  asked: {cut(asked['content'], 160) if asked else '-'}")
    before = messages[max(at - 3, 0) : at]
    for m in before:
        calls = " ".join(
            f"{c['function']['name']}({cut(c['function']['arguments'], 110)})" for c in m.get("tool_calls") or []
        )
        flags = {k: m[k] for k in ("is_error", "returncode") if k in m}
        lines.append(f"  {m['role']}{flags or ''}: {cut(m['content'], 200)} {calls}")
    m = messages[at]
    calls = " ".join(
        f"{c['function']['name']}({cut(c['function']['arguments'], 330)})" for c in m.get("tool_calls") or []
    )
    thinks = f"[thinks: {cut(m['reasoning'], 120)}] " if m.get("reasoning") else ""
    lines.append(f"  > TURN: {cut(m['content'], 330)} {thinks}{calls}")
    for m in messages[at + 1 : at + 2]:
        lines.append(f"  then {m['role']}: {cut(m['content'], 110)}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Show the turns drawn."""
    folder = Path(arguments[0])
    seed, n = int(arguments[1]) if len(arguments) > 1 else SEED, int(arguments[2]) if len(arguments) > 2 else N
    sessions = rows(folder)
    for k, (row, at) in enumerate(draw(folder, seed, n)):
        print(f"{k} row {row} message {at} {sessions[row]['harness'][:14]}\n{shown(sessions[row]['messages'], at)}")


if __name__ == "__main__":
    main(sys.argv[1:])
