"""Your program, pointed at Turnout: the official anthropic client, with a tool.

    turnout serve turnout.toml &
    ANTHROPIC_BASE_URL=http://127.0.0.1:4000 python examples/sdk_anthropic.py

The model is the name of a route. A failed tool result carries `is_error`, the surest evidence a router can have.
"""

import os
import uuid
from typing import Any

import anthropic

client = anthropic.Anthropic(
    base_url=os.environ.get("ANTHROPIC_BASE_URL", "http://127.0.0.1:4000"),
    api_key=os.environ.get("TURNOUT_API_KEY", "unused"),  # a tenant's key, where the gateway asks for one
    default_headers={"x-turnout-session": str(uuid.uuid4())},
)
tools: Any = [
    {
        "name": "run_tests",
        "description": "Run the tests and return what they print.",
        "input_schema": {"type": "object", "properties": {}},
    }
]
messages: list[Any] = [{"role": "user", "content": "Are the tests green?"}]

for _ in range(4):
    with client.messages.stream(model="coder", max_tokens=1024, tools=tools, messages=messages) as stream:
        reply = stream.get_final_message()
    print(f"[{stream.response.headers['x-turnout-target']}]", *(b.text for b in reply.content if b.type == "text"))
    calls = [block for block in reply.content if block.type == "tool_use"]
    if not calls:
        break
    results = [
        {"type": "tool_result", "tool_use_id": c.id, "content": "2 failed, 5 passed in 0.31s", "is_error": True}
        for c in calls
    ]
    messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
