"""A ledger that the gateway wrote under mixed load replays whole: every kind of route and dialect, with faults and hang-ups."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mixed import NAMES, ROUTES, UPSTREAMS, load, scripts
from tests.running import Running, running

from turnout.evaluate.replay import differences
from turnout.evaluate.replaying import Candidate, Replayed, Replaying
from turnout.gateway.facts import facts
from turnout.ledger.reading import TurnFilter
from turnout.ledger.shadows import ShadowFigures
from turnout.ledger.store import Ledger

CLIENTS, TURNS = 6, 90
SHADOWS = "".join(f'[shadows.same-{name}]\nroute = "{name}"\nas = "{name}"\n' for name in NAMES)
SHADOWS += """
[shadows.cautious]
route = "staged"
type = "stage"
efficient = "small"
capable = "large"
threshold = 0.8
hold = 3
[shadows.escalation-as-stage]
route = "escalating"
as = "staged"
[shadows.stage-as-escalation]
route = "staged"
as = "escalating"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, int]]:
    folder: Path = tmp_path_factory.mktemp("mixed")
    scripts(folder)
    with running(UPSTREAMS + ROUTES + SHADOWS, folder, capture="full") as gateway:
        sent = load(gateway, CLIENTS, TURNS)
        gateway.settled()
        gateway.beside()
        yield gateway, sent


def replayed(gateway: Running, *, bodies: bool = True, own: bool = True) -> list[Replayed]:
    """The whole ledger, each turn by its own route, as `turnout replay` does it."""
    config = gateway.gateway.config
    chosen = {
        name: Candidate(name, r.router, r.policy if own else "another", r.fault) for name, r in config.routes.items()
    }
    ledger = Ledger.read(gateway.ledger_url)
    try:
        replaying = Replaying(
            lambda record: chosen.get(record.route),
            facts(config),
            ledger.request if bodies else lambda _: None,
            config.server.deadline_s,
        )
        with ledger.whole_lanes() as turns:
            return list(replaying.turns(record for record, _ in turns))
    finally:
        ledger.close()


def test_every_decision_comes_out_as_it_was(served: tuple[Running, int]) -> None:
    gateway, sent = served
    turns = replayed(gateway)
    assert len(turns) == sent
    assert [(turn.record.id, turn.record.route, turn.different) for turn in turns if turn.different] == []
    decided = [turn for turn in turns if turn.decision is not None]
    assert all(turn.own and turn.agrees for turn in decided)
    lacking = Counter(turn.reason for turn in turns if turn.decision is None)
    assert set(lacking) <= {"continued", "refused", "unfinished"}, lacking
    for turn in turns:
        request = turn.record.format == "openai_responses" and gateway.gateway.ledger.turn(turn.record.id)
        if turn.reason == "continued":
            assert request
            assert b"previous_response_id" in (request.request or b"")
    # The load was mixed: all kinds of routes, ends and judges' failures came about.
    assert {turn.record.route for turn in decided} == set(NAMES)
    assert {turn.record.format for turn in decided} == {"openai_chat", "openai_responses", "anthropic_messages"}
    ends = Counter(turn.record.ended for turn in turns)
    assert {"ok", "error", "cut", "rejected", "client_gone"} <= set(ends), ends
    sources = Counter(turn.record.why.source for turn in decided if turn.record.why)
    wanted = {
        "signals",
        "default",
        "judge",
        "latch",
        "classifier",
        "pin",
        "random",
        "advisor",
        "fixed",
        "fallback",
        "subagent",
    }
    assert wanted <= set(sources), sources
    assert any(call.unheard for turn in decided for call in turn.record.calls)
    assert len(decided) > 0.8 * sent


def test_without_bodies_what_reads_only_signals_comes_out_as_it_was(served: tuple[Running, int]) -> None:
    gateway, _ = served
    turns = replayed(gateway, bodies=False)
    assert all(turn.different == () for turn in turns)
    staged = [turn for turn in turns if turn.record.route in ("staged", "drawn", "fixed", "family")]
    assert {turn.reason for turn in staged} <= {None, "refused", "unfinished"}
    reasons = {turn.reason for turn in turns if turn.record.route in ("escalating", "advised") and turn.record.why}
    assert "conversation" in reasons


def test_the_routers_own_memory_leads_to_the_same_decisions(served: tuple[Running, int]) -> None:
    """Nothing of what was remembered is taken from the record: it is folded from the decisions that the replay makes."""
    gateway, _ = served
    turns = replayed(gateway, own=False)
    other = [turn for turn in turns if turn.decision is not None and differences(turn.record, turn.decision)]
    # Where a response is continued by its id, or a turn began before the one before it was over, the ledger does not tell what
    # the turn goes on with.
    assert len(other) < 0.05 * len(turns)
    assert all(turn.reason != "call" for turn in turns)


def told(gateway: Running) -> dict[str, ShadowFigures]:
    """How each shadow did."""
    ledger = Ledger.read(gateway.ledger_url)
    try:
        return {one.shadow: one for one in ledger.shadow_figures()}
    finally:
        ledger.close()


def test_a_shadow_that_is_the_live_router_agrees_on_every_turn(served: tuple[Running, int]) -> None:
    gateway, _ = served
    decided = Counter(turn.record.route for turn in replayed(gateway) if turn.record.why is not None)
    for name in NAMES:
        found = told(gateway)[f"same-{name}"]
        assert found.turns == decided[name]
        assert (found.agreed, found.decided, found.unsupported) == (found.turns, found.turns, {}), name
        assert found.usd == pytest.approx(found.live_usd, rel=1e-9)
        assert found.policy == gateway.gateway.config.routes[name].policy
    assert sum(counts.faults + counts.dropped + counts.unwritten for counts in gateway.gateway.shadows.counts()) == 0


@pytest.mark.parametrize("name", ["cautious", "escalation-as-stage"])
def test_a_replay_of_a_shadow_is_what_it_decided_live(served: tuple[Running, int], name: str) -> None:
    gateway, _ = served
    shadow = gateway.gateway.config.shadows[name]
    chosen = Candidate(name, shadow.by.router, "another", shadow.by.fault)
    ledger = Ledger.read(gateway.ledger_url)
    try:
        live = {turn: (target, reason) for turn, target, reason in ledger.shadow_turns(name)}
        replaying = Replaying(lambda _: chosen, facts(gateway.gateway.config), ledger.request)
        with ledger.whole_lanes(TurnFilter(route=shadow.route)) as turns:
            again = list(replaying.turns(record for record, _ in turns))
    finally:
        ledger.close()
    assert len(live) > 20
    both = [turn for turn in again if turn.record.id in live and turn.decision is not None]
    assert len(both) == len(live)
    same = sum(str(turn.decision.target) == live[turn.record.id][0] for turn in both if turn.decision)
    # A response continued by its id may go on from another turn than the ledger tells.
    assert same >= 0.97 * len(both)


def test_what_was_not_asked_live_is_not_asked_beside(served: tuple[Running, int]) -> None:
    gateway, _ = served
    found = told(gateway)["stage-as-escalation"]
    assert found.unsupported["call"] > 0
    assert found.decided + sum(found.unsupported.values()) == found.turns
    live = [turn for turn in gateway.turns() if turn.route == "staged"]
    assert all(call.purpose == "answer" for turn in live for call in turn.calls)
