"""Tools and tool choice of Responses <-> the neutral form."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, overload

import msgspec

from turnout.conversation import Conversation, Extra, Opaque, Sourced, Tool, ToolChoice
from turnout.errors import ClientError
from turnout.wire.drops import Drops
from turnout.wire.names import alias
from turnout.wire.responses.content import FORMAT, decoded, fault, rest, text_or_none

CARRIERS = frozenset({"additional_tools", "tool_search_output"})
"""Input items that make tools available from their place on."""


class Tools(Sourced, Sequence[Tool]):
    """The tools of a request, read on first access: one namespace holds many, so they cannot be read one by one.

    `raw`: the `tools` array as it came (None when absent). `carried`: the tools found in input items.
    """

    __slots__ = ("_carriers", "_made", "raw")

    def __init__(self, raw: msgspec.Raw | None, carriers: Sequence[tuple[int, msgspec.Raw]] = ()) -> None:
        self.raw = raw
        self._carriers = carriers
        self._made: tuple[Tool, ...] | None = None

    def _read(self) -> tuple[Tool, ...]:
        if self._made is None:
            found = list(read_tools(decoded(self.raw, "tools"), "tools")) if self.raw is not None else []
            seen = {_key(tool) for tool in found} if self._carriers else set()
            for index, raw in self._carriers:
                item = decoded(raw, f"input[{index}]")
                carried = list(read_tools(item.get("tools"), f"input[{index}].tools"))
                found += (tool for tool in carried if _key(tool) not in seen)
                seen.update(map(_key, carried))
            self._made = tuple(found)
        return self._made

    def source(self) -> bytes:
        """The JSON text that the tools are read from."""
        return b"".join([self.raw or b"", *[raw for _, raw in self._carriers]])

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | Sequence[Tool]:
        return self._read()[index]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._read())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return self._read() == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equality is by content

    def __repr__(self) -> str:
        return f"Tools({self._made!r})" if self._made is not None else "Tools(unread)"


def _key(tool: Tool) -> tuple[str | None, str, str]:
    return tool.namespace, tool.name, tool.style


def read_tools(tools: Any, path: str) -> Iterator[Tool]:
    """The tools of a `tools` array; a function without a name is left out. Raises ClientError with the path."""
    if tools is None:
        return
    if not isinstance(tools, list):
        raise fault(path, "expected an array of tools")
    for i, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise fault(f"{path}[{i}]", "expected an object")
        if tool.get("type") == "namespace":
            yield from _namespace(tool, f"{path}[{i}]")
            continue
        _checked(tool, f"{path}[{i}]")
        read = _tool(tool)
        if read is not None:
            yield read


def _checked(tool: dict[str, Any], path: str) -> None:
    for field, kind, expected in _FIELDS:
        value = tool.get(field)
        if value is not None and not isinstance(value, kind):
            raise fault(f"{path}.{field}", f"expected {expected}")


_FIELDS: tuple[tuple[str, type, str], ...] = (
    ("type", str, "a string"),
    ("description", str, "a string"),
    ("parameters", dict, "an object"),
    ("strict", bool, "true or false"),
)


_NAMESPACE = frozenset({"type", "name", "description", "tools"})


def _namespace(value: dict[str, Any], path: str) -> Iterator[Tool]:
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise fault(f"{path}.name", "a namespace needs a name")
    # What else the namespace says stays with its first tool.
    more = {f"namespace.{k}": v for k, v in value.items() if k not in _NAMESPACE}
    for tool in read_tools(value.get("tools"), f"{path}.tools"):
        yield msgspec.structs.replace(
            tool,
            namespace=name,
            namespace_description=text_or_none(value.get("description")),
            extra={**tool.extra, **more},
        )
        more = {}


_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"type", "name", "description", "format"})
_LOOSE = _FUNCTION | {"id", "function", "inputSchema", "input_schema"}


def _tool(value: dict[str, Any]) -> Tool | None:
    kind = value.get("type")
    if kind == "function" and "function" not in value:
        name = value.get("name")
        if not isinstance(name, str) or not name.strip():
            return None
        return Tool(
            name,
            value.get("description"),
            value.get("parameters"),
            value.get("strict"),
            extra=rest(value, _FUNCTION),
        )
    if kind == "custom":
        name = value.get("name")
        if not isinstance(name, str) or not name.strip():
            return None
        return Tool(
            name, value.get("description"), style="custom", grammar=value.get("format"), extra=rest(value, _CUSTOM)
        )
    if kind is None or kind == "function":
        return _loose(value)
    name = value.get("name")
    return Tool(name if isinstance(name, str) else str(kind), style="server", raw=value, format=FORMAT)


def _loose(value: dict[str, Any]) -> Tool | None:
    """A function in another spelling: nested as in Chat, `id` for its name, or its schema as `inputSchema`."""
    inner = value.get("function")
    if isinstance(inner, dict):
        _checked(inner, "function")
        value = {**value, **inner}
    name = value.get("name") if isinstance(value.get("name"), str) else value.get("id")
    if not isinstance(name, str) or not name.strip():
        return None
    schema = value.get("parameters") or value.get("input_schema") or value.get("inputSchema")
    if isinstance(schema, dict) and isinstance(schema.get("jsonSchema"), dict):
        schema = schema["jsonSchema"]
    if not isinstance(schema, dict):
        schema = None
    return Tool(name, value.get("description"), schema, value.get("strict"), extra=rest(value, _LOOSE))


def carried(conversation: Conversation) -> list[Tool]:
    """The tools that stand in input items of this conversation, and are written there."""
    found: list[Tool] = []
    if conversation.format == FORMAT:
        for message in conversation.messages:
            part = message.parts[0] if message.parts else None
            if isinstance(part, Opaque) and part.type in CARRIERS and isinstance(part.value, dict):
                found += read_tools(part.value.get("tools"), "tools")
    return found


def write_tools(tools: Iterable[Tool], native: bool, drops: Drops) -> list[dict[str, Any]]:
    """The `tools` array. `native`: the tools were read from Responses, so names and namespaces stay as they are."""
    written: list[dict[str, Any]] = []
    for i, tool in enumerate(tools):
        path = f"tools[{i}]"
        if tool.style == "server" and tool.format != FORMAT:
            drops.drop(path, f"{tool.name} is run by another provider's servers; OpenAI Responses has no such tool")
            continue
        if not tool.name:
            drops.drop(path, "a tool without a name cannot be called")
            continue
        if tool.cache is not None:
            drops.drop(f"{path}.cache_control", "OpenAI Responses caches prompts by itself")
        extra, of_space = _extras(tool, native, drops, path)
        value = _written(tool, native, extra)
        if native and tool.namespace is not None:
            _enter(written, tool, of_space)["tools"].append(value)
        else:
            written.append(value)
    return written


def _extras(tool: Tool, native: bool, drops: Drops, path: str) -> tuple[Extra, Extra]:
    if not tool.extra:
        return {}, {}
    if not native:
        drops.extras(path, tool.extra, "OpenAI Responses")
        return {}, {}
    inside = {k: v for k, v in tool.extra.items() if not k.startswith("namespace.")}
    outside = {k.removeprefix("namespace."): v for k, v in tool.extra.items() if k.startswith("namespace.")}
    return inside, outside


def _written(tool: Tool, native: bool, extra: Extra) -> dict[str, Any]:
    if tool.style == "server":
        return tool.raw if isinstance(tool.raw, dict) else {"type": tool.name}
    name = tool.name if native else alias(tool.name, tool.namespace)
    value: dict[str, Any] = {"type": tool.style, "name": name}
    if tool.description is not None:
        value["description"] = tool.description
    if tool.style == "custom":
        if tool.grammar is not None:
            value["format"] = tool.grammar if native else _grammar(tool.grammar)
    else:
        if tool.strict is not None:
            value["strict"] = tool.strict
        elif not native:
            value["strict"] = False  # absent means strict here, and lenient where this tool comes from
        if tool.parameters is not None or not native:
            value["parameters"] = tool.parameters if tool.parameters is not None else _NO_PARAMETERS
    return {**value, **extra}


_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def _grammar(grammar: Any) -> Any:
    """The flat spelling of a grammar that Chat nests."""
    inner = grammar.get("grammar") if isinstance(grammar, dict) else None
    return {"type": "grammar", **inner} if isinstance(inner, dict) else grammar


def _enter(written: list[dict[str, Any]], tool: Tool, more: Extra) -> dict[str, Any]:
    """The namespace object that `tool` goes into: the last one written, or a new one."""
    last = written[-1] if written else None
    if last is not None and last.get("type") == "namespace" and last["name"] == tool.namespace:
        return last
    described = {"description": tool.namespace_description} if tool.namespace_description is not None else {}
    space: dict[str, Any] = {"type": "namespace", "name": tool.namespace, **described, "tools": [], **more}
    written.append(space)
    return space


_MODES: dict[str, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "required": "required",
    "any": "required",
    "none": "none",
}


def read_choice(raw: bytes | msgspec.Raw) -> ToolChoice | None:
    """The tool choice, None for null. Raises ClientError."""
    value = decoded(raw, "tool_choice")
    if value is None:
        return None
    if isinstance(value, str):
        mode = _MODES.get(value)
        if mode is None:
            raise fault("tool_choice", f"expected auto, required, none or an object, got {value!r}")
        return ToolChoice(mode)
    if not isinstance(value, dict):
        raise fault("tool_choice", "expected auto, required, none or an object")
    kind = value.get("type")
    if kind in ("function", "custom"):
        return _named(value, "custom" if kind == "custom" else "function")
    if kind == "allowed_tools":
        return _allowed(value)
    return ToolChoice("raw", raw=value)


def _named(value: dict[str, Any], style: Literal["function", "custom"]) -> ToolChoice:
    name = _name_in(value)
    if name is None:
        raise fault("tool_choice.name", "expected the name of a tool")
    return ToolChoice("named", name, text_or_none(value.get("namespace")), style)


def _name_in(value: dict[str, Any]) -> str | None:
    inner = value.get(value.get("type") or "")  # nested as Chat Completions spells it
    name = value.get("name", inner.get("name") if isinstance(inner, dict) else None)
    return name if isinstance(name, str) and name else None


def _allowed(value: dict[str, Any]) -> ToolChoice:
    inner = value.get("allowed_tools")
    stated = inner if isinstance(inner, dict) else value
    mode, tools = stated.get("mode", "auto"), stated.get("tools")
    if mode not in ("auto", "required"):
        raise fault("tool_choice.mode", f"expected auto or required, got {mode!r}")
    if not isinstance(tools, list):
        raise fault("tool_choice.tools", "expected an array")
    names = tuple(n for t in tools if isinstance(t, dict) and t.get("type") in _CALLABLE and (n := _name_in(t)))
    return ToolChoice("allowed", names=names, allowed_mode="required" if mode == "required" else "auto", raw=value)


_CALLABLE = frozenset({"function", "custom", None})


def write_choice(choice: ToolChoice, conversation: Conversation, drops: Drops) -> Any:
    """The `tool_choice` to write, None for nothing. Raises ClientError when no allowed tool is left."""
    native = conversation.format == FORMAT
    name: Callable[[str, str | None], str] = _as_is if native else alias
    match choice.mode:
        case "named":
            space = {"namespace": choice.namespace} if native and choice.namespace is not None else {}
            return {"type": choice.style, "name": name(choice.name or "", choice.namespace), **space}
        case "allowed":
            if native and isinstance(choice.raw, dict):
                return choice.raw
            styles = {t.name: t.style for t in conversation.tools if t.style != "server"}
            allowed = [{"type": styles[n], "name": name(n, None)} for n in choice.names if n in styles]
            if not allowed:
                raise ClientError(
                    "tool_choice: none of the allowed tools is among the tools of the request",
                    code="invalid_value",
                    param="tool_choice",
                )
            return {"type": "allowed_tools", "mode": choice.allowed_mode, "tools": allowed}
        case "raw":
            if native:
                return choice.raw
            drops.drop("tool_choice", "OpenAI Responses has no such choice")
            return None
        case _:
            return choice.mode


def _as_is(name: str, namespace: str | None) -> str:
    return name
