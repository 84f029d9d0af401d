"""Watches one canary: a fold of the turns and outcomes that the ledger records. Pure."""

import hashlib
import zlib
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from turnout.gateway.canary.gauge import Gauge, Gauged, MetricFigures
from turnout.gateway.canary.lane import Drawn, LaneSoFar
from turnout.ledger.canaries import Stop
from turnout.ledger.outcome import Reported
from turnout.ledger.trace import TurnRecord
from turnout.routing.canary.router import Canary
from turnout.routing.canary.watching import Metric

KEPT_AT_MOST = 50_000
"""Lanes that are over and still known, for outcomes that come late."""
Key: TypeAlias = tuple[str, str, str]
_FORM = 1
"""Of what is kept; another number whenever it means something else."""


class CanaryStatus(Struct, frozen=True):
    """How a canary does. `running`: lanes that are not over yet, by arm; `lanes`: those that are."""

    route: str
    name: str
    state: Literal["running", "stopped"]
    share: float
    lanes: dict[str, int]
    running: dict[str, int]
    metrics: dict[Metric, MetricFigures]
    stopped_at: float | None = None
    metric: str = ""
    reason: str = ""


class Watched(Struct, frozen=True):
    """All that a `Watch` knows, to go on from. `main`: the lanes of main agents."""

    gauges: dict[Metric, Gauged]
    open: list[tuple[Key, LaneSoFar]]
    over: list[tuple[Key, Drawn]]
    main: list[Key]
    told: list[Key]
    lanes: dict[str, int]
    clock: float
    stop: Stop | None


_WATCHED = msgspec.json.Decoder(Watched)


