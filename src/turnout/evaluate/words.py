"""How figures of a comparison read: shares, points, dollars, and the names of ways to choose. Pure."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnout.evaluate.baselines import Baseline
    from turnout.evaluate.evaluation import Evaluation
    from turnout.evaluate.period import Period
    from turnout.statistics.interval import Interval

ARMS = {
    "capable": "capable only",
    "efficient": "efficient only",
    "random_mix": "random mix",
    "routed": "routed",
    "cascade": "efficient first, perfect verifier",
    "held_out": "by other trials and category",
    "oracle_by_rate": "oracle by success rate",
    "oracle": "oracle",
}
"""Ways of choosing, as people read them, in the order they are shown."""


def counted_words(rows: int, damaged: int, unknown: int) -> str:
    """What was read, and what of it could not be used."""
    return f"{rows:,} rows read; {damaged:,} damaged, {unknown:,} of unknown success: left out"


def percent(figure: "Interval") -> str:
    """A share with its interval."""
    if figure.value is None or figure.low is None or figure.high is None:
        return "unknown"
    return f"{figure.value:.1%} [{figure.low * 100:.1f} {figure.high * 100:.1f}]"


def points(figure: "Interval") -> str:
    """A difference of shares in percentage points."""
    if figure.value is None or figure.low is None or figure.high is None:
        return "unknown"
    return f"{figure.value * 100:+.1f} points [{figure.low * 100:+.1f} {figure.high * 100:+.1f}]"


def dollars(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """An amount to three digits, with its interval where there is one."""
    if value is None:
        return "unknown"
    bounds = f" [{_digits(low)} {_digits(high)}]" if low is not None and high is not None else ""
    return f"${_digits(value)}{bounds}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def arms_of(found: "Evaluation") -> "dict[str, Baseline]":
    """The ways of choosing that there are figures of, restarts last."""
    made = {said: one for name, said in ARMS.items() if (one := getattr(found, name)) is not None}
    made |= {f"route {name}": one.figures for name, one in found.routers.items()}
    return made | {f"restart after {step} steps": one for step, one in found.restarts.arms.items()}


def sentence(found: "Period") -> str:
    """What a period cost, and what one model alone would have cost."""
    spent = found.spending
    if not spent.turns:
        return "No turns are recorded."
    turns = f"{spent.turns:,} turn{'s' * (spent.turns != 1)}"
    sessions = f"{len(found.sessions):,} session{'s' * (len(found.sessions) != 1)}"
    money = dollars(spent.known_usd)
    if spent.unknown:
        money = "A cost that is not known"
        if spent.known_usd:
            of = f"{spent.unknown:,} turn{'s' * (spent.unknown != 1)}"
            money = f"At least {dollars(spent.known_usd)} (the cost of {of} is not wholly known)"
    said = f"{money} for {turns} in {sessions}"
    alone = spent.alone
    if alone is None or alone.saved is None:
        return f"{said}; what one model alone would have cost is not known."
    less = "less" if alone.saved >= 0 else "more"
    of = "" if alone.turns == spent.turns else f", over the {alone.turns:,} turns for which both are known"
    return f"{said}: {abs(alone.saved):.0%} {less} than {alone.target} alone ({dollars(alone.usd)}){of}."
