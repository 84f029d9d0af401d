"""What is known of harnesses: every row is used as it says, and no two rows contradict one another."""

import json
from typing import Any

import pytest
from tests.story import Story

from turnout.signals.calls.harnesses import HARNESSES, SHELL_TOOLS, TOOLS, Harness
from turnout.signals.calls.programs import words
from turnout.signals.calls.tools import read_call

BY_NAME = pytest.mark.parametrize("harness", HARNESSES, ids=[h.name for h in HARNESSES])


@BY_NAME
def test_tools_have_the_kind_their_row_gives(harness: Harness) -> None:
    for kind, row in harness.tools.items():
        for name in words(row):
            assert TOOLS[name] == kind, f"{name}: another harness says {TOOLS[name]}"
            for spelled in (name, name.upper(), name.title()):
                assert read_call(spelled, "{}").kind == kind


@BY_NAME
def test_shells_read_their_command(harness: Harness) -> None:
    for name in words(harness.shells):
        assert name in SHELL_TOOLS
        seen = read_call(name, json.dumps({"command": "cd /app && pytest -q"}))
        assert (seen.kind, seen.shell is not None) == ("test", True)


@BY_NAME
def test_texts_are_lower_case_for_comparison(harness: Harness) -> None:
    rows = (harness.timed_out, harness.timed_out_behind, harness.aborted, harness.truncated, harness.declined)
    beginnings = [b for b, _ in (*harness.text_results, *harness.answers)]
    assert [text for row in (*rows, beginnings) for text in row if text != text.lower()] == []


@BY_NAME
def test_what_a_harness_says_of_calls_it_stopped(harness: Harness) -> None:
    for text in harness.timed_out:
        shown = f"{text} x</command> timed out and has been killed." if text.endswith("<command>") else f"{text} 120s"
        assert Story().bash("./slow", shown).last.error_kind == "timeout"
    for text in harness.timed_out_behind:
        assert Story().bash("./slow", f"some output\n{text} 120s]").last.error_kind == "timeout"
    for text in harness.aborted:
        seen = Story().call("read", {"filePath": "a"}, text, is_error=True).last
        assert (seen.error_class, seen.error_kind) == ("critical", "aborted")
    for text in harness.declined:
        seen = Story().call("Bash", {"command": "x"}, text, is_error=True).last
        assert (seen.error_class, seen.error_kind) == ("informational", "declined")


@BY_NAME
def test_cut_output_is_marked(harness: Harness) -> None:
    for text in harness.truncated:
        assert Story().bash("ls", f"a\n{text}\nb").last.truncated


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "target"),
    [
        ("mcp__github__get_issue", {"id": 1}, "read", ""),
        ("mcp__github__create_issue", {"title": "x"}, "write", ""),
        ("mcp__filesystem__read_file", {"path": "a.py"}, "read", "a.py"),
        ("mcp__filesystem__edit_file", {"path": "a.py"}, "edit", "a.py"),
        ("filesystem.write_file", {"path": "a.py", "content": "x"}, "write", "a.py"),
        ("github/search_code", {"q": "x"}, "search", ""),
        ("get_user_details", {"user_id": "x"}, "read", ""),
        ("list_all_airports", {}, "read", ""),
        ("search_direct_flight", {"origin": "JFK"}, "search", ""),
        ("find_user_id_by_email", {"email": "x"}, "search", ""),
        ("update_reservation_baggages", {}, "edit", ""),
        ("cancel_pending_order", {}, "edit", ""),
        ("exchange_delivered_order_items", {}, "edit", ""),
        ("return_delivered_order_items", {}, "edit", ""),
        ("modify_user_address", {}, "edit", ""),
        ("think", {"thought": "x"}, "plan", ""),
        ("calculate", {"expression": "1 + 1"}, "other", ""),
        ("str_replace_editor", {"command": "view", "path": "/a"}, "read", "/a"),
        ("str_replace_editor", {"command": "create", "path": "/a", "file_text": "x"}, "write", "/a"),
        ("str_replace_editor", {"command": "str_replace", "path": "/a"}, "edit", "/a"),
        ("apply_patch", "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch", "write", "a.py"),
        ("apply_patch", "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch", "edit", "a.py"),
    ],
)
def test_tools_by_what_they_do(name: str, arguments: Any, kind: str, target: str) -> None:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    seen = read_call(name, raw)
    assert (seen.kind, seen.target) == (kind, target)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Todos have been modified successfully. Ensure that you continue", "plan"),
        ("File created successfully at: /a", "write"),
        ("Success. Updated the following files:\nM a", "edit"),
    ],
)
def test_results_without_their_call_are_known_by_how_they_begin(text: str, kind: str) -> None:
    story = Story().call("Read", {"file_path": "a"}, text)
    del story.messages[-2]
    assert story.last.kind == kind
