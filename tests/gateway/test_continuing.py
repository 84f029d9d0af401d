"""A response can be continued by the id the client got, whichever format the target speaks."""

from pathlib import Path

import openai
import pytest
from tests.running import running, script

CONFIG = """
[upstreams.played]
format = "{format}"
script = "replies.jsonl"
[targets.one]
upstream = "played"
model = "m"
[routes.coder]
type = "passthrough"
target = "one"
"""


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic_messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_continued_by_its_id(format: str, stream: bool, tmp_path: Path):
    script(tmp_path, "replies.jsonl", {"turn": 0, "text": "first"}, {"turn": 1, "text": "second"})
    with running(CONFIG.format(format=format), tmp_path) as gateway:
        client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="unused", max_retries=0)
        with client:
            if stream:
                with client.responses.create(model="coder", input="hi", stream=True) as events:
                    first = next(event.response for event in events if event.type == "response.completed")
            else:
                first = client.responses.create(model="coder", input="hi")
            assert first.output_text == "first"
            if format == "openai_responses":
                return  # the upstream itself is asked to continue it; the scripted one keeps nothing
            second = client.responses.create(model="coder", input="and?", previous_response_id=first.id)
    assert second.output_text == "second"
    assert second.id != first.id
