"""Small recordings in every format, made up, and what must come of each."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct


def lines(rows: Iterable[Any]) -> bytes:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def claude_code(sessions: int = 1, steps: int = 3) -> list[dict[str, Any]]:
    """A project log: each step is two lines of one message, its result, and one line of another kind."""
    rows: list[dict[str, Any]] = []

    def row(session: str, n: int, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        at = f"2026-03-01T10:{n // 60:02d}:{n % 60:02d}.000Z"
        base = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/ann/shop"}
        return {**base, "sessionId": session, "version": "2.1.0", "type": kind, "message": message, "timestamp": at}

    for s in range(sessions):
        session = f"session-{s}"
        rows.append({"type": "summary", "summary": "the shop", "leafUuid": f"leaf-{s}"})
        rows.append(row(session, 0, "user", {"role": "user", "content": "Make the basket sum right."}))
        for n in range(1, steps + 1):
            id, usage = f"msg_{s}_{n}", {"input_tokens": 5, "output_tokens": n, "cache_read_input_tokens": 1000 * n}
            head = {"id": id, "role": "assistant", "model": "claude-sonnet-4-5-20250929", "usage": usage}
            tool = {
                "type": "tool_use",
                "id": f"toolu_{s}_{n}",
                "name": "Bash",
                "input": {"command": f"pytest -k basket{n}"},
            }
            done = {**usage, "output_tokens": 100 * n}
            rows.append(
                row(session, 3 * n, "assistant", {**head, "content": [{"type": "text", "text": f"Step {n} — go."}]})
            )
            rows.append(row(session, 3 * n + 1, "assistant", {**head, "usage": done, "content": [tool]}))
            output = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{s}_{n}",
                "content": f"E  assert {n} == 3\n1 failed in 0.1s",
            }
            rows.append(row(session, 3 * n + 2, "user", {"role": "user", "content": [{**output, "is_error": True}]}))
    return rows


def codex(steps: int = 3) -> list[dict[str, Any]]:
    """A rollout: each step is a thought, a call, its result and a count of tokens, told twice as Codex does."""

    def row(n: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": f"2026-03-01T11:00:{n:02d}.000Z", "type": kind, "payload": payload}

    rows = [
        row(0, "session_meta", {"id": "rollout-1", "cwd": "/home/ann/shop", "cli_version": "0.50.0"}),
        row(0, "turn_context", {"model": "gpt-5.1-codex", "cwd": "/home/ann/shop"}),
        row(
            1,
            "response_item",
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
        ),
    ]
    for n in range(1, steps + 1):
        tokens = {
            "input_tokens": 1000,
            "cached_input_tokens": 600,
            "output_tokens": 20 * n,
            "reasoning_output_tokens": 8,
        }
        count = {
            "type": "token_count",
            "info": {"total_token_usage": {"total_tokens": 1020 * n}, "last_token_usage": tokens},
        }
        shell = {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["ls", str(n)]})}
        output = json.dumps({"output": "basket.py\n", "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
        rows.append(row(4 * n, "response_item", {"type": "reasoning", "summary": [], "encrypted_content": "x"}))
        rows.append(row(4 * n + 1, "response_item", {**shell, "call_id": f"call_{n}"}))
        rows.append(
            row(4 * n + 2, "response_item", {"type": "function_call_output", "call_id": f"call_{n}", "output": output})
        )
        rows += [row(4 * n + 3, "event_msg", count)] * 2
    final = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    return [*rows, row(59, "response_item", final)]


def opencode() -> dict[str, Any]:
    """An exported session of two model calls, the first of which fails at its tool."""
    tokens = {"input": 900, "output": 40, "reasoning": 10, "cache": {"read": 100, "write": 0}}
    state = {"status": "error", "input": {"filePath": "basket.py"}, "error": "File not found: basket.py"}
    parts = [
        {"type": "step-start"},
        {"type": "text", "text": "I look at the basket."},
        {"type": "tool", "callID": "c1", "tool": "read", "state": state},
        {"type": "step-finish", "tokens": tokens, "cost": 0.002},
    ]
    last = [
        {"type": "step-start"},
        {"type": "text", "text": "There is none."},
        {"type": "step-finish", "tokens": tokens, "cost": 0},
    ]
    assistant = {"role": "assistant", "providerID": "anthropic", "modelID": "claude-haiku-4-5", "sessionID": "ses_1"}
    time = {"created": 1_772_000_001_000, "completed": 1_772_000_004_000}
    return {
        "info": {"id": "ses_1", "title": "basket", "time": {"created": 1_772_000_000_000}},
        "messages": [
            {"info": {"id": "m1", "role": "user"}, "parts": [{"type": "text", "text": "Read the basket."}]},
            {"info": {"id": "m2", **assistant, "time": time}, "parts": parts},
            {"info": {"id": "m3", **assistant, "time": {"created": 1_772_000_005_000}}, "parts": last},
        ],
    }


def opencode_run() -> list[dict[str, Any]]:
    """What `opencode run --format json` prints for one model call."""
    state = {"status": "completed", "input": {"command": "ls"}, "output": "basket.py", "metadata": {"exit": 0}}
    parts: list[tuple[str, dict[str, Any]]] = [
        ("step_start", {"type": "step-start"}),
        ("tool_use", {"type": "tool", "callID": "c1", "tool": "bash", "state": state}),
        ("step_finish", {"type": "step-finish", "tokens": {"input": 5, "output": 7}, "cost": 0.001}),
    ]
    return [
        {"type": kind, "timestamp": 1_772_000_000_000 + n, "sessionID": "ses_2", "part": part}
        for n, (kind, part) in enumerate(parts)
    ]


def mini_swe_agent() -> dict[str, Any]:
    """A trajectory whose commands stand in the text."""
    usage = {"prompt_tokens": 1200, "completion_tokens": 60, "prompt_tokens_details": {"cached_tokens": 200}}
    said = "THOUGHT: look first.\n\n```bash\nls -la\n```"
    return {
        "info": {
            "exit_status": "Submitted",
            "submission": "",
            "model_stats": {"instance_cost": 0.05, "api_calls": 2},
            "config": {"model": {"model_name": "anthropic/claude-haiku-4-5"}},
        },
        "messages": [
            {"role": "system", "content": "You work in a shell."},
            {"role": "user", "content": "Fix the basket."},
            {"role": "assistant", "content": said, "extra": {"response": {"usage": usage, "created": 1_772_000_000}}},
            {"role": "user", "content": "<returncode>2</returncode>\n<output>\nls: cannot access\n</output>"},
            {
                "role": "assistant",
                "content": said,
                "extra": {
                    "response": {"usage": usage, "created": 1_772_000_010},
                    "cost": 0.02,
                    "timestamp": 1_772_000_012.5,
                },
            },
        ],
        "instance_id": "shop__basket-1",
        "trajectory_format": "mini-swe-agent-1",
    }


def swe_agent() -> dict[str, Any]:
    """A trajectory of two steps."""
    return {
        "trajectory": [
            {"action": "ls\n", "observation": "basket.py", "response": "I look.\n```\nls\n```", "thought": "I look."},
            {"action": "submit", "observation": "", "response": "Done.", "thought": "Done."},
        ],
        "history": [{"role": "system", "content": "You work."}, {"role": "user", "content": "Fix the basket."}],
        "info": {"exit_status": "submitted", "model_stats": {"instance_cost": 0.3, "tokens_sent": 90, "api_calls": 2}},
        "replay_config": json.dumps({"agent": {"model": {"name": "openai/gpt-4o"}}}),
    }


def tau_bench(n: int = 2) -> list[dict[str, Any]]:
    """Results of a customer-service task: a refused cancellation, rewarded every other time."""
    call = {"id": "c1", "type": "function", "function": {"name": "cancel_order", "arguments": '{"order": "17"}'}}
    traj = [
        {"role": "system", "content": "You serve customers."},
        {"role": "user", "content": "Cancel my order 17."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "cancel_order", "content": "Error: order is shipped"},
        {"role": "assistant", "content": "It is shipped already."},
    ]
    return [{"task_id": i, "reward": float(i % 2), "info": {}, "traj": traj, "trial": 0} for i in range(n)]


AIDER = """\
# aider chat started at 2026-03-01 12:00:00

