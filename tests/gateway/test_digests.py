"""Digests of a conversation: where it stopped being the same is found, however the messages are wrapped."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnout.gateway.digests import BLOCKS_AT_MOST, NEWEST, Prompt, prompt_of
from turnout.wire import CODECS

texts = st.lists(st.text(max_size=20), min_size=1, max_size=30)


def prompt(said: list[str]) -> Prompt:
    return Prompt([json.dumps({"role": "user", "content": text}).encode() for text in said], b"[]", ["be good"])


@given(texts, texts)
def test_what_only_grew_does_not_differ(before: list[str], more: list[str]) -> None:
    kept = prompt(before).digests()
    assert prompt(before).differs_at(kept) is None
    assert prompt([*before, *more]).differs_at(kept) is None


@given(st.lists(texts, min_size=1, max_size=8))
def test_growing_step_by_step_keeps_what_one_look_would(steps: list[list[str]]) -> None:
    """Digests continued from turn to turn find the same differences as those made at once."""
    said: list[str] = []
    kept = None
    for step in steps:
        said += step
        kept = prompt(said).digests(kept)
    assert kept is not None
    assert prompt(said).differs_at(kept) is None
    assert kept.count == len(said)
    for index in range(len(said)):
        found = prompt([*said[:index], "something else entirely, longer", *said[index + 1 :]]).differs_at(kept)
        assert found is not None
        assert found[0] <= index <= found[1]


@given(st.integers(1, 700), st.data())
def test_the_first_difference_is_found_and_the_size_is_bounded(count: int, data: st.DataObject) -> None:
    said = [f"message {i}" for i in range(count)]
    kept = prompt(said).digests()
    assert len(kept.blocks) <= (BLOCKS_AT_MOST + 1) * 4
    assert len(kept.tail) <= 4 * (NEWEST + kept.group)
    assert len(kept.blocks) // 4 * kept.group + len(kept.tail) // 4 == count
    index = data.draw(st.integers(0, count - 1))
    found = prompt([*said[:index], "else", *said[index + 1 :], "more"]).differs_at(kept)
    assert found is not None
    assert found[0] <= index <= found[1]
    assert found[1] - found[0] < kept.group
    if count <= BLOCKS_AT_MOST:
        assert found == (index, index)


@given(texts, st.data())
def test_a_missing_tail_differs_where_it_is_missing(said: list[str], data: st.DataObject) -> None:
    left = data.draw(st.integers(0, len(said) - 1))
    assert prompt(said[:left]).differs_at(prompt(said).digests()) == (left, left)


def blocks(text: str, mark: bool = False) -> list[dict[str, Any]]:
    block: dict[str, Any] = {"type": "text", "text": text}
    return [{**block, "cache_control": {"type": "ephemeral", "ttl": "1h"}} if mark else block]


def messages(*contents: Any) -> Prompt:
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": content} for i, content in enumerate(contents)]
    body = json.dumps({"model": "m", "max_tokens": 9, "system": "s", "messages": said}).encode()
    found = prompt_of(CODECS["anthropic_messages"].read_request(body).conversation)
    assert found is not None
    return found


def test_cache_marks_and_single_blocks_do_not_count() -> None:
    text = 'says "cache_control" itself, and \\ too'
    kept = messages("hello", "yes", blocks(text, mark=True)).digests()
    assert messages("hello", "yes", text, "done", blocks("on", mark=True)).differs_at(kept) is None
    assert messages("hello", "yes", blocks(text), "done", blocks("on", mark=True)).differs_at(kept) is None
    assert messages("hello", "yes", text + ".", "done", blocks("on", mark=True)).differs_at(kept) == (2, 2)


def test_a_mark_that_moves_over_many_turns_breaks_nothing() -> None:
    said: list[str] = []
    kept = None
    for turn in range(80):
        said += [f"question {turn}", f"answer {turn}"]
        now = messages(*said, blocks(f"question {turn + 1}", mark=True))
        if kept is not None:
            assert now.differs_at(kept) is None
        kept = now.digests(kept)


def test_the_line_that_changes_with_every_request_does_not_count() -> None:
    def read(line: str) -> Prompt:
        system = [{"type": "text", "text": line}, {"type": "text", "text": "You are an agent."}]
        body = {"model": "m", "max_tokens": 9, "system": system, "messages": [{"role": "user", "content": "hi"}]}
        found = prompt_of(CODECS["anthropic_messages"].read_request(json.dumps(body).encode()).conversation)
        assert found is not None
        return found

    first, second = read("x-anthropic-billing-header: cch=1;"), read("x-anthropic-billing-header: cch=2;")
    assert first.system == second.system != read("Another line.").system


@given(st.integers(8, 300), st.data())
def test_changed_in_place_taken_out_and_another_way_are_told_apart(count: int, data: st.DataObject) -> None:
    said = [f"message {i}" for i in range(count)]
    kept = prompt(said).digests()
    first = data.draw(st.integers(1, count - 3))
    assert prompt([*said[:first], "else", *said[first + 1 :], "more"]).rest(first, kept) == "in place"
    assert prompt([*said[:first], *said[first + 2 :], "more"]).rest(first, kept) == "moved"
    assert prompt([*said[:first], "another", "way", "from", "there"]).rest(first, kept) == "gone"


def test_many_messages_cleared_at_once_are_a_change_in_place() -> None:
    said = [f"message {i}" for i in range(40)]
    cleared = [text if i % 2 else "[cleared]" for i, text in enumerate(said[:30])] + said[30:]
    assert prompt([*cleared, "more"]).rest(0, prompt(said).digests()) == "in place"


def test_every_format_gives_its_messages() -> None:
    bodies = {
        "openai_chat": {"messages": [{"role": "user", "content": "a"}]},
        "openai_responses": {"instructions": "i", "input": [{"role": "user", "content": "a"}]},
        "anthropic_messages": {"max_tokens": 3, "messages": [{"role": "user", "content": "a"}]},
    }
    for name, body in bodies.items():
        read = CODECS[name].read_request(json.dumps({"model": "m", **body}).encode())  # type: ignore[index]
        found = prompt_of(read.conversation)
        assert found is not None, name
        assert found.digests().count == 1
