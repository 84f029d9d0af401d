"""What a turn is for, told by the signals before it and by what its calls turned out to do. Pure.

Texts are not read: the ledger keeps none under `capture = "signals"`. So a turn without a call is known by what follows: the
agent goes on by itself (it said what it will do), or the user has the word (it told the user something).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from turnout.ledger.trace import TurnRecord
from turnout.signals import Observation, Signals, ToolKind

Label: TypeAlias = Literal["explore", "plan", "produce", "verify", "recover", "summarise"]
LABELS: tuple[Label, ...] = get_args(Label)
CHEAP: frozenset[Label] = frozenset({"explore", "verify", "summarise"})
"""Work that a cheaper model is likely to do as well: looking around, running checks, telling what was done."""

_MATTERS = frozenset({"capability", "critical"})
_LOOKING = frozenset({"read", "search"})
_CHANGING = frozenset({"write", "edit"})
_SUMS = frozenset({"git status", "git diff"})
LANES_AT_MOST = 10_000
"""Lanes whose next turn is waited for at once; the one silent for longest is taken for ended."""
RECOVERING_AT_MOST = 3
"""Results after a failure up to which looking around still serves to mend it."""


def label(turn: TurnRecord, after: TurnRecord | None) -> Label | None:
    """What a turn was for. `after`: the next turn of its lane, None at the end. None where no signals were kept."""
    before = turn.signals
    if before is None:
        return None
    acts = acts_of(before, after.signals if after is not None else None)
    # Results that no call asked for (what aider prints behind an answer) tell of an act only where they are one.
    if acts and (turn.stop == "tool_calls" or turn.stop == "" or any(o.kind != "other" for o in acts)):
        return _of_acts(before, acts)
    if turn.acts:
        return _of_kinds(before, turn.acts)
    if turn.stop == "tool_calls":
        return "recover" if _failing(before) else "explore"
    goes_on = after is not None and after.signals is not None and not _new_task(before, after.signals)
    return "plan" if goes_on else "summarise"


def acts_of(before: Signals, after: Signals | None) -> tuple[Observation, ...]:
    """The results that came between two turns of a lane, those of the first one's calls; () where the user spoke between."""
    if after is None or _new_task(before, after):
        return ()
    newest = max(((o.message, o.part) for o in before.observations), default=(-1, -1))
    return tuple(o for o in after.observations if (o.message, o.part) > newest)


def _new_task(before: Signals, after: Signals) -> bool:
    return after.said_at != before.said_at or after.results < before.results


def _of_acts(before: Signals, acts: Sequence[Observation]) -> Label:
    working = [o for o in acts if o.kind != "plan"]
    if not working:
        return "plan"
    if all(o.waits for o in working):
        return "verify"
    if _failing(before):
        return "recover"
    if any(o.kind in _CHANGING or o.change is not None for o in working):
        return "produce"
    if any(o.kind == "test" or o.waits for o in working):
        return "verify"
    if all(o.kind in _LOOKING for o in working):
        return "verify" if _looks_at_own(before, working) else "explore"
    return "verify" if _changed(before) else "explore"


def _of_kinds(before: Signals, kinds: Sequence[ToolKind]) -> Label:
    """The same where only the kinds of the calls are known, for no result came."""
    working = [kind for kind in kinds if kind != "plan"]
    if not working:
        return "plan"
    if _failing(before):
        return "recover"
    if _CHANGING & set(working):
        return "produce"
    if "test" in working:
        return "verify"
    return "verify" if "execute" in working and _changed(before) else "explore"


def _failing(before: Signals) -> bool:
    """Whether a failure that matters is what the agent has just seen, or still looks into."""
    recent = before.observations[-RECOVERING_AT_MOST:]
    for i in range(len(recent) - 1, -1, -1):
        o = recent[i]
        if o.error_class in _MATTERS:
            return True
        if o.change == "verified" or o.tests_passed or o.kind not in (*_LOOKING, "plan"):
            return False
    return before.complaint and not before.observations


def _changed(before: Signals) -> bool:
    return any(o.change == "verified" for o in before.observations)


def _looks_at_own(before: Signals, acts: Sequence[Observation]) -> bool:
    """Whether all that is looked at was changed by the agent itself in this task, or is the sum of what it changed."""
    changed = {o.target for o in before.observations if o.change == "verified"}
    return bool(changed) and all(o.target and (o.target in changed or o.target in _SUMS) for o in acts)


class Labelled(Struct, frozen=True):
    """A turn and what it was for. `failed`: one of its calls failed in a way that matters; None where no result was seen."""

    turn: TurnRecord
    label: Label | None
    failed: bool | None = None


def labelled(turns: Iterable[TurnRecord]) -> Iterator[Labelled]:
    """Turns with their labels; each lane's in order, lanes may alternate. A turn is given when the next of its lane is known."""
    waiting: dict[tuple[str, str, str], TurnRecord] = {}
    for turn in turns:
        lane = (turn.tenant, turn.session, turn.agent)
        before = waiting.pop(lane, None)
        if before is not None:
            yield _one(before, turn)
        waiting[lane] = turn
        if len(waiting) > LANES_AT_MOST:
            yield _one(waiting.pop(next(iter(waiting))), None)
    for turn in waiting.values():
        yield _one(turn, None)


def _one(turn: TurnRecord, after: TurnRecord | None) -> Labelled:
    acts = acts_of(turn.signals, after.signals) if turn.signals and after is not None and after.signals else ()
    failed = any(o.error_class in _MATTERS for o in acts) if acts else None
    return Labelled(turn, label(turn, after), failed)
