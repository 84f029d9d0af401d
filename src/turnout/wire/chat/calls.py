"""The tool calls of a Chat stream, put together from their fragments. Servers differ in how they cut them."""

from typing import Any

import msgspec

from turnout.wire.chat.chunks import CallDelta
from turnout.wire.chat.messages import arguments_text


class Call:
    """A tool call as its fragments come in."""

    __slots__ = ("arguments", "extra", "id", "index", "name", "sent", "style")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.style = "function"
        self.arguments: list[str] = []
        self.sent = 0  # fragments of arguments already passed on
        self.extra: dict[str, Any] = {}

    def whole(self) -> bool:
        """Whether the arguments are complete JSON, so that nothing more can come."""
        text = "".join(self.arguments)
        if not text.endswith(("}", "]")) or not text.startswith(("{", "[")):
            return False
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
        except msgspec.DecodeError:
            return False
        return True


class Calls:
    """The calls so far, in the order in which they began."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def __getitem__(self, at: int) -> Call:
        return self._calls[at]

    def add(self, fragment: CallDelta) -> None:
        """Take in a piece of a call."""
        call = self._find(fragment)
        if fragment.id and not call.id:
            call.id = fragment.id
        if fragment.extra_content is not None:
            call.extra["extra_content"] = fragment.extra_content
        if fragment.custom is not None:
            call.style = "custom"
            name, more = fragment.custom.name, fragment.custom.input
        elif fragment.function is not None:
            name, more = fragment.function.name, fragment.function.arguments
        else:
            return
        # Names come whole, in pieces before the arguments, or again and again.
        if name and not call.arguments and name != call.name:
            call.name += name
        if more is not None and more != "":
            call.arguments.append(arguments_text(more))

    def _find(self, fragment: CallDelta) -> Call:
        """The call a fragment belongs to: by index, unless its id says that it is another one."""
        calls = self._calls
        for call in reversed(calls):
            if fragment.index is not None and call.index is not None:
                if call.index == fragment.index and (not fragment.id or not call.id or fragment.id == call.id):
                    return call
            elif fragment.id:
                if call.id == fragment.id:
                    return call
            elif call is calls[-1]:
                return call
        call = Call(fragment.index)
        calls.append(call)
        return call
