"""How well observations of single tool results agree with hand labels, and what observing a long turn costs.

    python benchmarks/signals.py [--misses] [FOLDER]

FOLDER holds `traces/labels_tool_results.jsonl` and the trajectories it points into; default: $TURNOUT_SHARED/data, else
`../shared/data` beside the repository. Prints precision and recall of "something to correct" (capability or critical), of
critical alone and of passed tests, the confusion of classes, and the agreement on tool kinds.
"""

import argparse
import collections
import gzip
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnout.conversation import Conversation, Message, Text, ToolCall, ToolResult
from turnout.signals import Observation, observe
from turnout.wire import CODECS


def default_folder() -> Path:
    """Where the recorded data lies."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    return Path(os.environ.get("TURNOUT_SHARED", str(beside))) / "data"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def messages_of(raw: list[dict[str, Any]]) -> tuple[Message, ...]:
    """Recorded messages (Chat form with `is_error` and `returncode`) as a conversation's."""
    made: list[Message] = []
    for one in raw:
        content = one.get("content")
        text = content if isinstance(content, str) else json.dumps(content) if content else ""
        if one["role"] == "tool":
            code = one.get("returncode")
            result = ToolResult(
                one.get("tool_call_id") or "",
                (Text(text),),
                is_error=one.get("is_error"),
                name=one.get("name"),
                extra={} if code is None else {"returncode": code},
            )
            made.append(Message("tool", (result,)))
            continue
        parts: list[Any] = [Text(text)] if text else []
        for call in one.get("tool_calls") or []:
            parts.append(ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"] or ""))
        made.append(Message(one["role"], tuple(parts)))
    return tuple(made)


def labelled(folder: Path) -> Iterator[tuple[dict[str, Any], Observation]]:
    """Each label with the observation of its tool result, made within its trajectory."""
    labels = list(rows(folder / "traces" / "labels_tool_results.jsonl"))
    wanted = collections.defaultdict(list)
    for label in labels:
        wanted[label["file"]].append(label)
    for file, of_file in wanted.items():
        numbers = {label["row"] for label in of_file}
        kept = {i: r for i, r in enumerate(rows(folder / "traces" / f"{file}.jsonl.gz")) if i in numbers}
        for label in of_file:
            upto = messages_of(kept[label["row"]]["messages"][: label["message_index"] + 1])
            found = [o for o in observe(Conversation(upto)).observations if o.message == label["message_index"]]
            if found:
                yield label, found[-1]


def scores(pairs: list[tuple[bool, bool]]) -> tuple[float, float, int]:
    """Precision, recall and the number of positives of (label, prediction) pairs."""
    hit = sum(1 for truth, said in pairs if truth and said)
    said = sum(1 for _, said in pairs if said)
    true = sum(1 for truth, _ in pairs if truth)
    return (hit / said if said else 1.0), (hit / true if true else 1.0), true


SERIOUS = ("capability", "critical")


def table(found: list[tuple[dict[str, Any], Observation]]) -> dict[str, tuple[float, float, int]]:
    """Precision, recall and positives by question."""
    return {
        "capability or critical": scores([(r["error_class"] in SERIOUS, o.error_class in SERIOUS) for r, o in found]),
        "critical": scores([(r["error_class"] == "critical", o.error_class == "critical") for r, o in found]),
        "informational": scores(
            [(r["error_class"] == "informational", o.error_class == "informational") for r, o in found]
        ),
        "tests_passed": scores([(r["tests_passed"] is True, o.tests_passed is True) for r, o in found]),
    }


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


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", nargs="?", type=Path, default=default_folder())
    options.add_argument("--misses", action="store_true", help="list the results on which label and observation differ")
    options.add_argument("--cost", action="store_true", help="measure the cost of observing a long turn")
    chosen = options.parse_args()
    if chosen.cost:
        cold, warm = cost_us()
        print(f"99 KB turn of 120 messages: {cold:.0f} us first, {warm:.0f} us once its history is known")
        return
    found = list(labelled(chosen.folder))
    print(f"{len(found)} labelled tool results\n")
    print(f"{'':26s}{'precision':>10s}{'recall':>8s}{'positives':>11s}")
    for name, (precision, recall, positives) in table(found).items():
        print(f"{name:26s}{precision:10.2f}{recall:8.2f}{positives:11d}")
    print("\nlabel -> observed")
    confusion = collections.Counter((r["error_class"], o.error_class) for r, o in found)
    for (truth, said), count in sorted(confusion.items()):
        print(f"  {truth:14s} {said:14s} {count:4d}")
    kinds = sum(r["tool_kind"] == o.kind for r, o in found)
    print(f"\ntool kind: {kinds} of {len(found)} agree")
    if chosen.misses:
        for r, o in found:
            wrong = r["error_class"] != o.error_class or (r["tests_passed"] is True) != (o.tests_passed is True)
            if wrong or r["tool_kind"] != o.kind:
                said = f"{o.error_class}:{o.error_kind}/{o.kind}/{o.tests_passed} [{o.status} by {o.evidence}]"
                print(f"{r['id']} {r['error_class']}/{r['tool_kind']}/{r['tests_passed']} -> {said}")
                print(f"     {o.evidence_text!r:.100} | {r['args'][:80]!r} ({r['note']})")


if __name__ == "__main__":
    sys.exit(main())
