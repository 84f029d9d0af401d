"""Tool names and call ids that another provider does not accept, mapped there and back.

Names: every provider takes `[a-zA-Z0-9_-]{1,64}`; a namespaced, longer or otherwise illegal name gets an alias that depends
only on the name itself, so it is the same on every turn, and is restored through the tools of the request. Ids: illegal call
ids are encoded reversibly, without any table.
"""

import hashlib
import re
from collections.abc import Iterable

import msgspec

from turnout.conversation import Tool, ToolCall

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID_MARK = "tid_"


def qualified(name: str, namespace: str | None) -> str:
    """The one flat name of a namespaced tool: `namespace__name`."""
    return f"{namespace}__{name}" if namespace else name


def alias(name: str, namespace: str | None = None) -> str:
    """A legal name for this tool: itself where legal, else a readable stem with a digest of the full name."""
    full = qualified(name, namespace)
    if _LEGAL_NAME.fullmatch(full):
        return full
    digest = hashlib.blake2b(full.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    stem = _ILLEGAL.sub("_", full).strip("_")[:52] or "tool"
    return f"{stem}_{digest}"


class Names:
    """Restores what the client called its tools, from what an upstream of another format was told they are called."""

    __slots__ = ("_offered", "_tools")

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._offered = tools
        self._tools: dict[str, Tool] | None = None  # most replies call nothing: then no tool is looked at

    def find(self, name: str) -> Tool | None:
        """The client's tool that an upstream means by `name`."""
        if self._tools is None:
            self._tools = _by_name(self._offered)
        return self._tools.get(name)

    def restore(self, call: ToolCall) -> ToolCall:
        """The call under the client's own name, namespace and style.

        A call of a custom tool that went out as a function with one `input` argument gets its raw input back.
        """
        tool = self.find(call.name)
        if tool is None or call.namespace is not None:
            return call
        if tool.style == "custom" and call.style == "function":
            return msgspec.structs.replace(
                call, name=tool.name, namespace=tool.namespace, style="custom", arguments=custom_input(call.arguments)
            )
        if tool.name == call.name and tool.namespace is None:
            return call
        return msgspec.structs.replace(call, name=tool.name, namespace=tool.namespace)


def _by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    bare: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.style == "server":
            continue
        found[alias(tool.name, tool.namespace)] = tool
        bare.setdefault(tool.name, []).append(tool)
    # Models sometimes answer with the bare name of a namespaced tool: accept it where it can mean only one.
    for name, owners in bare.items():
        if len(owners) == 1:
            found.setdefault(name, owners[0])
    return found


def custom_input(arguments: str) -> str:
    """The raw input of a custom tool that was offered as a function with one `input` argument."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if isinstance(value, dict) and isinstance(value.get("input"), str):
        text: str = value["input"]
        return text
    return arguments


def custom_arguments(text: str) -> str:
    """The function arguments that stand for the raw input of a custom tool."""
    return msgspec.json.encode({"input": text}).decode()


def legal_id(call_id: str) -> str:
    """A call id every provider accepts: itself where legal, else a reversible encoding (or a digest when that is too long).

    `original_id` turns an encoding back; a digest is matched by the caller through the ids it knows.
    """
    if _LEGAL_ID.fullmatch(call_id) and not call_id.startswith(_ID_MARK):
        return call_id
    encoded = _ID_MARK + call_id.encode("utf-8", "surrogatepass").hex()
    if len(encoded) <= 64:
        return encoded
    return "tdg_" + hashlib.blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def original_id(call_id: str) -> str:
    """The id that `legal_id` encoded, or the id itself."""
    if not call_id.startswith(_ID_MARK):
        return call_id
    try:
        return bytes.fromhex(call_id.removeprefix(_ID_MARK)).decode("utf-8", "surrogatepass")
    except ValueError:
        return call_id
