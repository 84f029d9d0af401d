"""Reading by hand what is called a failure among results drawn at random, and how often that is a false alarm."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from turnout.conversation import Text, ToolResult
from turnout.evaluate.agreement import MATTERS
from turnout.evaluate.labels import LabelledResult, ResultLabel, observed_at
from turnout.evaluate.recordings import Collections, rows
from turnout.statistics.shares import share

COLLECTIONS = (
    "sessions_coding_agents",
    "traj_ljoukov_agent_bench",
    "traj_miniswe_gemini3pro_swebench_verified",
    "traj_miniswe_sonnet4_terminal_bench",
    "traj_sweagent_lm32b_swebench_verified",
    "traj_taubench_gpt4o_airline",
)
"""Recorded sessions and trajectories."""

Judgement: TypeAlias = Literal["right", "false_alarm", "missed", "unclear", "unread"]
"""What a reader says: a failure that matters was called so rightly, wrongly; or one was not called so; or the reader cannot
tell, or has not looked."""
KEYS: dict[str, Judgement] = {"r": "right", "f": "false_alarm", "m": "missed", "u": "unclear"}
Place: TypeAlias = tuple[str, int, int]


class Verdict(Struct, frozen=True, omit_defaults=True):
    """A line of a verdict file: which result, what a reader said of it, and why in a few words (no text of the recording)."""

    file: str
    row: int
    message_index: int
    verdict: Judgement
    note: str = ""

    @property
    def place(self) -> Place:
        return self.file, self.row, self.message_index


def population(folder: Path, collections: Sequence[str] = COLLECTIONS) -> list[Place]:
    """Every tool result of the collections, in order."""
    return [
        (file, number, index)
        for file in collections
        for number, row in enumerate(rows(folder / f"{file}.jsonl.gz"))
        for index, message in enumerate(row["messages"])
        if message["role"] == "tool"
    ]


def drawn(places: Sequence[Place], without: frozenset[Place], count: int, seed: int) -> list[Place]:
    """`count` of the places at random, in their order, but none of `without`. More labels replace only what they label."""
    shuffled = list(places)
    random.Random(seed).shuffle(shuffled)
    return sorted([place for place in shuffled if place not in without][:count])


def observed(folder: Path, places: Sequence[Place]) -> Iterator[tuple[Place, LabelledResult]]:
    """Each place with what is observed there; nothing is labelled."""
    collections = Collections(folder)
    collections.want((file, row) for file, row, _ in places)
    for file, row, index in places:
        conversation = collections.conversation(file, row)
        yield (file, row, index), observed_at(conversation, f"{file}:{row}", index, {}, ResultLabel())


def verdicts(file: Path) -> dict[Place, Verdict]:
    """The verdicts of a file by place, the last one of each; none when there is no file."""
    if not file.exists():
        return {}
    lines = [line for line in file.read_bytes().splitlines() if line.strip()]
    return {one.place: one for one in (msgspec.json.decode(line, type=Verdict) for line in lines)}


def keep(file: Path, found: dict[Place, Verdict]) -> None:
    """Write the verdicts, in order of place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(msgspec.json.encode(found[place]) + b"\n" for place in sorted(found)))


def show(number: int, one: LabelledResult, verdict: Verdict | None, length: int) -> str:
    """A result for reading: what is made of it and why, what the agent said and called, what came back, what it said next."""
    seen = one.seen
    result = one.conversation.messages[seen.message].parts[seen.part]
    text = result.text if isinstance(result, ToolResult) else ""
    return "\n".join((
        f"--- {number}. {one.place}",
        f"observed  {seen.error_class} {seen.error_kind}, {seen.status} by {seen.evidence}, {seen.kind}: {seen.evidence_text!r}",
        f"before    {_said(one, -1, length // 2)}",
        f"call      {seen.tool} {_middle_cut(one.call, length)}",
        *(f"        | {line}" for line in _middle_cut(text, length).splitlines()),
        f"next      {_said(one, 1, length // 2)}",
        f"verdict   {verdict.verdict if verdict else 'unread'}{f' ({verdict.note})' if verdict and verdict.note else ''}",
    ))  # fmt: skip


