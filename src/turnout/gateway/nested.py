"""The routers of a route: the one it has, and those inside it."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from turnout.gateway import lines
from turnout.routing.subagents import ByAgent


def nested(router: Any, path: lines.Path) -> Iterator[tuple[lines.Path, Struct]]:
    """A router and the structs in it, at any depth, with their paths in the file; `path` is its own."""
    if isinstance(router, ByAgent):
        yield from nested(router.main, path)
        for place, policy in (("subagents", router.subagents), ("background", router.background)):
            if policy is not None:
                yield from nested(policy, (*path, place))
        return
    yield path, router
    for field in msgspec.structs.fields(router):
        value = getattr(router, field.name)
        if isinstance(value, Struct):
            yield from nested(value, (*path, field.encode_name))
        elif isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if isinstance(item, Struct):
                    yield from nested(item, (*path, field.encode_name, i))
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, Struct):
                    yield from nested(item, (*path, field.encode_name, key))
