"""Finds the targets a router names: every field of type TargetName, at any depth."""

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from turnout.gateway.lines import Path
from turnout.routing.core import TargetName


def targets_of(router: Struct, path: Path = ()) -> Iterator[tuple[Path, TargetName]]:
    """Each target that `router` (or a struct within it) names, with the TOML path of the field that names it."""
    for field in msgspec.structs.fields(router):
        yield from _within(field.type, getattr(router, field.name), (*path, field.encode_name))


def _within(kind: Any, value: Any, path: Path) -> Iterator[tuple[Path, TargetName]]:
    if isinstance(value, Struct):
        yield from targets_of(value, path)
        return
    if kind is TargetName:
        if isinstance(value, str) and value:
            yield path, TargetName(value)
        return
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        # Of a union only the member that fits can name targets; constraints of Annotated are no types and match nothing.
        for arg in args if origin is not typing.Annotated else args[:1]:
            found = list(_within(arg, value, path))
            if found:
                yield from found
                return
    elif isinstance(value, dict) and len(args) == 2:
        for key, item in value.items():
            yield from _within(args[0], key, (*path, key))
            yield from _within(args[1], item, (*path, key))
    elif isinstance(value, (list, tuple, set, frozenset)) and args:
        homogeneous = len(args) == 1 or args[-1] is Ellipsis
        for i, item in enumerate(value):
            yield from _within(args[0] if homogeneous else args[i], item, (*path, i))