def _said(one: LabelledResult, step: int, length: int) -> str:
    """What the agent said in the nearest message before (-1) or after (1) the result; whether a failure was meant shows there."""
    at = one.seen.message + step
    while 0 <= at < len(one.conversation.roles):
        if one.conversation.roles[at] == "assistant":
            texts = [part.text for part in one.conversation.messages[at].parts if isinstance(part, Text)]
            return _middle_cut(" ".join(" ".join(texts).split()), length)
        at += step
    return ""


def _middle_cut(text: str, length: int) -> str:
    """The beginning and, longer, the end: where programs say what went wrong."""
    if len(text) <= length:
        return text
    head = length // 3
    return f"{text[:head]}\n[... {len(text) - length} characters ...]\n{text[head - length :]}"


def figures(sample: Sequence[tuple[Place, LabelledResult]], found: dict[Place, Verdict]) -> dict[str, Any]:
    """Counts and rates over the sample, with the list of alarms; no texts."""
    alarms = [place for place, one in sample if one.seen.error_class in MATTERS]
    said = {place: found[place].verdict if place in found else "unread" for place, _ in sample}
    count = {name: sum(said[place] == name for place in alarms) for name in get_args(Judgement) if name != "missed"}
    missed = [place for place, _ in sample if said[place] == "missed"]
    return {
        "drawn": len(sample),
        "alarms": len(alarms),
        "of_alarms": count,
        "false_alarms_of_drawn": msgspec.to_builtins(share(count["false_alarm"], len(sample))),
        "false_alarms_of_alarms_read": msgspec.to_builtins(share(count["false_alarm"], len(alarms) - count["unread"])),
        "missed": [":".join(map(str, place)) for place in missed],
        "list": [
            {"at": ":".join(map(str, place)), "error_class": one.seen.error_class, "error_kind": one.seen.error_kind,
             "evidence": one.seen.evidence, "verdict": said[place]}
            for place, one in sample if one.seen.error_class in MATTERS
        ],
    }  # fmt: skip


def ask(number: int, one: LabelledResult, place: Place, length: int) -> Verdict | None:
    """A reader's verdict, from the terminal; None to stop."""
    print(show(number, one, None, length))
    while True:
        said = input("r(ight) f(alse alarm) m(issed) u(nclear), then a note if you like; q(uit): ").strip()
        if said[:1] == "q":
            return None
        if said[:1] in KEYS:
            return Verdict(*place, KEYS[said[0]], said[1:].strip())


def draft(sample: Sequence[tuple[Place, LabelledResult]], found: dict[Place, Verdict]) -> dict[Place, Verdict]:
    """The verdicts with a line for every alarm nobody has read, to be filled in."""
    missing = [place for place, one in sample if one.seen.error_class in MATTERS and place not in found]
    return {**found, **{place: Verdict(*place, "unread") for place in missing}}


def print_figures(told: dict[str, Any]) -> None:
    """The rates and the list of alarms, as Markdown."""
    print("| result | class | kind | evidence | verdict |\n|---|---|---|---|---|")
    for row in told["list"]:
        print(f"| {row['at']} | {row['error_class']} | {row['error_kind']} | {row['evidence']} | {row['verdict']} |")
    counts = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in told["of_alarms"].items())
    print(f"\n{told['drawn']} results, {told['alarms']} called a failure that matters: {counts}")
    rate = told["false_alarms_of_drawn"]
    print(f"false alarms: {rate['value'] or 0:.2%} of the results [{rate['low']:.2%} {rate['high']:.2%}]", end="")
    rate = told["false_alarms_of_alarms_read"]
    if rate["value"] is not None:
        print(f", {rate['value']:.2%} of the alarms read [{rate['low']:.2%} {rate['high']:.2%}]", end="")
    unread = told["of_alarms"]["unread"]
    print(f"; {unread} alarms are still unread" if unread else "")
    if told["missed"]:
        print(f"not called a failure though it is one: {', '.join(told['missed'])}")


def labelled_places(files: Sequence[Path]) -> frozenset[Place]:
    """The results that label files judge one by one; results inside a labelled window are not."""
    return frozenset(
        (row["file"], row["row"], row["message_index"])
        for file in files
        if file.exists()
        for row in map(json.loads, file.read_text("utf-8").splitlines())
        if "file" in row and "row" in row and "message_index" in row
    )
