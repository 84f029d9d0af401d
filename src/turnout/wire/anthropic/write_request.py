"""The neutral form -> a Messages request. A conversation read from Messages goes out unit by unit, exactly; one of another
format is folded into turns, and what Messages cannot carry is reported under the path it had in its source."""

from collections.abc import Sequence
from typing import Any

import msgspec

from turnout.conversation import Format, Message, Part, Reasoning, Settings, Text, Tool, ToolCall, ToolResult
from turnout.errors import ClientError
from turnout.wire.anthropic.marks import mark
from turnout.wire.anthropic.schema import constrained
from turnout.wire.anthropic.turns import Turn, turns_of
from turnout.wire.anthropic.write_content import Block, BlockWriter
from turnout.wire.anthropic.write_settings import choice_of, narrowed, own_settings, translated_settings
from turnout.wire.codec import Request, Written
from turnout.wire.drops import Drops
from turnout.wire.names import alias
from turnout.wire.paths import root

DEFAULT_MAX_TOKENS = 64_000
BREAKPOINTS = 4
"""Most cache breakpoints Messages takes in one request."""

_CUSTOM_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The raw input of the tool."}},
    "required": ["input"],
    "additionalProperties": False,
}
_ENCODER = msgspec.json.Encoder()


def write_request(request: Request, default_max_tokens: int | None, cache_marks: bool = False) -> Written:
    """`request` as a Messages body. `cache_marks`: mark what to cache in a request of a format that has no marks."""
    drops = Drops()
    settings = request.settings
    own = request.conversation.format == "anthropic_messages"
    writer = BlockWriter(drops, own, request.format)
    limit = settings.max_tokens
    if limit is None:
        limit = default_max_tokens or DEFAULT_MAX_TOKENS
    body: dict[str, Any] = {"model": settings.model, "max_tokens": limit}
    if settings.stream:
        body["stream"] = True
    if own:
        _own_conversation(body, request, writer)
        own_settings(body, settings)
        if settings.max_tokens is None and default_max_tokens is None:
            del body["max_tokens"]  # as it was sent: a count request has none
    else:
        _folded_conversation(body, request, writer)
        translated_settings(body, settings, request.format, drops)
        _finish_folded(body, drops)
        if cache_marks:
            mark(body, settings)
    return Written(_ENCODER.encode(body), tuple(drops.found))


def _own_conversation(body: dict[str, Any], request: Request, writer: BlockWriter) -> None:
    conversation = request.conversation
    if conversation.system_flat and len(conversation.system) == 1 and _plain(conversation.system[0]):
        body["system"] = conversation.system[0].text  # type: ignore[union-attr]  # a plain text
    elif len(conversation.system) or not conversation.system_flat:
        body["system"] = writer.blocks(tuple(conversation.system), "system")
    body["messages"] = [_own_message(m, i, writer) for i, m in enumerate(conversation.messages)]
    if len(conversation.tools):
        body["tools"] = [tool for i, t in enumerate(conversation.tools) if (tool := _tool(t, f"tools[{i}]", writer))]
    if request.settings.tool_choice is not None:
        body["tool_choice"] = choice_of(request.settings)


def _own_message(message: Message, index: int, writer: BlockWriter) -> Block:
    content: str | list[Block]
    if message.flat and len(message.parts) == 1 and _plain(message.parts[0]):
        content = message.parts[0].text  # type: ignore[union-attr]  # a plain text
    else:
        content = writer.blocks(message.parts, f"messages[{index}].content")
    role = message.role
    if role == "tool":
        role = "user"
    elif role == "developer":
        role = "system"
    return {"role": role, "content": content, **message.extra}


def _plain(part: Part) -> bool:
    return type(part) is Text and part.cache is None and not part.annotations and not part.extra


def _folded_conversation(body: dict[str, Any], request: Request, writer: BlockWriter) -> None:
    conversation, settings, drops = request.conversation, request.settings, writer.drops
    source = request.format
    lead = 0
    while lead < len(conversation.roles) and conversation.roles[lead] in ("system", "developer"):
        lead += 1
    name = "instructions" if source == "openai_responses" else "system"
    system = writer.blocks(tuple(conversation.system), name)
    for i, message in enumerate(conversation.messages):
        if i < lead:
            system += writer.blocks(message.parts, root(source, i))
        _report_message(message, root(source, i), drops)
    turns = turns_of(conversation.messages[lead:], source, lead, writer)
    if not turns and system:
        drops.emulate(root(source, 0), "Messages wants a user turn: the instructions were sent as one")
        turns, system = [Turn("user", system)], []
    if not turns:
        raise ClientError("there is no message to send", code="empty_conversation", param="messages")
    if system:
        body["system"] = system
    body["messages"] = [{"role": turn.role, "content": turn.blocks} for turn in turns]
    _folded_tools(body, conversation.tools, settings, source, writer)


