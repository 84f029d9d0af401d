"""What recorded judgements amount to: votes, streaks, agreement with outcomes, lean, cost and latency. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from turnout.ledger.outcome import Reported
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.core import ANSWERING
from turnout.statistics.shares import Share, share

SKIPPED = frozenset(("breaker", "budget"))
"""Reasons for which a judge was not asked at all."""
Lane = tuple[str, str, str]
"""Tenant, session, agent."""


class Group(Struct, frozen=True):
    """The votes to move up among turns that have something in common."""

    name: str
    votes: Share


class Verdicts(Struct, frozen=True):
    """One judge of one route. All shares come with 95 % intervals.

    `turns`: of the route's turns, those it was to be asked in. `asked`: calls made; `skipped`: not made, by reason; `failures`:
    made, without a verdict that counts, by reason. `votes`: verdicts that ask for more than the cheap model, of all that say
    yes or no. `disapproved`: votes against an answer, of all it cast in collaborations. `escalations`: turns it moved up; `held`:
    later turns that stayed up by its latch. `streaks`: how often so many
    votes to move up came in a row in a lane. `precision`, `recall`: of lanes that the cheap model served to the end and whose
    outcome is known (`known`), those it voted in that failed, and those that failed it voted in; `taken_over`: lanes with a known
    outcome that say nothing of it, for another model went on. `by_category` (where outcomes name one), `by_agent`, `by_length`
    (the judged draft's output tokens, in thirds), `by_style`: where votes lean to. `cost_usd`: the known cost of its calls, of
    `route_usd`; `unknown`: calls without a known cost. Latencies of calls with a verdict in seconds, nearest rank.
    """

    route: str
    judge: str
    turns: int
    asked: int
    skipped: dict[str, int]
    failures: dict[str, int]
    votes: Share
    disapproved: Share
    escalations: int
    held: int
    streaks: dict[int, int]
    known: int
    taken_over: int
    precision: Share
    recall: Share
    by_category: tuple[Group, ...]
    by_agent: tuple[Group, ...]
    by_length: tuple[Group, ...]
    by_style: tuple[Group, ...]
    cost_usd: float
    route_usd: float
    unknown: int
    latency_p50_s: float | None
    latency_p90_s: float | None


class _Judged(Struct, frozen=True):
    """A turn in which a judge was to be asked."""

    record: TurnRecord
    judge: str
    calls: tuple[Call, ...]
    up: bool | None

    @property
    def lane(self) -> Lane:
        return lane_of(self.record)


def lane_of(record: TurnRecord) -> Lane:
    """The lane of a turn; a turn of no known session is one by itself."""
    return record.tenant, record.session or f"\0{record.id}", record.agent


def opinion(record: TurnRecord) -> bool | None:
    """Whether the turn's verdict asks for more than the cheap model; None where there is none, or it is no yes or no."""
    why = record.why
    if why is None:
        return None
    verdict = why.values.get("verdict")
    if verdict in ("escalate", "decline"):
        return bool(verdict == "escalate")
    if why.source == "advisor" and why.rule in ("approved", "redo"):
        return why.rule == "redo"
    if why.source == "classifier" and why.confidence is not None and why.threshold is not None:
        return why.confidence < why.threshold - 1e-9
    return None


def verdicts(records: Iterable[TurnRecord], outcomes: Iterable[Reported] = ()) -> list[Verdicts]:
    """Figures by route and judge, from turns in any order."""
    turns = sorted(records, key=lambda record: (record.at, record.id))
    spent: dict[str, float] = defaultdict(float)
    held: Counter[str] = Counter()
    judged: dict[tuple[str, str], list[_Judged]] = defaultdict(list)
    for record in turns:
        spent[record.route] += sum(call.cost_usd or 0.0 for call in record.calls)
        held[record.route] += record.why is not None and record.why.source == "latch"
        calls = tuple(call for call in record.calls if call.purpose not in ANSWERING)
        for judge in dict.fromkeys(call.target for call in calls):
            own = tuple(call for call in calls if call.target == judge)
            # The verdict belongs to the judge asked last: others were of routers around or inside.
            up = opinion(record) if judge == calls[-1].target and not own[-1].unheard else None
            judged[record.route, judge].append(_Judged(record, judge, own, up))
    ends = _Ends(outcomes)
    return [
        _verdicts(route, judge, found, turns, ends, spent[route], held[route])
        for (route, judge), found in sorted(judged.items())
    ]


def _verdicts(
    route: str,
    judge: str,
    found: list[_Judged],
    turns: Sequence[TurnRecord],
    ends: "_Ends",
    route_usd: float,
    held: int,
) -> Verdicts:
    calls = [call for one in found for call in one.calls]
    made = [call for call in calls if call.unheard not in SKIPPED]
    said = [one for one in found if one.up is not None]
    took = sorted(call.ended_s - call.started_s for call in made if call.ended_s is not None and not call.unheard)
    known, taken_over, precision, recall = _against(said, [t for t in turns if t.route == route], ends)
    return Verdicts(
        route=route,
        judge=judge,
        turns=len(found),
        asked=len(made),
        skipped=dict(Counter(call.unheard for call in calls if call.unheard in SKIPPED)),
        failures=dict(Counter(call.unheard for call in made if call.unheard)),
        votes=_votes(said),
        disapproved=_disapproved(found),
        escalations=sum(moved_up(one.record) for one in found),
        held=held,
        streaks=_streaks(said),
        known=known,
        taken_over=taken_over,
        precision=precision,
        recall=recall,
        by_category=_grouped(said, lambda one: ends.category(one.record)),
        by_agent=_grouped(said, lambda one: f"{one.record.agent_program or 'unknown'} {one.record.agent_kind}"),
        by_length=_by_length(said),
        by_style=_grouped(said, _style),
        cost_usd=sum(call.cost_usd or 0.0 for call in made),
        route_usd=route_usd,
        unknown=sum(call.cost_usd is None for call in made),
        latency_p50_s=_rank(took, 0.5),
        latency_p90_s=_rank(took, 0.9),
    )


def moved_up(record: TurnRecord) -> bool:
    """Whether a judge's verdict had the turn done again by a stronger model."""
    return record.why is not None and record.why.source == "judge" and record.why.rule in ("latched", "escalated")


def _votes(said: Sequence[_Judged]) -> Share:
    return share(sum(bool(one.up) for one in said), len(said))


def _disapproved(found: Sequence[_Judged]) -> Share:
    votes = [
        vote["approve"]
        for one in found
        if one.record.why is not None
        for hop in one.record.why.values.get("hops", ())
        for vote in hop.get("votes", ())
        # One that was copied was cast, and counted, before.
        if vote.get("target", vote["voter"]) == one.judge and vote["approve"] is not None and not vote.get("copied")
    ]
    return share(votes.count(False), len(votes))


def _streaks(said: Sequence[_Judged]) -> dict[int, int]:
    """How often so many votes to move up came in a row; a lane's last run counts as long as it got."""
    running: Counter[Lane] = Counter()
    found: Counter[int] = Counter()
    for one in said:
        why = one.record.why
        # A turn that was sent again, or from further back, is no next turn: the router began to count anew.
        anew = not one.up or (why is not None and why.values.get("streak") == 1)
        if anew and running[one.lane]:
            found[running.pop(one.lane)] += 1
        running[one.lane] += bool(one.up)
    found.update(running.values())
    return dict(sorted((length, count) for length, count in found.items() if length))


class _Ends:
    """What became of sessions and turns, by what was reported last."""

    def __init__(self, outcomes: Iterable[Reported]) -> None:
        self.success: dict[tuple[str, str], bool] = {}
        self.categories: dict[tuple[str, str], str] = {}
        for one in sorted(outcomes, key=lambda one: one.at):
            told = one.outcome
            bad = told.severe_failure or told.takeover or told.rollback
            success = False if bad else told.success
            for name in ((told.tenant, told.session), (told.tenant, f"\0{told.turn}")):
                if name[1] in ("", "\0"):
                    continue
                if success is not None:
                    self.success[name] = success
                if told.category:
                    self.categories[name] = told.category

    def solved(self, record: TurnRecord) -> bool | None:
        """Whether the work that a turn belongs to succeeded; None = not known."""
        return next((self.success[name] for name in _names(record) if name in self.success), None)

    def category(self, record: TurnRecord) -> str:
        """The category of the work, "" where it is not known."""
        return next((self.categories[name] for name in _names(record) if name in self.categories), "")


def _names(record: TurnRecord) -> list[tuple[str, str]]:
    names = [(record.tenant, f"\0{record.id}"), ("", f"\0{record.id}")]
    if record.session:
        names += [(record.tenant, record.session), ("", record.session)]
    return names


def _against(said: Sequence[_Judged], turns: Sequence[TurnRecord], ends: _Ends) -> tuple[int, int, Share, Share]:
    """Lanes with a known outcome, those of them that another model took over, precision, recall.

    A lane counts once, for its votes are not independent; what the cheap model would have made of a lane that another took over
    nobody knows.
    """
    voted: dict[Lane, bool] = {}
    for one in said:
        voted[one.lane] = voted.get(one.lane, False) or bool(one.up)
    solved: dict[Lane, bool] = {}
    over: set[Lane] = set()
    for record in turns:
        lane = lane_of(record)
        if lane not in voted:
            continue
        if moved_up(record) or (record.why is not None and record.why.source in ("latch", "fallback")):
            over.add(lane)
        end = ends.solved(record)
        if end is not None:
            solved[lane] = end
    pairs = [(not solved[lane], up) for lane, up in voted.items() if lane in solved and lane not in over]
    right = sum(failed and up for failed, up in pairs)
    precision = share(right, sum(up for _, up in pairs))
    recall = share(right, sum(failed for failed, _ in pairs))
    return len(pairs), sum(lane in over for lane in solved), precision, recall


def lean(groups: Sequence[Group]) -> str:
    """Between which groups the votes differ by more than chance would make of it, "" when between none."""
    ordered = sorted((group for group in groups if group.votes.of), key=lambda group: group.votes.low)
    if len(ordered) < 2:
        return ""
    low = min(ordered, key=lambda group: group.votes.high)
    high = ordered[-1]
    return f"more votes for {high.name} than for {low.name}" if high.votes.low > low.votes.high else ""


def _grouped(said: Sequence[_Judged], name_of: Callable[[_Judged], str]) -> tuple[Group, ...]:
    """Votes by name, most turns first; turns without a name are left out."""
    groups: dict[str, list[_Judged]] = defaultdict(list)
    for one in said:
        if name := name_of(one):
            groups[name].append(one)
    found = [Group(name, _votes(members)) for name, members in groups.items()]
    return tuple(sorted(found, key=lambda group: (-group.votes.of, group.name)))


def _draft_tokens(one: _Judged) -> int | None:
    """Output tokens of the draft that was judged."""
    drafts = [call for call in one.record.calls if call.purpose == "draft" and call.usage is not None]
    return drafts[-1].usage.output_tokens if drafts and drafts[-1].usage is not None else None


def _by_length(said: Sequence[_Judged]) -> tuple[Group, ...]:
    """Votes by thirds of the drafts' lengths, shortest first."""
    long = [(tokens, one) for one in said if (tokens := _draft_tokens(one)) is not None]
    if not long:
        return ()
    sizes = sorted(tokens for tokens, _ in long)
    low, high = sizes[(len(sizes) - 1) // 3], sizes[2 * (len(sizes) - 1) // 3]
    names = (f"up to {low} tokens", f"{low + 1} to {high} tokens", f"more than {high} tokens")
    thirds: tuple[list[_Judged], ...] = ([], [], [])
    for tokens, one in long:
        thirds[0 if tokens <= low else 1 if tokens <= high else 2].append(one)
    return tuple(Group(name, _votes(members)) for name, members in zip(names, thirds, strict=True) if members)


def _style(one: _Judged) -> str:
    """How the judged draft looks: what it does, and whether it talks."""
    values = one.record.why.values if one.record.why is not None else {}
    calls, chars = values.get("draft_calls"), values.get("draft_chars")
    if not isinstance(calls, int) or not isinstance(chars, int):
        return ""
    if not calls:
        return "text alone"
    return "calls with text" if chars else "calls alone"


def _rank(ordered: Sequence[float], share_of: float) -> float | None:
    """The value at a share of an ordered series, by nearest rank."""
    return ordered[max(math.ceil(share_of * len(ordered)) - 1, 0)] if ordered else None
