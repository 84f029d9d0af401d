"""How the client wants the answer: everything of a request that is not the conversation."""

from typing import Any, Literal

from msgspec import Struct

from turnout.conversation.parts import Extra


class ToolChoice(Struct, frozen=True):
    """`auto`, `required`, `none`, `named` (must call `name`), `allowed` (only `names`, in `allowed_mode`), or `raw`."""

    mode: Literal["auto", "required", "none", "named", "allowed", "raw"]
    name: str | None = None
    namespace: str | None = None
    style: Literal["function", "custom"] = "function"
    names: tuple[str, ...] = ()
    allowed_mode: Literal["auto", "required"] = "auto"
    raw: Any = None


class OutputFormat(Struct, frozen=True):
    """Structured output: free `text`, any `json_object`, or a `json_schema` (key order of `schema` kept)."""

    kind: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    extra: Extra = {}


class Effort(Struct, frozen=True):
    """How much the model shall reason.

    `level`: a named effort (minimal, low, medium, high, xhigh, max ...). `mode`: Anthropic's thinking switch. `budget_tokens`:
    its token budget. `summary`: what Responses shall show of the reasoning. `extra`: native remainder of the source's object.
    """

    level: str | None = None
    mode: Literal["enabled", "disabled", "adaptive"] | None = None
    budget_tokens: int | None = None
    summary: str | None = None
    extra: Extra = {}


class Settings(Struct, frozen=True):
    """Settings shared by at least two formats by name; the rest in `extra`, as the source spelled it, in order.

    `max_tokens`: upper limit of output tokens. `parallel`: whether several tool calls may come in one reply (None: not
    said). `stream_usage`: the client asked for usage in the stream (Messages and Responses always send it: True there).
    `user`: the end user's id within the vendor (metadata.user_id, safety_identifier, user) and `user_field` its spelling.
    `verbosity`: text verbosity of OpenAI models. `previous_response_id`, `conversation_id`: server state of Responses.
    """

    model: str = ""
    stream: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel: bool | None = None
    output: OutputFormat | None = None
    effort: Effort | None = None
    verbosity: str | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    user_field: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    prompt_cache_key: str | None = None
    previous_response_id: str | None = None
    conversation_id: str | None = None
    background: bool | None = None
    stream_usage: bool = False
    n: int | None = None
    extra: Extra = {}
