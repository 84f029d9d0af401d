"""The turn map: what the turns of a recording were for, and what each kind of work took. Pure.

Shares are of all turns that have a label. Their 95 % intervals hold for sessions like these: turns of one session resemble one
another, so the session is what was sampled (the variance of a ratio of sums over sessions, Student's t).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from turnout.evaluate.turnmap_labels import CHEAP, LABELS, Label, Labelled, labelled
from turnout.ledger.trace import TurnRecord
from turnout.statistics.shares import Z

Measure: TypeAlias = str
MEASURES: tuple[Measure, ...] = ("turns", "tokens_in", "tokens_out", "cost_usd", "seconds", "failures")
WORTH = 0.1
"""The part of the bill that is worth a router's trouble."""


class Portion(Struct, frozen=True):
    """An amount and its share of the whole with a 95 % interval. `share` is None where the whole is 0; the interval is None
    where fewer than two sessions have any of it."""

    amount: float
    share: float | None
    low: float | None = None
    high: float | None = None


class Work(Struct, frozen=True):
    """What the turns of one kind took. `tokens_in`: whole prompts, cached or not. `failures`: turns one of whose calls failed in
    a way that matters."""

    turns: Portion
    tokens_in: Portion
    tokens_out: Portion
    cost_usd: Portion
    seconds: Portion
    failures: Portion


class TurnMap(Struct, frozen=True):
    """The map. `unlabelled`: turns without signals. `unpriced`: labelled turns whose cost is not known; they count for
    nothing in costs. `untimed`: labelled turns without a time. `cheap`: explore, verify and summarise together. `runs`: how
    many stretches of cheap turns in a row there are, by length. `price_ratio`: what the cheaper model costs beside the one
    used; `saving`: the part of the known cost it would save on cheap work at most. `sentence`: the same for people."""

    turns: int
    sessions: int
    unlabelled: int
    unpriced: int
    untimed: int
    labels: dict[Label, Work]
    cheap: Work
    runs: dict[int, int]
    price_ratio: float
    saving: float | None
    sentence: str


def turn_map(turns: Iterable[TurnRecord], price_ratio: float = 0.2) -> TurnMap:
    """The map of turns; each lane's in order. Memory grows with sessions, not with turns."""
    counted = _Counted()
    for one in labelled(turns):
        counted.add(one)
    return counted.map(price_ratio)


class _Counted:
    """Sums by session, label and measure."""

    def __init__(self) -> None:
        self.turns = self.unlabelled = self.unpriced = self.untimed = 0
        self.sessions: dict[tuple[str, str], dict[Label, list[float]]] = {}
        self._running: dict[tuple[str, str, str], int] = {}
        self.runs: Counter[int] = Counter()

    def add(self, one: Labelled) -> None:
        """Count a turn."""
        self.turns += 1
        turn, label = one.turn, one.label
        lane = (turn.tenant, turn.session, turn.agent)
        if label not in CHEAP:
            if ended := self._running.pop(lane, 0):
                self.runs[ended] += 1
        else:
            self._running[lane] = self._running.get(lane, 0) + 1
        if label is None:
            self.unlabelled += 1
            return
        self.unpriced += turn.cost_usd is None
        self.untimed += not turn.total_s
        sums = self.sessions.setdefault((turn.tenant, turn.session), {}).setdefault(label, [0.0] * len(MEASURES))
        for i, value in enumerate(_measured(one)):
            sums[i] += value

    def map(self, price_ratio: float) -> TurnMap:
        """The map of what was counted."""
        for ended in self._running.values():
            self.runs[ended] += 1
        self._running.clear()
        cheap = self._work(CHEAP)
        saving = None if cheap.cost_usd.share is None else cheap.cost_usd.share * (1 - price_ratio)
        found = TurnMap(
            self.turns,
            len(self.sessions),
            self.unlabelled,
            self.unpriced,
            self.untimed,
            {label: self._work(frozenset({label})) for label in LABELS},
            cheap,
            dict(sorted(self.runs.items())),
            price_ratio,
            saving,
            "",
        )
        return replace(found, sentence=sentence(found))

    def _work(self, labels: frozenset[Label]) -> Work:
        return Work(*(_portion(list(self._pairs(labels, i))) for i in range(len(MEASURES))))

    def _pairs(self, labels: frozenset[Label], i: int) -> Iterator[tuple[float, float]]:
        """Per session: the measure over these labels, and over all."""
        for sums in self.sessions.values():
            yield sum(v[i] for label, v in sums.items() if label in labels), sum(v[i] for v in sums.values())


def _measured(one: Labelled) -> tuple[float, ...]:
    usage = one.turn.usage
    prompt = (usage.prompt_tokens or 0) if usage is not None else 0
    output = (usage.output_tokens or 0) if usage is not None else 0
    return 1.0, prompt, output, one.turn.cost_usd or 0.0, one.turn.total_s, float(one.failed is True)


def _portion(pairs: list[tuple[float, float]]) -> Portion:
    """A ratio of sums over sessions with its interval."""
    amount, whole = math.fsum(y for y, _ in pairs), math.fsum(x for _, x in pairs)
    if not whole:
        return Portion(amount, None)
    ratio = amount / whole
    n = sum(x > 0 for _, x in pairs)
    if n < 2:
        return Portion(amount, ratio)
    spread = math.fsum((y - ratio * x) ** 2 for y, x in pairs) * n / (n - 1)
    half = student(n - 1) * math.sqrt(spread) / whole
    return Portion(amount, ratio, max(ratio - half, 0.0), min(ratio + half, 1.0))


def student(degrees: int, z: float = Z) -> float:
    """The two-sided 95 % quantile of Student's t: exact for 1 and 2 degrees of freedom, else by its expansion around the normal
    one (Abramowitz and Stegun 26.7.5; error below 0.01 from 3 on)."""
    if degrees == 1:
        return 12.706204736
    if degrees == 2:
        return 4.302652730
    v = float(degrees)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def sentence(found: TurnMap) -> str:
    """How much cheap work there is to move, and for which price it is worth it."""
    cheap, n = found.cheap, found.turns - found.unlabelled
    if not n or cheap.turns.share is None:
        return "Nothing can be said: no turn has signals."
    work = f"{_percent(cheap.turns)} of {n:,} turns only explore, verify or summarise"
    if found.saving is None or cheap.cost_usd.share is None:
        return f"{work}; what they cost is not recorded, so nothing is said of a saving."
    part = f"{work} and take {_percent(cheap.cost_usd)} of the known cost"
    ratio = f"a model at {found.price_ratio:.0%} of the price would save at most {found.saving:.0%} of it"
    if cheap.cost_usd.share <= WORTH:
        return f"{part}; {ratio}, and even a free one less than {WORTH:.0%}: there is little cheap work to move."
    worth = 1 - WORTH / cheap.cost_usd.share
    return (
        f"{part}; {ratio}, and {WORTH:.0%} takes one at under {worth:.0%} (before what switches cost in cold caches)."
    )


def _percent(portion: Portion) -> str:
    if portion.share is None:
        return "an unknown part"
    if portion.low is None or portion.high is None:
        return f"{portion.share:.0%}"
    return f"{portion.share:.0%} [{portion.low:.0%} {portion.high:.0%}]"