> /usr/bin/aider basket.py
> Main model: gpt-4o with diff edit format
> Added basket.py to the chat.

#### make the sum right

I change the sum.

basket.py
```python
<<<<<<< SEARCH
total = 0
=======
total = sum(prices)
>>>>>>> REPLACE
```

> Tokens: 2.1k sent, 120 received. Cost: $0.01 message, $0.01 session.
> Applied edit to basket.py

#### thanks

You are welcome.

# aider chat started at 2026-03-02 12:00:00

#### explain it

It adds prices up.
"""


def chat(n: int = 3) -> list[dict[str, Any]]:
    """Conversations in chat form that say how they went."""
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "basket.py"}'}}
    messages = [
        {"role": "user", "content": "What does the basket do?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "total = 0", "returncode": 0},
        {"role": "assistant", "content": "It counts — from 0."},
    ]
    fields = {"model": "gpt-4o", "harness": "mini-swe-agent 1.0", "success": True, "cost_usd": 0.1, "steps": 2}
    return [{"task_id": f"basket-{i}", "trial": i, **fields, "messages": messages} for i in range(n)]


def anthropic(n: int = 2) -> list[dict[str, Any]]:
    """Conversations of the Messages API."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "List the files."}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "basket.py", "is_error": False}],
        },
        {"role": "assistant", "content": "There is one."},
    ]
    return [{"model": "claude-haiku-4-5", "system": f"You list, {i}.", "messages": messages} for i in range(n)]