def _report_message(message: Message, path: str, drops: Drops) -> None:
    if message.name is not None:
        drops.drop(f"{path}.name", "Messages has no participant names")
    if message.extra:
        drops.extras(path, message.extra, "Messages")
    if message.id is not None or any(isinstance(p, _ITEMS) and _item_id(p) is not None for p in message.parts):
        drops.emulate(f"{path}.id", "Messages has no item ids: order and call ids say the same")
    if message.status is not None:
        drops.emulate(f"{path}.status", "Messages takes finished items only")


_ITEMS = (ToolCall, ToolResult, Reasoning)


def _item_id(part: ToolCall | ToolResult | Reasoning) -> str | None:
    return part.id if isinstance(part, Reasoning) else part.item_id


def _folded_tools(
    body: dict[str, Any], tools: Sequence[Tool], settings: Settings, source: Format, writer: BlockWriter
) -> None:
    drops = writer.drops
    kept, mode = narrowed(tools, settings)
    written: dict[str, Block] = {}
    for i, tool in enumerate(tools):
        path = f"tools[{i}]"
        if mode is not None and tool not in kept:
            drops.emulate(path, "left out: tool_choice allows only other tools")
            continue
        block = _tool(tool, path, writer)
        if block is not None and written.setdefault(block["name"], block) is not block:
            drops.drop(path, "another tool has the same name")
    if not written:
        lost = next((i for i, tool in enumerate(tools) if tool.style == "server"), None)
        if lost is not None:
            raise ClientError(
                f"tools[{lost}]: {tools[lost].name} runs on another provider's servers, and this request offers no other "
                "tool; route it to a target of that provider",
                code="unsupported_capability",
                param=f"tools[{lost}]",
            )
        if settings.tool_choice is not None:
            drops.drop("tool_choice", "no tool is left to choose from")
        return
    body["tools"] = list(written.values())
    if settings.tool_choice is not None and settings.tool_choice.mode == "raw":
        drops.drop("tool_choice", "Messages does not know this choice")
        return
    choice = choice_of(settings, mode)
    if choice is not None:
        body["tool_choice"] = choice


def _tool(tool: Tool, path: str, writer: BlockWriter) -> Block | None:
    """The definition of one tool; None when Messages cannot offer it."""
    drops = writer.drops
    if tool.style == "server":
        if tool.format == "anthropic_messages":
            raw: Block = tool.raw
            return raw
        drops.drop(path, "a tool that another provider runs")
        return None
    if not tool.name.strip() and not writer.own:
        drops.drop(path, "the tool has no name")
        return None
    block: Block = {"name": tool.name if writer.own and tool.namespace is None else alias(tool.name, tool.namespace)}
    description = tool.description
    if tool.style == "custom":
        drops.emulate(path, "a free-form tool is offered as a function with one `input` argument")
        description = "\n\n".join(s for s in (description, _grammar(tool.grammar)) if s)
    if description is not None:
        block["description"] = description
    if tool.style == "custom":
        block["input_schema"] = _CUSTOM_INPUT
    elif writer.own:
        if tool.parameters is not None:
            block["input_schema"] = tool.parameters
    else:
        block["input_schema"] = _input_schema(tool, path, drops)
    if tool.strict is not None:
        block["strict"] = tool.strict
    if tool.cache is not None:
        block["cache_control"] = tool.cache
    if tool.extra:
        if writer.own:
            block.update(tool.extra)
        else:
            drops.extras(path, tool.extra, "Messages")
    return block


def _input_schema(tool: Tool, path: str, drops: Drops) -> dict[str, Any]:
    schema = tool.parameters or {}
    if "type" not in schema:
        schema = {"type": "object", "properties": {}, **schema}
    if tool.strict:
        schema, changed = constrained(schema, closed=False)
        if changed:
            drops.downgrade(f"{path}.parameters", "Messages takes no limits in the schema of a strict tool")
    return schema


def _grammar(grammar: Any) -> str:
    if grammar is None:
        return ""
    if isinstance(grammar, dict) and isinstance(grammar.get("definition"), str):
        syntax = grammar.get("syntax")
        return f"The input must match this grammar{f' ({syntax})' if syntax else ''}:\n{grammar['definition']}"
    return f"The input must match this format:\n{_ENCODER.encode(grammar).decode()}"


def _finish_folded(body: dict[str, Any], drops: Drops) -> None:
    """What Messages asks of a whole request: at most four breakpoints."""
    marked = [
        block
        for blocks in (body.get("tools", ()), body.get("system", ()), *(m["content"] for m in body["messages"]))
        for block in blocks
        if "cache_control" in block
    ]
    for block in marked[:-BREAKPOINTS]:
        del block["cache_control"]
        drops.drop("cache_control", f"Messages takes at most {BREAKPOINTS} cache breakpoints: the last ones were kept")
