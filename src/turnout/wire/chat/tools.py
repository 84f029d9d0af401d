"""Tools and tool choice, both ways."""

from typing import Any, Literal

import msgspec

from turnout.conversation import Tool, ToolChoice
from turnout.errors import ClientError
from turnout.wire.chat.content import FORMAT
from turnout.wire.chat.fields import object_at, rest, text_or_none, wrong

_FUNCTION = frozenset(("name", "description", "parameters", "strict"))
_CUSTOM = frozenset(("name", "description", "format"))
_OUTER = frozenset(("type", "function", "custom", "cache_control"))
_MODES: dict[str, Any] = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def tool_reader(raw: msgspec.Raw, index: int) -> Tool:
    """Decodes one raw entry of `tools`, for `Lazy`."""
    path = f"tools[{index}]"
    return read_tool(_decoded(raw, path), path)


def function_reader(raw: msgspec.Raw, index: int) -> Tool:
    """Decodes one raw entry of the legacy `functions`; `raw` keeps it, which tells the writer how to spell it."""
    path = f"functions[{index}]"
    value = object_at(_decoded(raw, path), path)
    return msgspec.structs.replace(_read_function(value, {}, None, path), raw=value, format=FORMAT)


def _decoded(raw: msgspec.Raw, path: str) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"{path}: not valid JSON: {error}", param=path, code="invalid_json") from None


def read_tool(value: Any, path: str) -> Tool:
    """One entry of `tools`; a type that Chat servers run themselves is kept as a server tool."""
    tool = object_at(value, path)
    kind = tool.get("type")
    cache = tool.get("cache_control")
    cache = cache if isinstance(cache, dict) else None
    if kind == "function" or (kind is None and "function" in tool):
        inner = object_at(tool.get("function"), f"{path}.function")
        return _read_function(inner, rest(tool, _OUTER), cache, f"{path}.function")
    if kind == "custom":
        inner = object_at(tool.get("custom"), f"{path}.custom")
        extra = rest(tool, _OUTER)
        more = rest(inner, _CUSTOM)
        if more:
            extra["custom"] = more
        return Tool(
            _name(inner, f"{path}.custom"),
            text_or_none(inner.get("description"), f"{path}.custom.description"),
            style="custom",
            grammar=flat_grammar(inner.get("format")),
            cache=cache,
            extra=extra,
        )
    if not isinstance(kind, str):
        raise wrong(f"{path}.type", "a string", kind)
    return Tool(kind, style="server", raw=tool, format=FORMAT)


def _read_function(inner: dict[str, Any], extra: dict[str, Any], cache: dict[str, Any] | None, path: str) -> Tool:
    parameters, strict = inner.get("parameters"), inner.get("strict")
    if parameters is not None and not isinstance(parameters, dict):
        raise wrong(f"{path}.parameters", "an object", parameters)
    if strict is not None and not isinstance(strict, bool):
        raise wrong(f"{path}.strict", "a boolean", strict)
    if not _FUNCTION.issuperset(inner) and (more := rest(inner, _FUNCTION)):
        extra["function"] = more
    description = text_or_none(inner.get("description"), f"{path}.description")
    return Tool(_name(inner, path), description, parameters, strict, cache=cache, extra=extra)


def _name(inner: dict[str, Any], path: str) -> str:
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise wrong(f"{path}.name", "a name", name)
    return name


def flat_grammar(form: Any) -> Any:
    """A custom tool's format in the neutral (flat) spelling: Chat nests the grammar under its own key."""
    if isinstance(form, dict) and form.get("type") == "grammar" and isinstance(form.get("grammar"), dict):
        return {"type": "grammar", **form["grammar"]}
    return form


def nested_grammar(form: Any) -> Any:
    """The opposite of `flat_grammar`."""
    if isinstance(form, dict) and form.get("type") == "grammar" and "grammar" not in form:
        return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}
    return form


def write_tool(tool: Tool) -> Any:
    """A tool in this format's own spelling."""
    if tool.style == "server" or tool.raw is not None:
        return tool.raw
    inner: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        inner["description"] = tool.description
    if tool.style == "custom":
        if tool.grammar is not None:
            inner["format"] = nested_grammar(tool.grammar)
    else:
        if tool.parameters is not None:
            inner["parameters"] = tool.parameters
        if tool.strict is not None:
            inner["strict"] = tool.strict
    value: dict[str, Any] = {"type": tool.style, tool.style: inner}
    if tool.cache is not None:
        value["cache_control"] = tool.cache
    for key, more in tool.extra.items():
        if key == tool.style:
            inner.update(more)
        else:
            value[key] = more
    return value


def read_choice(value: Any) -> ToolChoice | None:
    """`tool_choice`; a spelling nobody knows is kept raw."""
    if value is None:
        return None
    if isinstance(value, str):
        mode = _MODES.get(value)
        return ToolChoice(mode) if mode is not None else ToolChoice("raw", raw=value)
    choice = object_at(value, "tool_choice")
    kind = choice.get("type")
    inner = choice.get(kind) if isinstance(kind, str) else None
    if kind in ("function", "custom"):
        name = inner.get("name") if isinstance(inner, dict) else choice.get("name")
        if not isinstance(name, str):
            raise wrong(f"tool_choice.{kind}.name", "a string", name)
        return ToolChoice("named", name, style=kind)
    if kind == "allowed_tools" and isinstance(inner, dict) and isinstance(inner.get("tools"), list):
        names = [_allowed_name(entry) for entry in inner["tools"]]
        allowed: Literal["auto", "required"] = "required" if inner.get("mode") == "required" else "auto"
        return ToolChoice("allowed", names=tuple(n for n in names if n), allowed_mode=allowed, raw=choice)
    return ToolChoice("raw", raw=value)


def _allowed_name(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    inner = entry.get(entry.get("type", ""), entry)
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def read_legacy_choice(value: Any) -> ToolChoice | None:
    """The legacy `function_call` setting: a mode, or the name of a function."""
    if isinstance(value, dict):
        name = value.get("name")
        if not isinstance(name, str):
            raise wrong("function_call.name", "a string", name)
        return ToolChoice("named", name)
    return read_choice(value)


def write_choice(choice: ToolChoice) -> Any:
    """`tool_choice` in this format's own spelling."""
    match choice.mode:
        case "auto" | "none" | "required":
            return choice.mode
        case "named":
            return {"type": choice.style, choice.style: {"name": choice.name}}
        case "allowed" if choice.raw is None:
            tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
            return {"type": "allowed_tools", "allowed_tools": {"mode": choice.allowed_mode, "tools": tools}}
        case _:
            return choice.raw