def table(n: int = 4) -> list[dict[str, Any]]:
    """Rows of an outcome table."""
    return [
        {"task_id": f"t{i}", "model": "m", "harness": "h", "success": bool(i % 2), "cost_usd": i / 10, "steps": i}
        for i in range(n)
    ]


CSV = """\
task_id,model,success,cost_usd,steps,note
t1,small,true,0.1,3,plain
t2,small,0,,4,"two
lines"
t3,large,1,0.5,2,
"""


class Sample(Struct, frozen=True):
    """A recording, what it is, and how many turns and outcomes it holds."""

    name: str
    format: str
    data: bytes
    turns: int
    outcomes: int


SAMPLES = (
    Sample("session.jsonl", "claude-code", lines(claude_code(2)), 6, 0),
    Sample("rollout-2026.jsonl", "codex", lines(codex()), 4, 0),
    Sample("export.json", "opencode", json.dumps(opencode(), indent=2).encode(), 2, 0),
    Sample("run.jsonl", "opencode", lines(opencode_run()), 1, 0),
    Sample("shop__basket-1.traj.json", "mini-swe-agent", json.dumps(mini_swe_agent(), indent=2).encode(), 2, 1),
    Sample("shop__basket-2.traj", "swe-agent", json.dumps(swe_agent(), indent=2).encode(), 2, 1),
    Sample("airline.json", "tau-bench", json.dumps(tau_bench()).encode(), 4, 2),
    Sample(".aider.chat.history.md", "aider", AIDER.encode(), 3, 0),
    Sample("chat.jsonl", "openai-chat", lines(chat()), 6, 3),
    Sample("messages.jsonl", "anthropic", lines(anthropic()), 4, 0),
    Sample("outcomes.jsonl", "table", lines(table()), 0, 4),
    Sample("outcomes.csv", "table", CSV.encode(), 0, 3),
)

RECORDS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "openai-chat": chat,
    "anthropic": anthropic,
    "table": table,
    "tau-bench": tau_bench,
}
"""Formats of which every record stands by itself."""


def written(folder: Path, sample: Sample) -> Path:
    """The sample as a file."""
    path = folder / sample.name
    path.write_bytes(sample.data)
    return path
