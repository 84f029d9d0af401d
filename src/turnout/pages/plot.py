"""Plots as SVG text to put into a page, all in one look. Needs matplotlib."""

import io
import warnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

PERCENT = FuncFormatter(lambda share, _: f"{round(share * 100, 2):g} %")
"""Labels of an axis of shares."""


def panels(count: int, across: int = 3, width: float = 3.4, height: float = 2.8) -> tuple[Figure, list[Axes]]:
    """As many small empty plots, `across` in a row, each of a size in inches."""
    across = min(across, count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    made = [figure.add_subplot(down, across, place + 1) for place in range(count)]
    for axes in made:
        _plain(axes)
    return figure, made


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty plot, size in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    _plain(axes)
    return figure, axes


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)


def svg(figure: Figure, salt: str) -> str:
    """The figure as an `svg` element; the same figure gives the same text."""
    text = io.StringIO()
    # Letters stay letters (smaller, searchable), and ids differ between the plots of a page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "svg.id": salt}), warnings.catch_warnings():
        # Which the reader's fonts will have, whatever those of this machine lack.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
