"""Accounting for a translation: every value of the source is in the target's body or in the drop report."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from turnout.wire.names import legal_id

# Names of structure, not values: formats differ in them by nature.
STRUCTURE = frozenset({"type", "role", "object", "mode"})

# Values that mean the same under another name or the other way round.
SAME = {
    ("tool_choice", "any"): {"required"},
    ("tool_choice", "required"): {"any"},
    ("reasoning", "auto"): {"summarized"},
    ("reasoning", "detailed"): {"summarized"},
    ("reasoning", "concise"): {"summarized"},
}
FLAGS = frozenset({"stream", "include_usage", "disable_parallel_tool_use", "parallel_tool_calls", "strict"})


# Ids and states that Responses gives its own items: they mean nothing elsewhere.
_ITEM = re.compile(r"input\[\d+\]\.(?:id|status)|input\[\d+\]\.content\[\d+\]\.(?:id|status)")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar below `value` with its path, as drop reports spell it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def _embedded(text: str) -> Any:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return None
    return None


def _every(value: Any) -> Iterator[Any]:
    for _, leaf in leaves(value):
        yield leaf
        if isinstance(leaf, str) and (inner := _embedded(leaf)) is not None:
            yield from _every(inner)


def covered(path: str, drops: list[str]) -> bool:
    """Whether a drop path is this path or one above it."""
    return any(path == d or (path.startswith(d) and path[len(d)] in ".[") for d in drops if d)


def lost(source: Any, target: Any, drops: list[str]) -> list[str]:
    """Paths of the source's values that are neither in `target` nor reported."""
    there = list(_every(target))
    texts = [t for t in there if isinstance(t, str)]
    joined = "\n".join(texts)
    others = {_number(t) for t in there if not isinstance(t, str)}
    missing = []
    for path, leaf in leaves(source):
        name = path.rpartition(".")[2].partition("[")[0]
        if leaf is None or leaf == "" or name in STRUCTURE or name in FLAGS or covered(path, drops):
            continue
        if (path, leaf) == ("n", 1) or _ITEM.fullmatch(path):
            continue
        if isinstance(leaf, str):
            top = path.partition(".")[0].partition("[")[0]
            if leaf in joined or SAME.get((top, leaf), set()) & set(texts) or _arrived(leaf, joined, others):
                continue
        elif _number(leaf) in others or str(leaf) in joined:
            continue
        missing.append(path)
    return missing


def _number(value: Any) -> str:
    return repr(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def _arrived(leaf: str, joined: str, others: set[str]) -> bool:
    """Whether a value arrived in another spelling: a data URI taken apart, JSON text as an object."""
    if legal_id(leaf) in joined:
        return True
    if base64.b64encode(leaf.encode()).decode() in joined:
        return True
    if leaf.startswith("data:") and "," in leaf:
        head, _, data = leaf.partition(",")
        return data in joined and head[5:].partition(";")[0] in joined
    inner = _embedded(leaf)
    if inner is not None:
        return all(x in joined if isinstance(x, str) else x is None or _number(x) in others for x in _every(inner))
    return False
