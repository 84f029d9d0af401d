"""How turns that another router would have sent elsewhere are shown."""

import time
from typing import TYPE_CHECKING, Any

from turnout.cli import output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turnout.routing.beside import Flip

_NAMED_AT_MOST = 8


def lines(flip: "Flip") -> list[str]:
    """A flip for people: whose turn, from where to where, both reasons, and what made the difference."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(flip.at))
    whose = f"session {flip.session or '-'}" + (f", agent {flip.agent}" if flip.agent else "")
    return [
        f"{flip.turn}  {when}  {whose}: {flip.was.target or '?'} -> {flip.now.target}",
        *([f"  was  {flip.was.source}: {flip.was.sentence}"] if flip.was.sentence else []),
        f"  now  {flip.now.source}: {flip.now.sentence}",
        *([f"  differs in {_changes(flip.changed)}"] if flip.changed else []),
        *([f"  decided by {_values(flip.signals)}"] if flip.signals else []),
    ]


def _changes(changed: "Mapping[str, tuple[Any, Any]]") -> str:
    named = [f"{name} {_short(was)} -> {_short(now)}" for name, (was, now) in changed.items()]
    return _listed(named)


def _values(values: "Mapping[str, Any]") -> str:
    return _listed([f"{name} {_short(value)}" for name, value in values.items()])


def _listed(named: list[str]) -> str:
    more = len(named) - _NAMED_AT_MOST
    return ", ".join(named[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = "none" if value is None else str(value) or '""'
    return text if len(text) <= 60 else text[:57] + "..."


def shares(was: "Mapping[str, int]", now: "Mapping[str, int]", before: str, after: str) -> None:
    """Print how many turns each target has on both sides."""
    table = output.table("target", before, "share", after, "share")
    totals = sum(was.values()) or 1, sum(now.values()) or 1
    for target in dict.fromkeys((*was, *now)):
        row: list[str] = [target or "?"]
        for counts, total in ((was, totals[0]), (now, totals[1])):
            row += [f"{counts.get(target, 0):,}", f"{counts.get(target, 0) / total:.1%}"]
        table.row(*row)
    table.print()
