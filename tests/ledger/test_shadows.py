"""What shadows decided, and whole lanes to replay, in each kind of database."""

from tests.ledger.records import turn

from turnout.ledger.reading import TurnFilter
from turnout.ledger.shadows import ShadowTurn
from turnout.ledger.store import Ledger
from turnout.routing.beside import Flip, Side

FLIP = Flip("t1", 11.0, "coder", "s", "", Side("small"), Side("large", "signals", "it failed \ud800\0twice"))


def row(n: int, shadow: str = "eager", policy: str = "p1", **more: object) -> ShadowTurn:
    fields = {"at": 10.0 + n, "route": "coder", "tenant": "", "session": "s", "was": "small", **more}
    return ShadowTurn(f"t{n}", shadow, policy, **fields)  # type: ignore[arg-type]


def test_decisions_add_up_by_shadow_and_policy_and_each_counts_once(url: str) -> None:
    ledger = Ledger.open(url)
    rows = [
        row(0, target="small", live_usd=0.25, usd=0.25),
        row(1, target="large", live_usd=0.25, usd=1.0, flip=FLIP),
        row(2, reason="call"),
        row(3, reason="memory"),
        row(4, target="small", live_usd=0.5),
        row(4, "other", target="small"),
        row(5, policy="p2", target="small"),
    ]
    ledger.add_shadows(rows[:4])
    ledger.add_shadows(rows)
    newer, older, other = ledger.shadow_figures()
    assert (newer.policy, newer.turns, newer.compared, newer.agreement) == ("p2", 1, 0, 1.0)
    assert (other.shadow, other.turns) == ("other", 1)
    assert (older.turns, older.decided, older.agreed, older.compared) == (5, 3, 2, 2)
    assert older.unsupported == {"call": 1, "memory": 1}
    assert (older.was, older.now, older.flipped) == ({"small": 3}, {"small": 2, "large": 1}, {"small -> large": 1})
    assert (older.live_usd, older.usd, older.since, older.until) == (0.5, 1.25, 10.0, 14.0)
    assert [one.policy for one in ledger.shadow_figures(15.0)] == ["p2"]
    (flip,) = ledger.shadow_flips("eager")
    assert flip.now.sentence == "it failed ?twice"
    assert ledger.shadow_flips("eager", since=12.0) == ()
    assert ledger.shadow_turns("eager")[:3] == (("t0", "small", ""), ("t1", "large", ""), ("t2", "", "call"))
    ledger.close()


def test_lanes_are_given_whole_up_to_the_end_of_the_period(url: str) -> None:
    ledger = Ledger.open(url, "full")
    lanes = [("", "s1", "main"), ("", "s1", "child"), ("tenant", "s1", "main"), ("", "s2", "main")]
    for n in range(40):
        tenant, session, agent = lanes[n % 4]
        body = b'{"messages": [{"role": "user", "content": "%d"}]}' % n
        route = "coder" if n < 30 else "other"
        ledger.append(turn(n, tenant=tenant, session=session, agent=agent, route=route, request=body))
    with ledger.whole_lanes() as found:
        turns = list(found)
    assert len(turns) == 40
    assert all(wanted for _, wanted in turns)
    seen = [(record.tenant, record.session, record.agent) for record, _ in turns]
    assert sorted(set(seen), key=seen.index) == sorted(set(seen))  # each lane once, in one piece
    for lane in lanes:
        at = [record.at for record, _ in turns if (record.tenant, record.session, record.agent) == lane]
        assert at == sorted(at)
    which = TurnFilter(route="coder", session="s1", since=1_000_000.0 + 20, until=1_000_000.0 + 25)
    with ledger.whole_lanes(which) as found:
        part = [(int(record.id[5:]), wanted) for record, wanted in found]
    assert sorted(n for n, wanted in part if wanted) == [20, 21, 22, 24]
    assert sorted(n for n, wanted in part if not wanted) == [n for n in range(20) if n % 4 != 3]
    assert ledger.count(which) == 4
    assert ledger.request("turn-000021") == b'{"messages": [{"role": "user", "content": "21"}]}'
    assert ledger.request("turn-999999") is None
    ledger.close()
