"""Prometheus metrics: numbers kept in plain dictionaries while serving, put into families when scraped.

The client library's own counters take a lock each; a dozen of them per turn would cost more than the decision does.
"""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from turnout.ledger.rows import gap
from turnout.ledger.shadows import ShadowTurn
from turnout.ledger.trace import TurnRecord
from turnout.ledger.writer import Health
from turnout.routing.warmth import CacheUse

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
DECISION_SECONDS = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.02, 0.1, 1.0, 10.0, 60.0)
Labels = tuple[str, ...]


class CanaryCounts(Struct, frozen=True):
    """Numbers of one canary. `lanes`: that are over, by arm. `evidence`: against the candidate by metric, 1 = it is stopped."""

    route: str
    name: str
    stopped: bool
    lanes: dict[str, int]
    evidence: dict[str, float]


class Reloads(Struct):
    """How often the configuration was taken over anew, or was not because it is wrong. `at`: Unix seconds of the last time that
    it was, or of the start. `error`: why the newest one is not served, "" where it is."""

    at: float
    done: int = 0
    failed: int = 0
    error: str = ""
    failed_at: float | None = None


class ShadowCounts(Struct):
    """Numbers of one shadow, counted as they come: turns by what came of them, those dropped by a full queue, decisions that the
    ledger did not take, faults of the shadow's own; and what turns are reckoned to cost, USD, where both ways are known."""

    name: str
    route: str
    agreed: int = 0
    flipped: int = 0
    unsupported: int = 0
    dropped: int = 0
    unwritten: int = 0
    faults: int = 0
    live_usd: float = 0.0
    usd: float = 0.0

    def add(self, found: ShadowTurn) -> None:
        """A turn that the shadow saw."""
        if not found.target:
            self.unsupported += 1
        elif found.flip is None:
            self.agreed += 1
        else:
            self.flipped += 1
        if found.live_usd is not None and found.usd is not None:
            self.live_usd += found.live_usd
            self.usd += found.usd


class _Histogram:
    """Counts by upper bound, and the sum, per label values."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._empty = [0.0] * (len(bounds) + 2)  # one count per bound, one above all, the sum
        self._series: dict[Labels, list[float]] = {}

    def observe(self, labels: Labels, value: float) -> None:
        """Count a value."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._empty[:]
        series[bisect_left(self._bounds, value)] += 1
        series[-1] += value

    def family(self, name: str, about: str, names: Labels) -> HistogramMetricFamily:
        """The family as scraped: cumulative counts."""
        family = HistogramMetricFamily(name, about, labels=names)
        for labels, series in list(self._series.items()):
            counts, total = series[:-1], 0.0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                total += count
                buckets.append(("+Inf" if bound == float("inf") else repr(bound), total))
            family.add_metric(labels, buckets, series[-1])
        return family


