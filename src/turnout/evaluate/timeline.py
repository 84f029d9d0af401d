"""Sessions turn by turn: who served, what the prompt cache gave, what changed, failed and cost. Pure but for the prices."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from turnout.evaluate.spending import Spent
from turnout.ledger.trace import TurnRecord


class Step(Struct, frozen=True):
    """A turn in its session. `at`: ISO 8601, UTC. `tier`: `capable` for the target a route falls to, `efficient` for its others,
    "" where the route is not known.

    Tokens are those of the reply that was served, None where they were not reported: `uncached`, `cached`, `written` make up
    the prompt. `expected_cached`: what was predicted to be read; `lost`: warm tokens that could not be, and `cause` who broke
    the prefix. `switched`: another target served the turn before it in its lane. `failed`: ended in an error or was cut, or a
    call for it failed. USD: `cost` of all calls (None = not wholly known), `known` part of it, and of that what went to answers,
    judges, discarded replies, failed calls, replies nobody waited for, and cold caches.
    """

    turn: str
    at: str
    session: str
    tenant: str
    agent: str
    route: str
    target: str
    tier: str
    decided_by: str
    ended: str
    uncached: int | None
    cached: int | None
    written: int | None
    output: int | None
    expected_cached: int | None
    lost: int
    cause: str
    switched: bool
    failed: bool
    calls: int
    cost_usd: float | None
    known_usd: float
    answers_usd: float
    judges_usd: float
    discarded_usd: float
    failed_calls_usd: float
    hung_up_usd: float
    cold_usd: float
    cold_switch_usd: float
    cold_other_usd: float
    seconds: float


class Session(Struct, frozen=True):
    """A session's figures over its turns. `lanes`: agents in it. `cached_share`: of the prompt tokens reported, those read from
    a cache; None without any. `unknown`: turns whose cost is not wholly known."""

    session: str
    tenant: str
    first: str
    last: str
    turns: int
    lanes: int
    targets: tuple[str, ...]
    known_usd: float
    unknown: int
    cold_usd: float
    judges_usd: float
    switches: int
    failures: int
    cached_share: float | None


class Lanes:
    """Makes steps of turns, told lane by lane and each in order. `tiers`: for (route, target) the tier."""

    def __init__(self, tiers: Mapping[tuple[str, str], str]) -> None:
        self._tiers = tiers
        self._last: dict[tuple[str, str, str], str] = {}

    def step(self, record: TurnRecord, paid: Spent) -> Step:
        """The next turn of its lane. `paid`: what it cost by kind."""
        lane = (record.tenant, record.session, record.agent)
        before = self._last.get(lane, "")
        if record.session and record.target:
            self._last[lane] = record.target
        usage, use = record.usage, record.cache
        known = usage is not None and usage.prompt_tokens is not None
        by = paid.by
        return Step(
            turn=record.id,
            at=datetime.fromtimestamp(record.at, UTC).isoformat(timespec="milliseconds"),
            session=record.session,
            tenant=record.tenant,
            agent=record.agent,
            route=record.route,
            target=record.target,
            tier=self._tiers.get((record.route, record.target), ""),
            decided_by=record.why.source if record.why is not None else "",
            ended=record.ended,
            uncached=usage.input_tokens if usage is not None and known else None,
            cached=(usage.cache_read_tokens or 0) if usage is not None and known else None,
            written=(usage.cache_write_tokens or 0) if usage is not None and known else None,
            output=usage.output_tokens if usage is not None else None,
            expected_cached=use.predicted_read if use is not None else None,
            lost=use.lost_tokens if use is not None and use.broke else 0,
            cause=use.cause if use is not None else "",
            switched=bool(before) and bool(record.target) and before != record.target,
            failed=record.ended in ("error", "cut") or any(call.error for call in record.calls),
            calls=len(record.calls),
            cost_usd=record.cost_usd,
            known_usd=paid.known_usd,
            answers_usd=by.get("answers", 0.0),
            judges_usd=by.get("judges", 0.0),
            discarded_usd=by.get("discarded", 0.0),
            failed_calls_usd=by.get("failed", 0.0),
            hung_up_usd=by.get("hung up", 0.0),
            cold_usd=by.get("cold after a switch", 0.0) + by.get("cold otherwise", 0.0),
            cold_switch_usd=by.get("cold after a switch", 0.0),
            cold_other_usd=by.get("cold otherwise", 0.0),
            seconds=round(record.total_s, 3),
        )


def sessions(steps: Iterable[Step]) -> tuple[Session, ...]:
    """The sessions of these turns, the dearest first. Turns of no known session are in none."""
    groups: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        if step.session:
            groups.setdefault((step.tenant, step.session), []).append(step)
    found = [_session(of) for of in groups.values()]
    return tuple(sorted(found, key=lambda one: (-one.known_usd, one.session)))


def _session(steps: list[Step]) -> Session:
    prompts = [(step.cached or 0, (step.uncached or 0) + (step.cached or 0) + (step.written or 0)) for step in steps]
    read, whole = sum(cached for cached, _ in prompts), sum(prompt for _, prompt in prompts)
    return Session(
        session=steps[0].session,
        tenant=steps[0].tenant,
        first=min(step.at for step in steps),
        last=max(step.at for step in steps),
        turns=len(steps),
        lanes=len({step.agent for step in steps}),
        targets=tuple(sorted({step.target for step in steps if step.target})),
        known_usd=sum(step.known_usd for step in steps),
        unknown=sum(step.cost_usd is None for step in steps),
        cold_usd=sum(step.cold_usd for step in steps),
        judges_usd=sum(step.judges_usd for step in steps),
        switches=sum(step.switched for step in steps),
        failures=sum(step.failed for step in steps),
        cached_share=read / whole if whole else None,
    )
