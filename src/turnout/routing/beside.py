"""A router that decides turns beside the one that serves them, in a replay or in the shadow: what it may know of them.

What it remembers of a lane is folded from its own decisions. Of the lane's caches it is told what was recorded, as long as it has
chosen the same targets, and from its first other choice on what its own choices would have left. What is not known is never
made up: looking at it raises TapeMiss.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import msgspec
from msgspec import Struct

from turnout.errors import Missing, TapeMiss
from turnout.routing import warmth
from turnout.routing.core import Decision, Placed, State
from turnout.routing.spending import KEY as SPENDING
from turnout.routing.spending import Spending

PLACE = "beside"
KEY = f"{PLACE}/Beside"


class Unrecorded:
    """Stands for a part of a turn that is not known: to look at it raises TapeMiss."""

    def __init__(self, message: str, reason: Missing) -> None:
        object.__setattr__(self, "_miss", (message, reason))

    def _missed(self, *_: Any) -> NoReturn:
        raise TapeMiss(*object.__getattribute__(self, "_miss"))

    __getattr__ = __getitem__ = __contains__ = _missed
    __len__ = __iter__ = __bool__ = _missed


FORGOTTEN: Any = Unrecorded(
    "an earlier turn of this lane could not be decided, so what the router would remember of it is not known", "memory"
)
"""The memory of a router that has missed a turn of the lane."""


class Parted(Struct, frozen=True, tag="parted", tag_field="event"):
    """The router beside chose another target than the one that served. `lost`: it could not be asked at all."""

    lost: bool = False


class Beside(State, frozen=True):
    """How a lane went for a router beside: `parted` once it chose another target, `lost` once a turn could not be decided."""

    events: ClassVar[tuple[type[Struct], ...]] = (Parted,)

    parted: bool = False
    lost: bool = False

    def after(self, event: Any) -> "Beside":
        """Neither is ever undone: what follows rests on it."""
        return Beside(True, self.lost or event.lost)


class Became(Struct, frozen=True, tag="became", tag_field="event"):
    """What a router beside remembers from now on, by `place/StateName`."""

    states: dict[str, Any]


class Kept(State, frozen=True):
    """What a router beside remembers of a lane, kept as one."""

    events: ClassVar[tuple[type[Struct], ...]] = (Became,)

    states: dict[str, Any] = msgspec.field(default_factory=dict)

    def after(self, event: Any) -> "Kept":
        """The newest."""
        return Kept(event.states)


KEPT = f"{PLACE}/Kept"
_TOGETHER = Beside()


def beside(own: Mapping[str, State]) -> Beside:
    """How a lane of these states went so far."""
    found = own.get(KEY)
    return found if isinstance(found, Beside) else _TOGETHER


def seeded(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """What a router beside remembers of a lane that it has not seen before: what is remembered by then, as if it took over."""
    return {name: state for name, state in recorded.items() if not name.startswith(f"{warmth.PLACE}/")}


def memory_of(own: Mapping[str, State], recorded: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the router beside may recall: of its own (states folded from its decisions), and what caches hold. `recorded`: the
    lane's states as the router that served read them."""
    went = beside(own)
    if went.lost:
        forgotten: Mapping[str, Any] = FORGOTTEN
        return forgotten
    memory: dict[str, Any] = {name: state for name, state in own.items() if not name.startswith(f"{PLACE}/")}
    spending = own.get(SPENDING)
    warm = recorded.get(warmth.KEY)
    if went.parted:
        warm = spending.own if isinstance(spending, Spending) else None
    if warm is not None:
        memory[warmth.KEY] = warm
    return memory


def events_of(decision: Decision | None, agrees: bool) -> tuple[Struct, ...]:
    """What a decided turn leaves for the router beside; None = it could not be decided."""
    if decision is None:
        return (Placed(PLACE, Parted(lost=True)),)
    return decision.remember if agrees else (*decision.remember, Placed(PLACE, Parted()))


class Side(Struct, frozen=True, omit_defaults=True):
    """One of two decisions on the same turn. `sentence`: why, for people."""

    target: str
    source: str = ""
    sentence: str = ""


class Flip(Struct, frozen=True, omit_defaults=True):
    """A turn that the router beside would have given to another target.

    `was`: what was decided; `now`: what the router beside decides. `changed`: in what the two explanations differ, by name, both
    values. `signals`: the values that the router beside decided by, those at rest left out.
    """

    turn: str
    at: float
    route: str
    session: str
    agent: str
    was: Side
    now: Side
    changed: dict[str, tuple[Any, Any]] = {}
    signals: dict[str, Any] = {}


def side(target: str, why: Any) -> Side:
    """A decision as a flip shows it."""
    return Side(target) if why is None else Side(target, why.source, why.sentence)


_SHOWN = ("source", "rule", "score", "threshold", "confidence", "place")


def changed(was: Any, now: Any) -> dict[str, tuple[Any, Any]]:
    """In what two explanations differ: who decided, by which rule, score and threshold, on which values, weighed how."""
    found: dict[str, tuple[Any, Any]] = {}
    if was is None:
        return found
    for name in _SHOWN:
        _differing(found, name, getattr(was, name), getattr(now, name))
    for part in ("values", "basis"):
        before, after = getattr(was, part), getattr(now, part)
        for name in {**before, **after}:
            if name in before and name in after:
                _differing(found, name, before[name], after[name])
    return found


def weighed(why: Any) -> dict[str, Any]:
    """The values that a decision rests on, those at rest left out."""
    return {name: value for name, value in why.values.items() if value not in (0, "", None, [], (), {})}


def _differing(found: dict[str, tuple[Any, Any]], name: str, was: Any, now: Any) -> None:
    if was == now:
        return
    was, now = _plain(was), _plain(now)
    if was == now:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in {**was, **now}:
            _differing(found, f"{name}.{key}", was.get(key), now.get(key))
    else:
        found[name] = (was, now)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=repr))