class Metrics(Collector):
    """The metrics of one gateway. All methods but `render` are called from the event loop and cost microseconds.

    `in_flight`: requests being served, kept by the gateway. `health`: how the ledger is doing, asked when scraped. `sessions`:
    what went wrong with the session store, by operation and kind; the store counts in it. `reachable`: whether it answers.
    `canaries`, `shadows`: asked when scraped. `reloads`: of the configuration, kept by whoever reloads it.
    """

    def __init__(
        self,
        health: Callable[[], Health] | None = None,
        sessions: Mapping[Labels, float] | None = None,
        reachable: Callable[[], bool] | None = None,
        canaries: Callable[[], Iterable[CanaryCounts]] | None = None,
        shadows: Callable[[], Iterable[ShadowCounts]] | None = None,
    ) -> None:
        self._shadows = shadows
        self._canaries = canaries
        self.in_flight = 0
        self.reloads = Reloads(time.time())
        self._health = health
        self._sessions = {} if sessions is None else sessions
        self._reachable = reachable
        self._requests: dict[Labels, float] = defaultdict(float)
        self._internal: dict[Labels, float] = defaultdict(float)
        self._turns: dict[Labels, float] = defaultdict(float)
        self._tokens: dict[Labels, float] = defaultdict(float)
        self._reasoning: dict[Labels, float] = defaultdict(float)
        self._cost: dict[Labels, float] = defaultdict(float)
        self._gaps: dict[Labels, float] = defaultdict(float)
        self._calls: dict[Labels, float] = defaultdict(float)
        self._retries: dict[Labels, float] = defaultdict(float)
        self._recovered: dict[Labels, float] = defaultdict(float)
        self._unheard: dict[Labels, float] = defaultdict(float)
        self._dropped_fields: dict[Labels, float] = defaultdict(float)
        self._lookups: dict[Labels, float] = defaultdict(float)
        self._answers: dict[Labels, float] = defaultdict(float)
        self._cache: dict[Labels, float] = defaultdict(float)
        self._cache_breaks: dict[Labels, float] = defaultdict(float)
        self._cache_lost: dict[Labels, float] = defaultdict(float)
        self._total = _Histogram(SECONDS)
        self._first_byte = _Histogram(SECONDS)
        self._decision = _Histogram(DECISION_SECONDS)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def request(self, endpoint: str, status: int) -> None:
        """Count an answered HTTP request. `endpoint`: a configured path, never what a client made up."""
        self._requests[endpoint, str(status)] += 1

    def internal_error(self, kind: str) -> None:
        """Count a fault of the gateway's own. `kind`: the exception's class."""
        self._internal[(kind,)] += 1

    def observe(self, record: TurnRecord) -> None:
        """Count a finished turn."""
        route, target, why = record.route, record.target, record.why
        self._turns[route, target, why.source if why is not None else "", record.ended] += 1
        here = (route, target)
        failed = False
        for call in record.calls:
            name, purpose = call.target, call.purpose
            if call.unheard:
                self._unheard[route, name, call.unheard] += 1
            elif call.error:
                failed = True
            elif call.retries:
                self._recovered[name, "retry"] += 1
            self._calls[name, purpose, call.error or "ok"] += 1
            if call.retries:
                self._retries[(name,)] += call.retries
            if call.cost_usd:
                self._cost[route, name, purpose] += call.cost_usd
            usage = call.usage
            if usage is None:
                continue
            tokens = self._tokens
            if usage.input_tokens:
                tokens[route, name, "input"] += usage.input_tokens
            if usage.output_tokens:
                tokens[route, name, "output"] += usage.output_tokens
            if usage.cache_read_tokens:
                tokens[route, name, "cache_read"] += usage.cache_read_tokens
            if usage.cache_write_tokens:
                tokens[route, name, "cache_write"] += usage.cache_write_tokens
            if usage.reasoning_tokens:
                self._reasoning[route, name] += usage.reasoning_tokens
        for one in record.lookups:
            self._lookups[
                route, one.failure.kind if one.failure is not None else "found" if one.ids else "nothing"
            ] += 1
        if why is not None and why.source == "retrieval":
            self._answers[route, why.rule] += 1
        if record.cache is not None:
            self._cached(route, record.cache)
        if record.cost_usd is None and (missing := gap(record)):
            self._gaps[route, target, missing] += 1
        if failed and record.ended == "ok":
            self._recovered[target, "fallback"] += 1
        if record.drops:
            self._dropped_fields[route, record.format, record.upstream_format] += record.drops
        if record.ended != "rejected":
            self._total.observe(here, record.total_s)
            self._decision.observe((route,), record.decision_s)
            if record.first_byte_s is not None:
                self._first_byte.observe(here, record.first_byte_s)

    def _cached(self, route: str, use: CacheUse) -> None:
        """Count what was expected of the prompt cache beside what was reported, of calls whose provider reports it."""
        target, counts = use.target, self._cache
        if use.reported_read is not None:
            counts[route, target, "read", "predicted"] += use.predicted_read
            counts[route, target, "read", "reported"] += use.reported_read
        if use.reported_write is not None:
            counts[route, target, "write", "predicted"] += use.predicted_write
            counts[route, target, "write", "reported"] += use.reported_write
        if use.broke:
            self._cache_breaks[route, target, use.cause, use.part] += 1
            self._cache_lost[route, target, use.cause] += use.lost_tokens

    def render(self) -> bytes:
        """The text a scrape gets (`CONTENT_TYPE`)."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """The families, for the registry."""
        yield from self._counters()
        yield self._total.family("turnout_turn_seconds", "Whole turns, from request to last byte.", ("route", "target"))
        yield self._first_byte.family("turnout_first_byte_seconds", "Turns, until the first byte.", ("route", "target"))
        yield self._decision.family("turnout_decision_seconds", "Deciding, calls of the router included.", ("route",))
        yield GaugeMetricFamily("turnout_requests_in_flight", "Requests being served.", value=self.in_flight)
        if self._reachable is not None:
            about = "1 while the store of sessions answers."
            yield GaugeMetricFamily("turnout_sessions_reachable", about, value=float(self._reachable()))
        yield from _reloaded(self.reloads)
        if self._canaries is not None:
            yield from _watched(list(self._canaries()))
        if self._shadows is not None:
            yield from _beside(list(self._shadows()))
        if self._health is not None:
            yield from _ledger(self._health())

    def _counters(self) -> Iterator[Metric]:
        place = ("route", "target")
        yield _counter("requests", "HTTP requests answered.", ("endpoint", "status"), self._requests)
        yield _counter("internal_errors", "Faults of the gateway's own, by exception.", ("kind",), self._internal)
        yield _counter("turns", "Turns, by who decided and how they ended.", (*place, "source", "ended"), self._turns)
        yield _counter("tokens", "Tokens of all calls; the kinds do not overlap.", (*place, "kind"), self._tokens)
        yield _counter("reasoning_tokens", "Output tokens that were reasoning.", place, self._reasoning)
        yield _counter("cost_usd", "Known cost of all calls.", (*place, "purpose"), self._cost)
        yield _counter("cost_missing_turns", "Turns whose cost is unpriced or unknown.", (*place, "why"), self._gaps)
        yield _counter("upstream_calls", "Calls by outcome.", ("target", "purpose", "outcome"), self._calls)
        yield _counter("upstream_retries", "Attempts after the first.", ("target",), self._retries)
        yield _counter("recovered", "Failures mended by a retry or a fallback.", ("target", "by"), self._recovered)
        reasons = (*place, "reason")
        yield _counter("judge_failures", "Judges without a verdict that counts.", reasons, self._unheard)
        yield _counter("lookups", "Look-ups in a knowledge, by what came of them.", ("route", "outcome"), self._lookups)
        yield _counter("retrieval_answers", "Questions to a knowledge, by status.", ("route", "status"), self._answers)
        yield _counter("sessions_trouble", "Trouble with the session store.", ("operation", "kind"), self._sessions)
        kinds = (*place, "kind", "source")
        yield _counter("cache_tokens", "Cached tokens of watched calls, predicted and reported.", kinds, self._cache)
        broke = (*place, "cause", "part")
        yield _counter(
            "cache_breaks", "Turns that found their prefix broken, by who did it.", broke, self._cache_breaks
        )
        lost = (*place, "cause")
        yield _counter("cache_lost_tokens", "Tokens that were warm and could not be read.", lost, self._cache_lost)
        formats = ("route", "format", "upstream_format")
        yield _counter("dropped_fields", "Request fields a translation lost.", formats, self._dropped_fields)


def _counter(name: str, about: str, names: Labels, values: Mapping[Labels, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"turnout_{name}", about, labels=names)
    for labels, value in list(values.items()):
        family.add_metric(labels, value)
    return family


def _watched(canaries: list[CanaryCounts]) -> Iterator[Metric]:
    if not canaries:
        return
    of = ("route", "canary")
    lanes: dict[Labels, float] = {(c.route, c.name, arm): n for c in canaries for arm, n in c.lanes.items()}
    yield _counter("canary_lanes", "Lanes of canaries that are over, by arm.", (*of, "arm"), lanes)
    stopped = GaugeMetricFamily("turnout_canary_stopped", "1 once a canary was stopped.", labels=of)
    evidence = GaugeMetricFamily(
        "turnout_canary_evidence", "Evidence against the candidate; at 1 it is stopped.", labels=(*of, "metric")
    )
    for canary in canaries:
        stopped.add_metric((canary.route, canary.name), float(canary.stopped))
        for metric, value in canary.evidence.items():
            evidence.add_metric((canary.route, canary.name, metric), value)
    yield stopped
    yield evidence


def _reloaded(reloads: Reloads) -> Iterator[Metric]:
    results: dict[Labels, float] = {("ok",): reloads.done, ("refused",): reloads.failed}
    yield _counter("reloads", "Times that the configuration was read anew, by result.", ("result",), results)
    about = "1 while what is served is what was last read; 0 = it was refused, and the configuration before is served."
    yield GaugeMetricFamily("turnout_reload_ok", about, value=float(not reloads.error))


def _beside(shadows: list[ShadowCounts]) -> Iterator[Metric]:
    if not shadows:
        return
    of = ("route", "shadow")
    ends = ("agreed", "flipped", "unsupported", "dropped", "faults", "unwritten")
    turns: dict[Labels, float] = {(s.route, s.name, end): getattr(s, end) for s in shadows for end in ends}
    yield _counter("shadow_turns", "Turns that shadows saw, by what came of them.", (*of, "result"), turns)
    spent: dict[Labels, float] = {}
    for one in shadows:
        spent[one.route, one.name, "live"], spent[one.route, one.name, "shadow"] = one.live_usd, one.usd
    about = "Predicted cost of the turns, the way they went and by the shadow's decisions."
    yield _counter("shadow_predicted_usd", about, (*of, "way"), spent)


def _ledger(health: Health) -> Iterator[Metric]:
    yield GaugeMetricFamily("turnout_ledger_healthy", "1 while turns reach the database.", value=float(health.ok))
    yield GaugeMetricFamily("turnout_ledger_queue", "Turns not yet in the database.", value=health.queued)
    yield GaugeMetricFamily("turnout_ledger_spilled", "Turns in overflow files.", value=health.spilled)
    yield CounterMetricFamily("turnout_ledger_written", "Turns written.", value=health.written)
    yield CounterMetricFamily(
        "turnout_ledger_dropped", "Turns lost: neither database nor disk took them.", value=health.dropped
    )
