"""How figures of a graph are said to people."""

from collections.abc import Iterable

from turnout.peers.graph.measure import Measured
from turnout.peers.graph.stability import Bounds, Stability
from turnout.routing.collaboration.graph import Category

CELLS: dict[Category, str] = {
    "LH": "gives little, gets much: an anchor, in C",
    "LL": "gives little, gets little: idiosyncratic, in C'",
    "HH": "gives much, gets much",
    "HL": "gives much, gets little",
    "MID": "between the percentiles",
}


def figure(value: float | None, bounds: Bounds | None = None) -> str:
    """A mean score with its interval."""
    if value is None:
        return "-"
    return f"{value:.2f}" + (f" [{bounds[0]:.2f} {bounds[1]:.2f}]" if bounds else "")


def names(models: Iterable[str]) -> str:
    """Some models; - for none."""
    return ", ".join(models) or "-"


def sure(worth: Stability | None, model: str, category: Category | None) -> str:
    """A category with its probability where it is known."""
    if category is None:
        return "-"
    if worth is None:
        return category
    share = worth.category[model].get(category, 0.0)
    return f"{category} {share:.0%}{' unstable' if model in worth.unstable else ''}"


def failing(found: Measured, judge: str) -> str:
    """Why a judge is left out, or would be; "" where it is not."""
    why = found.judges[judge].fails
    return why and f"{'left out' if judge in found.excluded else 'kept, but'}: {why}"


def share(value: float | None) -> str:
    """A share, or - where it is not known."""
    return "-" if value is None else f"{value:.1%}"


def signed(value: float | None) -> str:
    """A difference or a correlation, or - where it is not known."""
    return "-" if value is None else f"{value:+.2f}"
