"""The official clients behind one face: each asks in its own dialect and says what it understood of the answer."""

import base64
import dataclasses
import json
from typing import Any

import anthropic
import openai

JSON = dict[str, Any]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_TEXT = base64.b64encode(PNG).decode()
TOOLS: tuple[tuple[str, str, JSON], ...] = (
    ("read_file", "Read lines of a file.", {"path": {"type": "string"}, "lines": {"type": "array"}}),
    ("run", "Run a command.", {"command": {"type": "string"}, "timeout": {"type": "integer"}}),
    ("list_files", "List the files here.", {}),
)
SCHEMA: JSON = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "trains": {"type": "integer"}},
    "required": ["city", "trains"],
    "additionalProperties": False,
}


@dataclasses.dataclass
class Understood:
    """What a client made of one answer. `history` continues the conversation."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, Any]] = dataclasses.field(default_factory=list)
    call_ids: list[str] = dataclasses.field(default_factory=list)
    stop: str = ""
    usage: tuple[int | None, ...] = ()
    history: list[Any] = dataclasses.field(default_factory=list)


class Chat:
    """The `openai` client, Chat Completions."""

    format = "openai_chat"
    errors: Any = openai

    def __init__(self, url: str) -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-client", max_retries=0, timeout=30)

    def ask(self, model: str, messages: list[Any], stream: bool, **more: Any) -> Understood:
        create: Any = self.client.chat.completions
        if stream:
            options = {"include_usage": True}
            with create.stream(model=model, messages=messages, stream_options=options, **more) as events:
                for _ in events:
                    pass
                # The helper's own getter raises for a cut or filtered reply, which is what some tests are about.
                reply: Any = events.current_completion_snapshot
        else:
            reply = create.create(model=model, messages=messages, **more)
        choice, usage = reply.choices[0], reply.usage
        said = choice.message
        details, out = usage.prompt_tokens_details, usage.completion_tokens_details
        calls = said.tool_calls or []
        return Understood(
            text=said.content or "",
            reasoning=getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None) or "",
            refusal=said.refusal or "",
            calls=[(call.function.name, json.loads(call.function.arguments)) for call in calls],
            call_ids=[call.id for call in calls],
            stop=choice.finish_reason,
            usage=(
                usage.prompt_tokens,
                details and details.cached_tokens,
                usage.completion_tokens,
                out and out.reasoning_tokens,
            ),
            history=[*messages, said.model_dump(exclude_none=True, exclude={"parsed"})],
        )

    def user(self, text: str, image: bool = False) -> list[Any]:
        if not image:
            return [{"role": "user", "content": text}]
        url = {"url": f"data:image/png;base64,{PNG_TEXT}"}
        return [{"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": url}]}]

    def results(self, understood: Understood, texts: list[str]) -> list[Any]:
        pairs = zip(understood.call_ids, texts, strict=True)
        return [{"role": "tool", "tool_call_id": call, "content": text} for call, text in pairs]

    def tools(self) -> JSON:
        functions = [{"name": n, "description": d, "parameters": schema(p)} for n, d, p in TOOLS]
        return {"tools": [{"type": "function", "function": f} for f in functions]}

    def structured(self) -> JSON:
        wanted = {"name": "answer", "schema": SCHEMA, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}

    def pieces(self, model: str) -> list[str]:
        """The text deltas of a raw stream."""
        stream = self.client.chat.completions.create(model=model, messages=self.user("hi"), stream=True)
        return [c.choices[0].delta.content or "" for c in stream if c.choices]


class Responses:
    """The `openai` client, Responses."""

    format = "openai_responses"
    errors: Any = openai

    def __init__(self, url: str) -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-client", max_retries=0, timeout=30)

    def ask(self, model: str, messages: list[Any], stream: bool, **more: Any) -> Understood:
        more = {"store": False, **more}
        if stream:
            with self.client.responses.stream(model=model, input=messages, **more) as events:
                # The helper's own getter knows no incomplete response.
                last: Any = list(events)[-1]
                assert last.type in ("response.completed", "response.incomplete")
                reply: Any = last.response
        else:
            reply = self.client.responses.create(model=model, input=messages, **more)
        usage = reply.usage
        calls = [item for item in reply.output if item.type == "function_call"]
        parts = [part for item in reply.output if item.type == "message" for part in item.content]
        summaries = [part for item in reply.output if item.type == "reasoning" for part in item.summary]
        return Understood(
            text="".join(part.text for part in parts if part.type == "output_text"),
            reasoning="".join(part.text for part in summaries),
            refusal="".join(part.refusal for part in parts if part.type == "refusal"),
            calls=[(call.name, json.loads(call.arguments)) for call in calls],
            call_ids=[call.call_id for call in calls],
            stop=reply.status,
            usage=(
                usage.input_tokens,
                usage.input_tokens_details.cached_tokens,
                usage.output_tokens,
                usage.output_tokens_details.reasoning_tokens,
            ),
            history=[*messages, *[sendable(item) for item in reply.output]],
        )

    def user(self, text: str, image: bool = False) -> list[Any]:
        content: list[JSON] = [{"type": "input_text", "text": text}]
        if image:
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{PNG_TEXT}", "detail": "auto"})
        return [{"role": "user", "content": content}]

    def results(self, understood: Understood, texts: list[str]) -> list[Any]:
        pairs = zip(understood.call_ids, texts, strict=True)
        return [{"type": "function_call_output", "call_id": call, "output": text} for call, text in pairs]

    def tools(self) -> JSON:
        shared = {"type": "function", "strict": False}
        return {"tools": [{**shared, "name": n, "description": d, "parameters": schema(p)} for n, d, p in TOOLS]}

    def structured(self) -> JSON:
        return {"text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}}}

    def pieces(self, model: str) -> list[str]:
        """The text deltas of a raw stream; a failed response raises as the client's own helpers leave it to their user."""
        said = []
        stream = self.client.responses.create(model=model, input="hi", stream=True, store=False)
        for event in stream:
            if event.type == "response.output_text.delta":
                said.append(event.delta)
            elif event.type == "response.failed":
                error = event.response.error
                raise Failed(said, error.message if error else "")
        return said


