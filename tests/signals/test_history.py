"""A turn that adds to what was seen says what it would have said had nothing been seen before."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.conversation import Conversation, Lazy, Message, Text, ToolCall, ToolResult
from turnout.signals import Signals, Vocabulary, observe

STEPS = {
    "ok": ("ls", "a"),
    "again": ("ls", "b"),
    "fail": ("python x.py", "<returncode>1</returncode>\n<output>\nValueError: x\n</output>"),
    "fixed": ("python x.py", "<returncode>0</returncode>\n<output>\nfine\n</output>"),
    "edit": ("sed -i s/a/b/ a.py", "<returncode>0</returncode>\n<output>\n\n</output>"),
    "undo": ("git checkout -- a.py", "<returncode>0</returncode>\n<output>\n\n</output>"),
    "red": ("pytest", "<returncode>1</returncode>\n<output>\n3 failed, 5 passed in 0.2s\n</output>"),
    "green": ("pytest", "<returncode>0</returncode>\n<output>\n8 passed in 0.2s\n</output>"),
}


def rows(steps: list[str], task: str = "Do it.") -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"role": "user", "text": task}]
    for i, step in enumerate(steps):
        if step == "user":
            made.append({"role": "user", "text": f"Go on, {i}."})
        elif step == "parallel":
            made.append({"role": "assistant", "ids": [f"{i}a", f"{i}b"], "command": "ls"})
            made += [{"role": "tool", "id": f"{i}{x}", "text": x} for x in "ab"]
        else:
            command, text = STEPS[step]
            made.append({"role": "assistant", "ids": [str(i)], "command": command})
            made.append({"role": "tool", "id": str(i), "text": text})
    return made


def decoded(raw: Any, index: int) -> Message:
    one = msgspec.json.decode(bytes(raw))
    if one["role"] == "assistant":
        return Message(
            "assistant", tuple(ToolCall(i, "bash", json.dumps({"command": one["command"]})) for i in one["ids"])
        )
    if one["role"] == "tool":
        return Message("tool", (ToolResult(one["id"], (Text(one["text"]),)),))
    return Message("user", (Text(one["text"]),))


def conversation(made: list[dict[str, Any]]) -> Conversation:
    raw = [msgspec.Raw(msgspec.json.encode(row)) for row in made]
    return Conversation(Lazy(raw, decoded), roles=tuple(row["role"] for row in made), format="openai_chat")


def fresh(made: list[dict[str, Any]], agent: str = "") -> Signals:
    """As seen by a vocabulary that has met nothing yet."""
    return observe(conversation(made), Vocabulary(), agent)


STEP = st.sampled_from([*STEPS, "user", "parallel"])


@settings(deadline=None, max_examples=60)
@given(st.lists(STEP, max_size=14))
def test_every_turn_of_a_growing_task(steps: list[str]) -> None:
    vocabulary = Vocabulary()
    made = rows(steps)
    for upto in range(1, len(made) + 1):
        assert observe(conversation(made[:upto]), vocabulary) == fresh(made[:upto])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 12), st.lists(STEP, max_size=4)), min_size=1, max_size=6))
def test_retries_forks_and_edited_histories(turns: list[tuple[int, list[str]]]) -> None:
    vocabulary = Vocabulary()
    steps: list[str] = []
    for keep, more in turns:
        steps = steps[:keep] + more
        for _ in range(2):
            assert observe(conversation(rows(steps)), vocabulary) == fresh(rows(steps))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["parent", "child", "twin"]), STEP), max_size=16))
def test_agents_never_mix(turns: list[tuple[str, str]]) -> None:
    # The twin is given the very words of the child.
    vocabulary = Vocabulary()
    tasks = {"parent": "Build it.", "child": "Look for it.", "twin": "Look for it."}
    steps: dict[str, list[str]] = {name: [] for name in tasks}
    for name, step in turns:
        steps[name].append(step)
        made = rows(steps[name], tasks[name])
        assert observe(conversation(made), vocabulary, name) == fresh(made, name)


def test_an_error_on_the_way_leaves_nothing_half_done() -> None:
    vocabulary = Vocabulary()
    made = rows(["fail", "edit"])
    observe(conversation(made), vocabulary)
    longer = rows(["fail", "edit", "red", "ok"])
    broken = conversation(longer)

    class Broken(Exception):
        pass

    def raising(raw: Any, index: int) -> Message:
        if index == len(longer) - 1:
            raise Broken
        return decoded(raw, index)

    try:
        observe(msgspec.structs.replace(broken, messages=Lazy(broken.messages.raw, raising)), vocabulary)  # type: ignore[attr-defined]
    except Broken:
        pass
    else:
        raise AssertionError("the last message was not read")
    assert observe(conversation(longer), vocabulary) == fresh(longer)
    assert observe(conversation(made), vocabulary) == fresh(made)
