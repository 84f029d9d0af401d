"""A conversation as a few digests, so that the next turn can tell where it stopped being the same.

A message is digested as the client wrote it. How it is wrapped does not count: clients move their cache marks along with the
conversation, and write a marked text as a list of one block. Digests are 32 bits: enough to find where a prompt changed, and
nothing rests on them but an explanation and an estimate.

A conversation that only grows, which is nearly every one, costs one pass over its bytes: one digest covers all but the newest
messages. Only where that one differs is every message looked at.
"""

import re
from array import array
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal
from zlib import crc32

import msgspec

from turnout.conversation import Conversation, Lazy, Sourced, Text
from turnout.routing.warmth import Digests
from turnout.wire.items import attribution

BLOCKS_AT_MOST = 64
"""Blocks that are kept of a conversation; beyond so many, each comes to stand for twice as many messages."""
NEWEST = 4
"""How many of the newest messages are kept apart, for they may carry cache marks."""
COMBINED_AT_MOST = 64
"""Ways of wrapping the messages of one block that are tried."""

_MARK = re.compile(rb'\s*,\s*"cache_control"\s*:\s*(?:\{[^{}]*\}|null)|"cache_control"\s*:\s*\{[^{}]*\}\s*,\s*')
_ONE_TEXT = re.compile(
    rb'\[\s*\{\s*"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*\}\s*\]', re.DOTALL
)
_BYTES = 4


class Prompt:
    """A conversation, to be compared with what was kept of an earlier one. `texts`: its messages as JSON. Sizes in bytes."""

    __slots__ = ("_whole", "head_size", "size", "system", "texts", "tools", "tools_size")

    def __init__(self, texts: Sequence[Any], tools: bytes, system: Sequence[str]) -> None:
        self.texts = texts
        self._whole = b"".join(texts)
        self.tools, self.tools_size = crc32(tools), len(tools)
        self.system, size = 0, len(tools)
        for text in system:
            data = text.encode("utf-8", "surrogatepass")
            self.system = crc32(data, self.system)
            size += len(data)
        self.head_size = size
        self.size = size + len(self._whole)

    def size_of(self, count: int) -> int:
        """Bytes of the prompt up to the first `count` messages."""
        return self.head_size + sum(map(len, self.texts[:count]))

    def digests(self, before: Digests | None = None) -> Digests:
        """What is kept of this conversation. `before`: what was kept of one that it continues unchanged."""
        texts = self.texts
        count = len(texts)
        group, blocks, settled, size, whole = 1, b"", 0, 0, 0
        if before is not None:
            group, blocks, size, whole = before.group, before.blocks, before.settled_size, before.settled_crc
            settled = len(blocks) // _BYTES * group
        elif count > BLOCKS_AT_MOST:
            group, blocks, settled = _blocks(texts[: count - NEWEST])
            size = sum(map(len, texts[:settled]))
            whole = crc32(memoryview(self._whole)[:size])
        while settled + group + NEWEST <= count:
            block = texts[settled : settled + group]
            blocks += _packed(_block([crc32(text) for text in block]))
            grown = sum(map(len, block))
            whole = crc32(memoryview(self._whole)[size : size + grown], whole)
            size += grown
            settled += group
            if len(blocks) > BLOCKS_AT_MOST * _BYTES and len(blocks) % (2 * _BYTES) == 0:
                blocks, group = _halved(blocks), group * 2
        tail = _packed(*[crc32(plain(text)) for text in texts[settled:]])
        return Digests(self.tools, self.system, count, group, blocks, tail, size, whole)

    def differs_at(self, before: Digests) -> tuple[int, int] | None:
        """The first and the last message that may be the first to differ from an earlier conversation; None when all of those
        are there unchanged. Where messages are missing, the first missing one."""
        settled = len(before.blocks) // _BYTES * before.group
        known = memoryview(self._whole)[: before.settled_size]
        if len(known) < before.settled_size or crc32(known) != before.settled_crc:
            for index in range(0, len(before.blocks), _BYTES):
                first = index // _BYTES * before.group
                last = first + before.group - 1
                if last >= len(self.texts):
                    return first, last
                if not self._same(first, last, before.blocks[index : index + _BYTES]):
                    return first, last
        if _packed(*map(crc32, self.texts[settled : before.count])) == before.tail:
            return None
        for index in range(settled, before.count):
            at = (index - settled) * _BYTES
            if index >= len(self.texts) or not self._same(index, index, before.tail[at : at + _BYTES]):
                return index, index
        return None

    def _same(self, first: int, last: int, digest: bytes) -> bool:
        """Whether these messages are what was digested, each as it is or unwrapped."""
        texts = self.texts[first : last + 1]
        crcs = [crc32(text) for text in texts]
        if _packed(_block(crcs)) == digest:
            return True
        choices, ways = [], 1
        for text, crc in zip(texts, crcs, strict=True):
            bare = _MARK.sub(b"", bytes(text))
            choices.append({crc, crc32(bare), crc32(_ONE_TEXT.sub(rb"\1", bare))})
            ways *= len(choices[-1])
        return ways <= COMBINED_AT_MOST and any(_packed(_block(list(one))) == digest for one in product(*choices))

    def rest(self, first: int, before: Digests) -> Literal["in place", "moved", "gone"]:
        """What became of an earlier conversation's newest messages after the message `first`, the first to differ: still where
        they were, at another place, or none of them there."""
        settled = len(before.blocks) // _BYTES * before.group
        after = range(max(settled, first + 1), before.count)
        tail = {before.tail[(i - settled) * _BYTES : (i - settled + 1) * _BYTES]: i for i in after}
        for digest, index in tail.items():
            if index < len(self.texts) and self._same(index, index, digest):
                return "in place"
        crcs = {_packed(crc32(text)) for text in self.texts[first:]} | {
            _packed(crc32(plain(t))) for t in self.texts[first:]
        }
        return "gone" if crcs.isdisjoint(tail) else "moved"


