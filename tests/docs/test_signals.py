"""The examples in docs/guide/signals.md are what is observed."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnout.evaluate.recordings import read_conversation
from turnout.signals import Observation, Progress, Signals, observe, progress

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "signals.md").read_text("utf-8")
WINDOW = 3


def rows(name: str) -> list[list[str]]:
    """The cells of the table behind a mark, its heading left out."""
    table = PAGE.split(f"<!-- {name} -->\n\n")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def exchange(number: int, tool: str, arguments: str, said: str, code: str | None, flag: bool) -> list[dict[str, Any]]:
    function = {"name": tool, "arguments": arguments}
    known: dict[str, Any] = {} if code is None else {"returncode": int(code)}
    if flag:
        known["is_error"] = True
    text = said.replace("\\n", "\n").replace("\\t", "\t")
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": text, **known},
    ]


def seen(messages: list[dict[str, Any]]) -> Signals:
    return observe(read_conversation(json.dumps({"messages": messages}).encode()).conversation)


def command(text: str) -> str:
    return json.dumps({"command": text})


def described(one: Observation) -> str:
    error = f"{one.error_class} {one.error_kind}".strip()
    passed = ", tests passed" if one.tests_passed else ""
    return f"{one.kind}, {one.status} by {one.evidence}, {error}{passed}"


@pytest.mark.parametrize(("call", "said", "expected"), rows("results"))
def test_results_are_observed_as_the_page_says(call: str, said: str, expected: str) -> None:
    tool, argument = re.findall(r"`([^`]*)`", call)
    found = re.fullmatch(r"(?:exit (\d+)|(flag))? ?(?:`([^`]*)`)?", said)
    assert found, said
    arguments = argument if argument.startswith("{") else command(argument)
    task = {"role": "user", "content": "Do the work."}
    (one,) = seen([task, *exchange(0, tool, arguments, found[3] or "", found[1], bool(found[2]))]).observations
    assert described(one) == expected


def steps(text: str) -> list[dict[str, Any]]:
    """The messages of a story: `$ COMMAND` is a shell call, `TOOL ARGUMENT` one of a file tool, user `...` a message."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do the work."}]
    at = 0
    for number, found in enumerate(re.finditer(
        r"(user )?`([^`]*)`(?: exit (\d+)| (flag))?(?: `([^`]*)`)?(?:, |$)", text
    )):  # fmt: skip
        assert found.start() == at, text[at:]
        at = found.end()
        user, first, code, flag, said = found.groups()
        if user:
            messages.append({"role": "user", "content": first})
        elif first.startswith("$ "):
            messages += exchange(number, "bash", command(first[2:]), said or "", code, bool(flag))
        else:
            tool, path = first.split(" ", 1)
            arguments = {"file_path": path, "old_string": f"old {number}", "new_string": f"new {number}"}
            done = said or f"The file {path} has been updated."
            messages += exchange(number, tool, json.dumps(arguments), done, code, bool(flag))
    assert at == len(text), text[at:]
    return messages


@pytest.mark.parametrize(("story", "expected"), rows("courses"))
def test_courses_have_the_signals_the_page_says(story: str, expected: str) -> None:
    found = progress(seen(steps(story)), WINDOW)
    for signal in expected.split(", "):
        name, value = signal.split()
        assert float(getattr(found, name)) == pytest.approx(float(value)), name


def test_every_signal_and_every_field_is_explained() -> None:
    for name in {*msgspec.structs.asdict(Progress())} - {"results", "kind", "culprit", "failures", "tests", "evidence"}:
        assert f"| `{name}` |" in PAGE, name
    for name in {*Observation.__struct_fields__} - {"message", "part", "tests_passed_count"}:
        assert f"`{name}`" in PAGE, name