class Watch:
    """Lanes of one canary and the evidence so far. `stop`: set once, when the candidate did worse.

    A lane counts once, when it has been silent for `settle_s`; later turns of it change nothing. An outcome counts for its
    turn's lane, or for the main agent's lane of its session, the first one of each lane.
    """

    def __init__(self, route: str, canary: Canary) -> None:
        self.route = route
        self.canary = canary
        self.stop: Stop | None = None
        watching = canary.watching
        limit = len(watching.metrics) / watching.alpha
        self._gauges: dict[Metric, Gauge] = {
            metric: Gauge(metric, watching.margin(metric), limit, watching.scale_lanes) for metric in watching.metrics
        }
        # By the time of their newest turn, longest silent first.
        self._open: dict[Key, LaneSoFar] = {}
        self._over: dict[Key, Drawn] = {}
        self._main: dict[tuple[str, str], Key] = {}
        self._told: dict[Key, None] = {}
        self._lanes = {"candidate": 0, "incumbent": 0}
        self._clock = 0.0

    def turn(self, record: TurnRecord) -> None:
        """One recorded turn of the route."""
        self.pass_to(record.at)
        mark = record.why.values.get("canary") if record.why is not None else None
        if not isinstance(mark, dict) or mark.get("name") != self.canary.name:
            return
        key = (record.tenant, record.session, record.agent)
        if key in self._over:
            return
        lane = self._open.pop(key, None) or LaneSoFar(Drawn(mark["arm"] == "candidate", float(mark["share"])))
        lane.add(record)
        self._open[key] = lane
        if record.agent_kind == "main":
            self._main.setdefault(key[:2], key)

    def pass_to(self, now: float) -> None:
        """Time goes on to `now` (Unix seconds): lanes that have been silent for long enough count."""
        self._clock = max(self._clock, now)
        while self._open:
            key, lane = next(iter(self._open.items()))
            over_at = lane.at + self.canary.watching.settle_s
            if over_at > self._clock:
                return
            del self._open[key]
            self._keep(key, lane.drawn)
            self._lanes["candidate" if lane.drawn.candidate else "incumbent"] += 1
            for metric, value in lane.values().items():
                self._count(metric, lane.drawn, value, over_at)

    def outcome(self, reported: Reported, lane_of: Callable[[str], Key | None]) -> None:
        """An outcome that was told. `lane_of`: the lane of a turn by its id."""
        outcome = reported.outcome
        success = outcome.solved
        if success is None:
            return
        key = lane_of(outcome.turn) if outcome.turn else self._main.get((outcome.tenant, outcome.session))
        if key is None or key in self._told:
            return
        lane = self._open.get(key)
        drawn = self._over.get(key) if lane is None else lane.drawn
        if drawn is not None:
            self._told[key] = None
            self._count("success", drawn, float(success), reported.at)

    def _keep(self, key: Key, drawn: Drawn) -> None:
        self._over[key] = drawn
        if len(self._over) > KEPT_AT_MOST:
            oldest = next(iter(self._over))
            del self._over[oldest]
            self._told.pop(oldest, None)
            if self._main.get(oldest[:2]) == oldest:
                del self._main[oldest[:2]]

    def _count(self, metric: Metric, drawn: Drawn, value: float, at: float) -> None:
        gauge = self._gauges.get(metric)
        if gauge is not None and gauge.add(drawn.candidate, value, drawn.share) and self.stop is None:
            self.stop = Stop(self.route, self.canary.name, at, metric, self._reason(gauge))

    def _reason(self, gauge: Gauge) -> str:
        found = gauge.figures()
        alpha, count = self.canary.watching.alpha, len(self._gauges)
        margin = f" by more than the margin of {gauge.margin:g}" if gauge.margin else ""
        return (
            f"{gauge.metric}: the candidate does worse{margin}: {found.candidate.mean or 0.0:.4g} over "
            f"{found.candidate.lanes} lanes against {found.incumbent.mean or 0.0:.4g} over {found.incumbent.lanes}; "
            f"evidence {found.evidence:.0f} reached {found.limit:g} (alpha {alpha:g} over {count} metrics)"
        )

    @property
    def settings(self) -> str:
        """A digest of all that decides what lanes amount to: under other settings the evidence is another."""
        told = msgspec.json.encode((_FORM, self.canary.name, self.canary.watching), order="sorted")
        return hashlib.blake2b(told, digest_size=8).hexdigest()

    def kept(self) -> bytes:
        """All it knows, to be resumed by a watch of the same settings."""
        gauges = {metric: gauge.kept() for metric, gauge in self._gauges.items()}
        known = Watched(
            gauges,
            list(self._open.items()),
            list(self._over.items()),
            list(self._main.values()),
            list(self._told),
            self._lanes,
            self._clock,
            self.stop,
        )
        return zlib.compress(msgspec.json.encode(known), 1)

    def resume(self, kept: bytes) -> None:
        """Go on from there, for a watch that has seen nothing yet. Raises ValueError when it is damaged."""
        try:
            known = _WATCHED.decode(zlib.decompress(kept))
        except (zlib.error, msgspec.DecodeError) as error:
            raise ValueError(f"not what a watch has kept: {error}") from None
        if set(known.gauges) != set(self._gauges):
            raise ValueError("what another watch has kept")
        for metric, gauge in self._gauges.items():
            gauge.resume(known.gauges[metric])
        self._open, self._over = dict(known.open), dict(known.over)
        self._main = {key[:2]: key for key in known.main}
        self._told = dict.fromkeys(known.told)
        self._lanes, self._clock, self.stop = dict(known.lanes), known.clock, known.stop

    def status(self, stop: Stop | None = None) -> CanaryStatus:
        """How the canary does. `stop`: the one the ledger keeps, where it does."""
        running = {"candidate": 0, "incumbent": 0}
        for lane in tuple(self._open.values()):
            running["candidate" if lane.drawn.candidate else "incumbent"] += 1
        stop = stop or self.stop
        return CanaryStatus(
            self.route,
            self.canary.name,
            "stopped" if stop is not None else "running",
            self.canary.share,
            dict(self._lanes),
            running,
            {metric: gauge.figures() for metric, gauge in self._gauges.items()},
            *((stop.at, stop.metric, stop.reason) if stop is not None else ()),
        )
