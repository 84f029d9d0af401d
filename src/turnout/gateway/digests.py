"""A conversation as a few digests, so that the next turn can tell where it stopped being the same.

A message is digested as the client wrote it. How it is wrapped does not count: clients move their cache marks along with the
conversation, and write a marked text as a list of one block. Digests are 32 bits: enough to find where a prompt changed, and
nothing rests on them but an explanation and an estimate.
"""

import math
import re
from array import array
from collections.abc import Sequence
from itertools import product
from typing import Any
from zlib import crc32

import msgspec

from turnout.conversation import Conversation, Lazy, Sourced, Text
from turnout.wire.items import attribution

GROUPS_AT_MOST = 64
"""Digests that are kept of a conversation; beyond so many messages a digest stands for two, four, ... of them."""
MARKED_AT_MOST = 4
"""How many of the newest messages may carry cache marks."""
COMBINED_AT_MOST = 64
"""Ways of wrapping the messages of one group that are tried."""

_MARK = re.compile(rb'\s*,\s*"cache_control"\s*:\s*(?:\{[^{}]*\}|null)|"cache_control"\s*:\s*\{[^{}]*\}\s*,\s*')
_ONE_TEXT = re.compile(
    rb'\[\s*\{\s*"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*\}\s*\]', re.DOTALL
)


class Digested:
    """A conversation's digests. `texts`: its messages as JSON. `crcs`: of each. Sizes in bytes."""

    __slots__ = ("crcs", "head_size", "size", "system", "texts", "tools", "tools_size")

    def __init__(self, texts: Sequence[Any], tools: bytes, system: Sequence[str]) -> None:
        self.texts = texts
        crcs = list(map(crc32, texts))
        for index in range(max(0, len(texts) - MARKED_AT_MOST), len(texts)):
            crcs[index] = crc32(plain(texts[index]))
        self.crcs = crcs
        self.tools, self.tools_size = crc32(tools), len(tools)
        self.system, size = 0, len(tools)
        for text in system:
            data = text.encode("utf-8", "surrogatepass")
            self.system = crc32(data, self.system)
            size += len(data)
        self.head_size = size
        self.size = size + sum(map(len, texts))

    def size_of(self, count: int) -> int:
        """Bytes of the prompt up to the first `count` messages."""
        return self.head_size + sum(map(len, self.texts[:count]))

    def grouped(self) -> tuple[int, bytes]:
        """How many messages a digest stands for, and the digests."""
        group = 1
        while len(self.crcs) > GROUPS_AT_MOST * group:
            group *= 2
        return group, packed(self.crcs, group)

    def differs_at(self, count: int, group: int, digests: bytes) -> tuple[int, int] | None:
        """The first and the last message that may be the first to differ from an earlier conversation of `count` messages; None
        when all of those are there unchanged. Where messages are missing, the first missing one."""
        here = min(count, len(self.crcs))
        whole = packed(self.crcs[:here], group)
        if whole == digests and here == count:
            return None
        for index in range(0, len(digests), 4):
            first = index // 4 * group
            last = min(first + group, count) - 1
            if last >= here:
                return first, last
            digest = digests[index : index + 4]
            if whole[index : index + 4] != digest and not self._same(first, last, group, digest):
                return first, last
        return None

    def _same(self, first: int, last: int, group: int, digest: bytes) -> bool:
        """Whether these messages are what was digested but for their wrapping: each as it is, or as a single text."""
        texts, crcs = self.texts[first : last + 1], self.crcs[first : last + 1]
        single = [crc32(_ONE_TEXT.sub(rb"\1", _MARK.sub(b"", bytes(text)))) for text in texts]
        if packed(single, group) == digest:
            return True
        # In a group, some may have been wrapped and others not.
        choices = [{crc, other} for crc, other in zip(crcs, single, strict=True)]
        if math.prod(map(len, choices)) > COMBINED_AT_MOST:
            return False
        return any(packed(crcs, group) == digest for crcs in product(*choices))

    def follows(self, first: int, count: int, digests: bytes) -> bool:
        """Whether the messages after `first` are those of an earlier conversation, so that it was changed in place. Only told
        where every message has its digest."""
        after = packed(self.crcs[first + 1 : count], 1)
        return bool(after) and after == digests[4 * (first + 1) :]

    def moved_up(self, first: int, digests: bytes) -> bool:
        """Whether the message at `first` stood further on in an earlier conversation: those before it were taken out."""
        wanted = packed(self.crcs[first : first + 1], 1)
        return bool(wanted) and any(digests[i : i + 4] == wanted for i in range(4 * (first + 1), len(digests), 4))


def digested(conversation: Conversation) -> Digested | None:
    """The digests of a conversation; None where the text of its messages is not at hand."""
    messages = conversation.messages
    if not isinstance(messages, Lazy) or not len(messages):
        return None
    text_of = messages.text_of
    texts = messages.raw if text_of is None else [text_of(raw) for raw in messages.raw]
    if not isinstance(texts[0], msgspec.Raw | bytes):
        return None
    tools = conversation.tools
    system = [part.text for part in conversation.system if isinstance(part, Text) and not attribution(part.text)]
    return Digested(texts, tools.source() if isinstance(tools, Sourced) else b"", system)


def packed(crcs: Sequence[int], group: int) -> bytes:
    """Four bytes for every `group` digests, the last group possibly shorter."""
    data = array("I", crcs).tobytes()
    if group == 1:
        return data
    return array("I", [crc32(data[i : i + 4 * group]) for i in range(0, len(data), 4 * group)]).tobytes()


def plain(text: Any) -> bytes:
    """The JSON of a message; one with cache marks without them, and as a single text where that is all it holds."""
    data = bytes(text)
    if b'"cache_control"' not in data:
        return data
    return _ONE_TEXT.sub(rb"\1", _MARK.sub(b"", data))
