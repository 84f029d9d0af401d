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
from turnout.ledger.store import Ledger

CLIENTS, TURNS = 6, 90


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, int]]:
    folder: Path = tmp_path_factory.mktemp("mixed")
    scripts(folder)
    with running(UPSTREAMS + ROUTES, folder, capture="full") as gateway:
        sent = load(gateway, CLIENTS, TURNS)
        gateway.settled()
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
    assert set(lacking) <= {"continued", "refused", "unfinished", "route"}, lacking
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
