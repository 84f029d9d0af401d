"""The numbers of a router that can be swept, and the points of a sweep. Pure.

A setting is called as in the route's TOML table: `threshold`, `weights.stall`, `confirmations`; within a router that wraps
another, `router.threshold`.
"""

import itertools
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from turnout.evaluate.switching import inside
from turnout.routing.core import Router

Number: TypeAlias = int | float
Settings: TypeAlias = dict[str, Number]
"""Some settings of a router by name."""

AT_MOST = 20_000
"""Points of a sweep; of more, so many are drawn."""

_THRESHOLDS = tuple(n / 20 for n in range(1, 21))
_USUAL: dict[str, dict[str, tuple[Number, ...]]] = {
    "stage": {"threshold": _THRESHOLDS, "window": (2, 3, 5, 8)},
    "escalation": {"confirmations": (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)},
}
"""What is swept where nothing is said, by type of router; the weights of a stage router one at a time beside it."""
_SCALED = (0.0, 0.5, 2.0)
"""What each weight is multiplied by, one at a time."""


class Axis(Struct, frozen=True):
    """A setting and the values it is to take."""

    name: str
    values: tuple[Number, ...]


_RANGE = re.compile(r"([-+.\deE]+):([-+.\deE]+):([-+.\deE]+)")


def axis(text: str) -> Axis:
    """`NAME=V,V,...` or `NAME=FIRST:LAST:STEP`. Raises ValueError that says what was expected."""
    name, is_named, values = text.partition("=")
    try:
        if not is_named or not name.strip():
            raise ValueError
        ranged = _RANGE.fullmatch(values.strip())
        numbers = _range(*map(_number, ranged.groups())) if ranged else tuple(_number(v) for v in values.split(","))
        if not numbers:
            raise ValueError
    except ValueError:
        raise ValueError(f"--sweep {text}: expected NAME=VALUE,VALUE,... or NAME=FIRST:LAST:STEP") from None
    return Axis(name.strip(), tuple(dict.fromkeys(numbers)))


def _number(text: str) -> Number:
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _range(first: Number, last: Number, step: Number) -> tuple[Number, ...]:
    if step <= 0 or last < first or (last - first) / step > AT_MOST:
        raise ValueError
    return tuple(round(first + n * step, 12) for n in range(math.floor((last - first) / step + 1e-9) + 1))


def settings_of(router: Router) -> Settings:
    """Every number that shapes the router's decisions, as it stands."""
    path, tiered = inside(router)
    found: Settings = {}
    for name, value in _numbers(tiered):
        found[".".join((*path, name))] = value
    return found


def _numbers(struct: Any, depth: int = 0) -> Iterator[tuple[str, Number]]:
    for field in struct.__struct_fields__:
        value = getattr(struct, field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield field, value
        elif isinstance(value, Struct) and not hasattr(value, "route") and not depth:
            for name, number in _numbers(value, depth + 1):
                yield f"{field}.{name}", number


def changed(router: Router, settings: Mapping[str, Number]) -> Router:
    """The router with other settings. Raises ValueError for a name it does not have, or a value it refuses."""
    found: Any = router
    for name, value in settings.items():
        found = _with(found, name.split("."), value, name)
    return cast("Router", found)


def _with(struct: Any, path: Sequence[str], value: Number, name: str) -> Any:
    at, *rest = path
    fields = struct.__struct_fields__
    if "main" in fields and at not in fields:
        # A route with `subagents` or `background` keeps its own router within; its table is the route's.
        return msgspec.structs.replace(struct, main=_with(struct.main, path, value, name))
    now = getattr(struct, at, None) if at in fields else None
    if rest and isinstance(now, Struct):
        return msgspec.structs.replace(struct, **{at: _with(now, rest, value, name)})
    if rest or not isinstance(now, int | float) or isinstance(now, bool):
        raise ValueError(f"{name}: the router has no such number; it has {', '.join(sorted(_names(struct))) or 'none'}")
    if isinstance(now, int) and value != int(value):
        raise ValueError(f"{name}: {value} is not a whole number")
    return msgspec.structs.replace(struct, **{at: int(value) if isinstance(now, int) else float(value)})


def _names(struct: Any) -> list[str]:
    return [name for name, _ in _numbers(struct)]


def points(router: Router, axes: Sequence[Axis], seed: int) -> list[Settings]:
    """The settings to try, the router's own first; with `axes` all of their combinations. What differs from the router's own in
    nothing is tried once. Raises ValueError for a router without two tiers, and for an axis that it has not."""
    own = settings_of(router)
    for one in axes:
        if one.name not in own:
            raise ValueError(f"{one.name}: the router has no such number; it has {', '.join(own)}")
    wanted = _named(axes, seed) if axes else _usual(router, own)
    unlike: dict[tuple[tuple[str, Number], ...], Settings] = {(): {}}
    for settings in wanted:
        different = {name: value for name, value in settings.items() if own.get(name) != value}
        unlike.setdefault(tuple(sorted(different.items())), different)
    return list(unlike.values())


def _named(axes: Sequence[Axis], seed: int) -> list[Settings]:
    names = [one.name for one in axes]
    return [dict(zip(names, values, strict=True)) for values in _product(axes, seed)]


def _product(axes: Sequence[Axis], seed: int) -> list[tuple[Number, ...]]:
    size = math.prod(len(one.values) for one in axes)
    if size <= AT_MOST:
        return list(itertools.product(*(one.values for one in axes)))
    dice = random.Random(seed)
    return [tuple(dice.choice(one.values) for one in axes) for _ in range(AT_MOST)]


def _usual(router: Router, own: Settings) -> list[Settings]:
    path, tiered = inside(router)
    prefix = ".".join((*path, ""))
    axes = _USUAL.get(str(tiered.__struct_config__.tag), {})
    found = _named([Axis(prefix + name, values) for name, values in axes.items()], 0)
    thresholds = axes.get("threshold", ())
    for name, weight in own.items():
        if name.startswith(f"{prefix}weights."):
            for scale in _SCALED:
                found += [{name: weight * scale, f"{prefix}threshold": threshold} for threshold in thresholds]
    return found