def prompt_of(conversation: Conversation) -> Prompt | None:
    """The prompt of a conversation; None where the text of its messages is not at hand."""
    messages = conversation.messages
    if not isinstance(messages, Lazy) or not len(messages):
        return None
    text_of = messages.text_of
    texts = messages.raw if text_of is None else [text_of(raw) for raw in messages.raw]
    if not isinstance(texts[0], msgspec.Raw | bytes):
        return None
    tools = conversation.tools
    system = [part.text for part in conversation.system if isinstance(part, Text) and not attribution(part.text)]
    return Prompt(texts, tools.source() if isinstance(tools, Sourced) else b"", system)


def plain(text: Any) -> bytes:
    """The JSON of a message; one with cache marks without them, and as a single text where that is all it holds."""
    data = bytes(text)
    if b'"cache_control"' not in data:
        return data
    return _ONE_TEXT.sub(rb"\1", _MARK.sub(b"", data))


def _packed(*crcs: int) -> bytes:
    return array("I", crcs).tobytes()


def _block(crcs: list[int]) -> int:
    """The digest of a block of one, two, four, ... messages: of the digests of its halves."""
    while len(crcs) > 1:
        crcs = [crc32(_packed(*crcs[i : i + 2])) for i in range(0, len(crcs), 2)]
    return crcs[0]


def _blocks(texts: Sequence[Any]) -> tuple[int, bytes, int]:
    """Of many messages: the size of a block, the blocks, and how many messages those cover."""
    group, blocks = 1, _packed(*map(crc32, texts))
    while len(blocks) > BLOCKS_AT_MOST * _BYTES:
        blocks, group = _halved(blocks[: len(blocks) // (2 * _BYTES) * 2 * _BYTES]), group * 2
    return group, blocks, len(blocks) // _BYTES * group


def _halved(blocks: bytes) -> bytes:
    """Blocks of twice as many messages each."""
    return _packed(*[crc32(blocks[i : i + 2 * _BYTES]) for i in range(0, len(blocks), 2 * _BYTES)])
