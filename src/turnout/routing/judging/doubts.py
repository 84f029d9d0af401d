"""Whether the signals of a task leave a doubt that is worth a judge's time."""

from collections.abc import Callable

from turnout.signals import Progress, Signals, progress

WINDOW = 6
"""The newest results that doubts are looked for in."""


def doubts(signals: Signals) -> tuple[str, ...]:
    """The names of the signals that are out of the ordinary, () when all is well.

    One failure is part of working, so it takes more: a broken environment (`critical`), failures that stay uncleared
    (`persistence`, `repeated`), the same call with the same outcome (`repeated_calls`), activity without information or change
    (`spinning`, `exploring`, `stall`), tests that get worse (`trend`), changes taken back (`taken_back`), a user who says that
    it is still wrong (`complaint`).
    """
    seen = progress(signals, WINDOW)
    return tuple(name for name, holds in _TESTS if holds(seen))


_TESTS: tuple[tuple[str, Callable[[Progress], bool]], ...] = (
    ("critical", lambda p: p.severity >= 1.0),
    ("persistence", lambda p: p.persistence > 0),
    ("repeated", lambda p: p.repeated >= 2),
    ("repeated_calls", lambda p: p.repeated_calls >= 2),
    ("spinning", lambda p: p.spinning >= 0.5),
    ("exploring", lambda p: p.exploring > 0),
    ("stall", lambda p: p.stall > 0),
    ("trend", lambda p: p.trend < 0),
    ("taken_back", lambda p: p.taken_back >= 2),
    ("complaint", lambda p: p.complaint >= 0.5),
)


def unfinished(signals: Signals) -> bool:
    """Whether a failure stands that nothing has cleared, so that calling it done now would be too soon."""
    seen: Progress = progress(signals, WINDOW)
    return seen.severity >= 0.7
