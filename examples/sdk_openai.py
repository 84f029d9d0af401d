"""Your program, pointed at Turnout: the official openai client, Chat Completions and Responses.

    turnout serve turnout.toml &
    OPENAI_BASE_URL=http://127.0.0.1:4000/v1 python examples/sdk_openai.py

The model is the name of a route. The session header keeps the turns of one run together.
"""

import os
import uuid

import openai

client = openai.OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:4000/v1"),
    api_key=os.environ.get("TURNOUT_API_KEY", "unused"),  # a tenant's key, where the gateway asks for one
    default_headers={"x-turnout-session": str(uuid.uuid4())},
)

stream = client.chat.completions.create(
    model="coder", messages=[{"role": "user", "content": "Say hello."}], stream=True
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print(f"\nserved by {stream.response.headers['x-turnout-target']}, turn {stream.response.headers['x-turnout-turn']}")

raw = client.responses.with_raw_response.create(model="coder", input="Say hello again.")
print(raw.parse().output_text)
print(f"served by {raw.headers['x-turnout-target']}, because of {raw.headers['x-turnout-source']}")