class Messages:
    """The `anthropic` client."""

    format = "anthropic_messages"
    errors: Any = anthropic

    def __init__(self, url: str) -> None:
        self.client = anthropic.Anthropic(base_url=url, api_key="sk-client", max_retries=0, timeout=30)

    def ask(self, model: str, messages: list[Any], stream: bool, **more: Any) -> Understood:
        more = {"max_tokens": 1000, **more}
        if stream:
            with self.client.messages.stream(model=model, messages=messages, **more) as events:
                for _ in events:
                    pass
                reply: Any = events.get_final_message()
        else:
            reply = self.client.messages.create(model=model, messages=messages, **more)
        usage = reply.usage
        calls = [block for block in reply.content if block.type == "tool_use"]
        content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in reply.content]
        return Understood(
            text="".join(block.text for block in reply.content if block.type == "text"),
            reasoning="".join(block.thinking for block in reply.content if block.type == "thinking"),
            calls=[(call.name, call.input) for call in calls],
            call_ids=[call.id for call in calls],
            stop=reply.stop_reason,
            usage=(
                usage.input_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
                usage.output_tokens,
            ),
            history=[*messages, {"role": "assistant", "content": content}],
        )

    def user(self, text: str, image: bool = False) -> list[Any]:
        content: list[JSON] = [{"type": "text", "text": text}]
        if image:
            source = {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}
            content.append({"type": "image", "source": source})
        return [{"role": "user", "content": content}]

    def results(self, understood: Understood, texts: list[str]) -> list[Any]:
        pairs = zip(understood.call_ids, texts, strict=True)
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in pairs]
        return [{"role": "user", "content": blocks}]

    def tools(self) -> JSON:
        return {"tools": [{"name": n, "description": d, "input_schema": schema(p)} for n, d, p in TOOLS]}

    def structured(self) -> JSON:
        return {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}

    def pieces(self, model: str) -> list[str]:
        """The text deltas of a raw stream."""
        asked: Any = self.user("hi")
        stream = self.client.messages.create(model=model, messages=asked, max_tokens=100, stream=True)
        return [e.delta.text for e in stream if e.type == "content_block_delta" and e.delta.type == "text_delta"]


class Failed(Exception):
    """A stream of Responses that ended in `response.failed`, after `said`."""

    def __init__(self, said: list[str], message: str) -> None:
        super().__init__(message)
        self.said = said


def schema(properties: JSON) -> JSON:
    """A JSON schema of an object."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def sendable(item: Any) -> JSON:
    """An output item as a client sends it back."""
    fields: JSON = item.model_dump(exclude_none=True)
    fields.pop("parsed_arguments", None)
    for part in fields.get("content") or []:
        part.pop("parsed", None)
    return fields


CLIENTS = {kind.format: kind for kind in (Chat, Responses, Messages)}
