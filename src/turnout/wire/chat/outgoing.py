"""Writing a Chat request from any format."""

from typing import Any

import msgspec

from turnout.conversation import Conversation, Format, Lazy, Settings, Sourced, Text, Tool, ToolChoice
from turnout.errors import ClientError
from turnout.wire.chat.content import FORMAT
from turnout.wire.chat.messages import write_message
from turnout.wire.chat.settings import write_settings
from turnout.wire.chat.tools import write_choice, write_tool
from turnout.wire.chat.turns import NAME, NO_CACHE, write_turns
from turnout.wire.codec import Request, Written
from turnout.wire.drops import Drop, Drops
from turnout.wire.names import alias
from turnout.wire.renderings import Renderings

_ENCODER = msgspec.json.Encoder()
_REMEMBERED: Renderings[tuple[msgspec.Raw, tuple[Drop, ...]]] = Renderings(1 << 20)
"""Tools as written, by their source: every turn of a session offers the same ones."""

_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def write_request(request: Request, *, reasoning_content: bool = False, developer_role: str = "developer") -> Written:
    """`request` as a Chat request.

    `reasoning_content`: give readable reasoning of earlier turns back in that field, and never leave it out of a turn with
    tool calls, for servers that insist. `developer_role`: "system" for servers that do not know the developer role.
    """
    drops = Drops()
    conversation, settings = request.conversation, request.settings
    value = write_settings(settings, request.format, request.body, drops)
    if conversation.format == FORMAT:
        value["messages"] = _own_messages(conversation)
        _own_tools(conversation, settings, value)
    else:
        value["messages"] = write_turns(
            conversation, drops, reasoning_content=reasoning_content, developer_role=developer_role
        )
        _tools(conversation, settings, value, drops)
    return Written(_ENCODER.encode(value), tuple(drops.found))


def _own_messages(conversation: Conversation) -> list[Any]:
    """Messages that came as Chat: those nobody looked into or changed go out as the bytes they came in."""
    messages: list[Any] = []
    if len(conversation.system):
        text = "\n\n".join(p.text for p in conversation.system if isinstance(p, Text))
        messages.append({"role": "system", "content": text})
    if isinstance(conversation.messages, Lazy):
        messages += conversation.messages.raw
    else:
        messages += [write_message(m) for m in conversation.messages]
    return messages


def _own_tools(conversation: Conversation, settings: Settings, value: dict[str, Any]) -> None:
    legacy = []
    if isinstance(conversation.tools, Lazy):
        value["tools"] = conversation.tools.raw
    elif len(conversation.tools):
        modern = [t for t in conversation.tools if t.raw is None or t.style == "server"]
        legacy = [t for t in conversation.tools if t.raw is not None and t.style != "server"]
        if modern:
            value["tools"] = [write_tool(t) for t in modern]
        if legacy:
            value["functions"] = [write_tool(t) for t in legacy]
    choice = settings.tool_choice
    if choice is None:
        return
    if legacy and "tools" not in value and choice.mode in ("auto", "none", "named"):
        value["function_call"] = {"name": choice.name} if choice.mode == "named" else choice.mode
    else:
        value["tool_choice"] = write_choice(choice)


def _tools(conversation: Conversation, settings: Settings, value: dict[str, Any], drops: Drops) -> None:
    """Tools and choice of another format; the choice goes when no tool is left."""
    choice = settings.tool_choice
    tools = conversation.tools
    source = tools.source() if isinstance(tools, Sourced) and (choice is None or choice.mode != "allowed") else b""
    known = _REMEMBERED.get((conversation.format, source)) if source else None
    if known is not None:
        value["tools"], found = known
        drops.found += found
        if choice is not None:
            value["tool_choice"] = _choice(choice)
        return
    before = len(drops.found)
    kept = []
    lost: list[str] = []
    for index, tool in enumerate(conversation.tools):
        if tool.style == "server":
            drops.drop(f"tools[{index}]", f"a {NAME} server does not run {tool.name} itself")
            lost.append(tool.name)
        elif not tool.name:
            drops.drop(f"tools[{index}]", "a tool without a name cannot be called")
        elif choice is not None and choice.mode == "allowed" and not _allowed(tool, choice):
            continue
        else:
            kept.append(_tool(tool, index, conversation.format, drops))
    if choice is not None and choice.mode == "allowed" and not kept:
        raise ClientError(
            "tool_choice: none of the allowed tools is a function that this request defines",
            param="tool_choice",
            code="unsupported_capability",
        )
    if lost and (not kept or _demands(choice, lost)):
        raise ClientError(
            f"tools: {', '.join(lost)} can be run only by the vendor it comes from; a {NAME} server cannot; "
            "route this request to a target of its own format",
            param="tools",
            code="unsupported_capability",
        )
    if not kept:
        value.pop("parallel_tool_calls", None)
        return
    value["tools"] = kept
    if source and not lost:
        written = msgspec.Raw(_ENCODER.encode(kept))
        size = len(source) + len(written)
        _REMEMBERED.put((conversation.format, source), (written, tuple(drops.found[before:])), size)
    if choice is not None:
        value["tool_choice"] = _choice(choice)


def _demands(choice: ToolChoice | None, lost: list[str]) -> bool:
    """Whether the client insists on a tool that is lost."""
    return choice is not None and choice.mode == "named" and choice.name in lost


def _allowed(tool: Tool, choice: ToolChoice) -> bool:
    return tool.name in choice.names or alias(tool.name, tool.namespace) in choice.names


def _choice(choice: ToolChoice) -> Any:
    match choice.mode:
        case "named":
            return {"type": "function", "function": {"name": alias(choice.name or "", choice.namespace)}}
        case "allowed":
            return choice.allowed_mode
        case "raw":
            raise ClientError(
                f"tool_choice: {NAME} does not know this choice", param="tool_choice", code="unsupported_capability"
            )
        case mode:
            return mode


def _tool(tool: Tool, index: int, source: Format | None, drops: Drops) -> dict[str, Any]:
    if tool.cache is not None:
        drops.drop(f"tools[{index}].cache_control", NO_CACHE)
    if tool.extra:
        drops.extras(f"tools[{index}]", tool.extra, NAME)
    function: dict[str, Any] = {"name": alias(tool.name, tool.namespace)}
    description = tool.description
    if tool.style == "custom":
        drops.emulate(f"tools[{index}]", "a custom tool is a function with one argument here")
        description = _with_grammar(tool)
        function["parameters"] = _INPUT
    else:
        function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
        if tool.strict is not None:
            function["strict"] = tool.strict
    if description is not None:
        function["description"] = description
    return {"type": "function", "function": function}


def _with_grammar(tool: Tool) -> str | None:
    grammar = tool.grammar
    if not isinstance(grammar, dict) or "definition" not in grammar:
        return tool.description
    said = f"{tool.description}\n\n" if tool.description else ""
    return (
        f"{said}The input is raw text that matches this {grammar.get('syntax', '')} grammar:\n{grammar['definition']}"
    )
