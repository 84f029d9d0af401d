"""Request bodies for the benchmark: a ~1 KB chat and a ~100 KB agent turn, per protocol.

`make(kind, proto, model, stream)` returns bytes. Deterministic."""

import json
import random

LOREM = (
    "The parser keeps a cursor into the token list and advances it only when a rule matches. "
    "When a rule fails the cursor is restored, so a partial match never leaks into the next rule. "
)


def _tools(n=20):
    for i in range(n):
        yield (
            f"tool_{i}",
            f"Tool number {i}. " + LOREM,
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File to act on, relative to the project."},
                    "pattern": {"type": "string", "description": "Regular expression to look for."},
                    "limit": {"type": "integer", "description": "Most results to return."},
                },
                "required": ["path"],
            },
        )


def _results(n=60):
    rng = random.Random(7)
    kinds = [
        lambda i: f"src/mod_{i}.py\n" + "\n".join(f"{k:4d}  def f_{k}(x): return x + {k}" for k in range(40)),
        lambda i: "============ 12 passed in 0.41s ============\n" + LOREM * 6,
        lambda i: f'Traceback (most recent call last):\n  File "a.py", line {i}\nValueError: bad token\n' + LOREM * 6,
        lambda i: "total 48\n" + "\n".join(f"-rw-r--r-- 1 u u {rng.randint(1, 99999)} f_{k}.py" for k in range(32)),
        lambda i: "bash: frobnicate: command not found\n" + LOREM * 5,
        lambda i: "The file src/x.py has been updated successfully.\n" + LOREM * 7,
    ]
    for i in range(n):
        # the last ones are failures, so that a tool-signal router has something to see
        k = kinds[2] if i >= n - 2 else kinds[i % len(kinds)]
        yield f"call_{i:04d}", f"tool_{i % 20}", {"path": f"src/mod_{i}.py", "pattern": "def .*", "limit": 40}, k(i)


def _chat_messages():
    return [
        {"role": "system", "content": "You are a careful assistant. " + LOREM},
        {"role": "user", "content": LOREM + "Why does the test fail?"},
        {"role": "assistant", "content": "Because the cursor is not restored. " + LOREM},
        {"role": "user", "content": "Show me the fix in one line, please."},
    ]


def make(kind, proto, model, stream):
    body = {"model": model}
    if stream:
        body["stream"] = True
    if kind == "chat":
        msgs = _chat_messages()
        if proto == "anthropic":
            body.update(max_tokens=256, system=msgs[0]["content"], messages=msgs[1:])
        else:
            body.update(messages=msgs, temperature=0.2, max_tokens=256)
        return json.dumps(body, separators=(",", ":")).encode()
    sys_prompt = "You are a coding agent. " + LOREM * 8
    task = "Fix the failing test in the parser module. " + LOREM
    if proto == "anthropic":
        msgs = [{"role": "user", "content": task}]
        for cid, name, args, out in _results():
            msgs.append(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "Let me look at the next file."},
                        {"type": "tool_use", "id": cid, "name": name, "input": args},
                    ],
                }
            )
            msgs.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": cid, "content": out}]})
        tools = [{"name": n, "description": d, "input_schema": s} for n, d, s in _tools()]
        body.update(max_tokens=1024, system=sys_prompt, messages=msgs, tools=tools)
    else:
        msgs = [{"role": "system", "content": sys_prompt}, {"role": "user", "content": task}]
        for cid, name, args, out in _results():
            msgs.append(
                {
                    "role": "assistant",
                    "content": "Let me look at the next file.",
                    "tool_calls": [
                        {"id": cid, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
                    ],
                }
            )
            msgs.append({"role": "tool", "tool_call_id": cid, "content": out})
        tools = [
            {"type": "function", "function": {"name": n, "description": d, "parameters": s}} for n, d, s in _tools()
        ]
        body.update(messages=msgs, tools=tools, max_tokens=1024)
    return json.dumps(body, separators=(",", ":")).encode()


if __name__ == "__main__":
    for k in ("chat", "agent"):
        for p in ("openai", "anthropic"):
            print(k, p, len(make(k, p, "m-0-0-20", True)))
