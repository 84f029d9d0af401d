"""What each contender says of the same labelled results, windows and turns."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Settings, Text, ToolCall, ToolResult
from turnout.evaluate.agreement import Said, SaidOfWindow, said_by_turnout, window_said_by_turnout
from turnout.evaluate.labels import Labelled, LabelledResult
from turnout.routing import Lane, Stage, TargetName, Turn
from turnout.routing.core import State
from turnout.sessions.store import folded
from turnout.signals import ErrorClass, observe
from turnout.steps import Run

EFFICIENT, CAPABLE = TargetName("efficient"), TargetName("capable")
CLASS_OF: dict[float, ErrorClass] = {0.0: "none", 0.3: "informational", 0.7: "capability", 1.0: "critical"}
"""Error class of a severity: soft failures are set beside what needs no correction."""


THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Verdicts(Struct, frozen=True):
    """What one contender says, in the order of the labels. `alone`, `session`: whether the turn after each labelled result
    goes to the capable model, asked without and with the memory of all turns before. `curve`: as `alone`, at each of
    `THRESHOLDS`."""

    name: str
    results: tuple[Said, ...]
    windows: tuple[SaidOfWindow, ...]
    alone: tuple[bool, ...]
    session: tuple[bool, ...]
    curve: tuple[tuple[bool, ...], ...]


def turnout(read: Labelled) -> Verdicts:
    """Turnout's observations, and the decisions of its stage router at its defaults."""
    alone = {}
    session = {}
    curve = {}
    for conversation, ends in by_conversation(read.results):
        for end in ends:
            place = id(conversation), end
            alone[place] = next(decided(conversation, [end], Stage(EFFICIENT, CAPABLE), remembering=False))[1]
            curve[place] = tuple(
                next(decided(conversation, [end], Stage(EFFICIENT, CAPABLE, threshold=t), remembering=False))[1]
                for t in THRESHOLDS
            )
        turns = sorted({*ends, *turns_before(conversation, ends[-1])})
        for end, capable in decided(conversation, turns, Stage(EFFICIENT, CAPABLE), remembering=True):
            session[id(conversation), end] = capable
    places = [(id(one.conversation), one.seen.message) for one in read.results]
    return Verdicts(
        "Turnout",
        tuple(said_by_turnout(one) for one in read.results),
        tuple(window_said_by_turnout(one) for one in read.windows),
        tuple(alone[place] for place in places),
        tuple(session[place] for place in places),
        tuple(curve[place] for place in places),
    )


def decided(
    conversation: Conversation, ends: Sequence[int], router: Stage, remembering: bool
) -> Iterator[tuple[int, bool]]:
    """Whether the turn after each of `ends` goes to the capable model; in one session if `remembering`."""
    lane = Lane("", "session", "", "session_header") if remembering else Lane()
    memory: dict[str, State] = {}
    for end in ends:
        upto = msgspec.structs.replace(
            conversation, messages=conversation.messages[: end + 1], roles=tuple(conversation.roles[: end + 1])
        )
        turn = Turn(f"t{end}", lane, upto, Settings(), observe(upto), {}, memory=memory)
        run: Run[Any, Any, Any] = Run(router.route(turn))
        if remembering:
            memory = {**memory, **folded(memory, run.result.remember)}
        yield end, run.result.target == CAPABLE


def by_conversation(results: Iterable[LabelledResult]) -> Iterator[tuple[Conversation, list[int]]]:
    """Every conversation with the messages in it that are labelled, in order."""
    found: dict[int, tuple[Conversation, set[int]]] = {}
    for one in results:
        found.setdefault(id(one.conversation), (one.conversation, set()))[1].add(one.seen.message)
    return ((conversation, sorted(ends)) for conversation, ends in found.values())


def turns_before(conversation: Conversation, end: int) -> list[int]:
    """The messages before `end` after which a model was asked: the next one is an assistant's."""
    return [i for i in range(end) if conversation.roles[i + 1] == "assistant" and conversation.roles[i] != "assistant"]


def switchyard(read: Labelled, venv: Path) -> Verdicts:
    """nemo-switchyard's, read off the decisions of its stage router (see switchyard_probe.py)."""
    rows = {id(one.conversation): chat_rows(one.conversation) for one in (*read.results, *read.windows)}
    questions: list[dict[str, Any]] = []
    for one in read.results:
        result = rows[id(one.conversation)][one.seen.message]
        call = {"name": one.seen.tool, "arguments": one.call} if one.call or one.seen.tool != "?" else None
        questions.append({"ask": "result", "call": call, "text": result["content"], "is_error": result["is_error"]})
    for window in read.windows:
        indices = [o.message for o in window.seen]
        questions.append({"ask": "window", "messages": rows[id(window.conversation)], "indices": indices})
    asked = list(by_conversation(read.results))
    for session in (False, True):
        for conversation, ends in asked:
            question = {"ask": "decisions", "messages": rows[id(conversation)], "at": ends, "session": session}
            questions.append(question | {"turns": turns_before(conversation, ends[-1])})
    answers = probe(venv, questions)
    results, windows = len(read.results), len(read.windows)
    decisions: list[dict[tuple[int, int], dict[str, Any]]] = []
    for half in (answers[results + windows :][: len(asked)], answers[results + windows + len(asked) :]):
        decisions.append({
            (id(conversation), int(end)): found
            for (conversation, _), answer in zip(asked, half, strict=True)
            for end, found in answer["decisions"].items()
        })  # fmt: skip
    places = [(id(one.conversation), one.seen.message) for one in read.results]
    alone, session = ([half[place] for place in places] for half in decisions)
    return Verdicts(
        "nemo-switchyard 0.3.0",
        tuple(Said(CLASS_OF[a["severity"]], a["tests_passed"]) for a in answers[:results]),
        tuple(SaidOfWindow(a["repeated"], a["spinning"]) for a in answers[results : results + windows]),
        tuple(one["tier"] == "capable" for one in alone),
        tuple(one["tier"] == "capable" for one in session),
        # Its rules come first and ask no threshold; a score decides when it is beyond the threshold, strictly.
        tuple(tuple(one["source"] == "override" or one["score"] > t for t in THRESHOLDS) for one in alone),
    )


def probe(venv: Path, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Switchyard's answers. Raises CalledProcessError when its environment cannot answer."""
    script = Path(__file__).resolve().with_name("switchyard_probe.py")
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(
        [venv / "bin" / "python", script], input=text.encode(), stdout=subprocess.PIPE, check=True, timeout=3600
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


def chat_rows(conversation: Conversation) -> list[dict[str, Any]]:
    """A conversation as Chat messages, one to one; results carry their failure flag where there is one."""
    made = []
    for message in conversation.messages:
        row: dict[str, Any] = {"role": message.role, "content": ""}
        for part in message.parts:
            if isinstance(part, Text):
                row["content"] += part.text
            elif isinstance(part, ToolCall):
                function = {"name": part.name, "arguments": part.arguments}
                row.setdefault("tool_calls", []).append({"id": part.id, "function": function})
            elif isinstance(part, ToolResult):
                row |= {"tool_call_id": part.call_id, "content": part.text, "is_error": part.is_error}
        made.append(row)
    return made
