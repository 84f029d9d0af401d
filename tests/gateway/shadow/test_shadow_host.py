"""Shadows beside a served gateway: they decide from what the turn was told, and nothing they do is felt."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from msgspec import Struct
from sqlalchemy.exc import OperationalError
from tests.running import Running, running, script

from turnout.gateway.shadow import host
from turnout.ledger.shadows import ShadowFigures
from turnout.ledger.store import Ledger
from turnout.routing import Forward, Passthrough, Stage, TargetName, Turn

FAILED = "FAILED tests/test_a.py::test_a - AssertionError: 1 != 2\n==== 1 failed, 2 passed in 0.12s ===="
TOML = """
[upstreams.u]
format = "openai_chat"
script = "replies.jsonl"
[targets.small]
upstream = "u"
model = "small"
price = { input = 1.0, output = 5.0, cache_read = 0.1 }
[targets.large]
upstream = "u"
model = "large"
price = { input = 10.0, output = 50.0, cache_read = 1.0 }
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
[routes.other]
type = "passthrough"
target = "small"
[shadows.large]
route = "coder"
type = "passthrough"
target = "large"
"""


class Broken(Struct, frozen=True, tag="broken", tag_field="type", forbid_unknown_fields=True):
    """Raises, or decides without saying why, which no router may."""

    target: TargetName
    beyond: bool = False

    def route(self, turn: Turn) -> Forward:
        if self.beyond:
            return Forward(self.target, None)  # type: ignore[arg-type]  # that is what is wrong with it
        raise ValueError("the router is broken")

    @property
    def otherwise(self) -> TargetName:
        return self.target


def turn(gateway: Running, session: str, steps: int, route: str = "coder") -> str:
    """The target that served a turn whose tests have failed so often."""
    messages: list[object] = [{"role": "user", "content": "make the tests pass"}]
    for n in range(steps):
        function = {"name": "Bash", "arguments": json.dumps({"command": "pytest tests/test_a.py"})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": FAILED},
        ]
    body = json.dumps({"model": route, "messages": messages}).encode()
    headers = {"content-type": "application/json", "x-turnout-session": session}
    with urlopen(Request(f"{gateway.url}/v1/chat/completions", body, headers), timeout=20) as response:
        return str(response.headers["x-turnout-target"])


def figures(gateway: Running) -> dict[str, ShadowFigures]:
    gateway.settled()
    gateway.beside()
    ledger = Ledger.read(gateway.ledger_url)
    try:
        return {one.shadow: one for one in ledger.shadow_figures()}
    finally:
        ledger.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script(tmp_path, "replies.jsonl", {"text": "I try again."})
    return tmp_path


def test_agreement_flips_shares_and_predicted_cost_are_kept(folder: Path) -> None:
    with running(TOML, folder) as gateway:
        served = [turn(gateway, "s", steps) for steps in range(4)]
        turn(gateway, "s", 0, "other")
        found = figures(gateway)["large"]
        assert (found.turns, found.decided, found.agreed) == (4, 4, served.count("large"))
        assert found.now == {"large": 4}
        assert found.was == {"small": served.count("small"), "large": served.count("large")}
        assert found.flipped == {"small -> large": served.count("small")}
        assert found.compared == 4
        assert found.usd > found.live_usd > 0
        ledger = Ledger.read(gateway.ledger_url)
        flips = ledger.shadow_flips("large")
        assert [flip.turn for flip in flips] == [
            t.id for t in gateway.turns() if t.target == "small" and t.route == "coder"
        ]
        assert ledger.shadow_flips("large", limit=1) == flips[:1]
        ledger.close()
        assert flips[0].was.sentence
        assert flips[0].now.source == "fixed"
        scraped = gateway.gateway.metrics.render().decode()
        assert 'turnout_shadow_turns_total{result="agreed",route="coder",shadow="large"}' in scraped
        assert 'turnout_shadow_predicted_usd_total{route="coder",shadow="large",way="live"}' in scraped
        calls = [call for record in gateway.turns() for call in record.calls]
        assert len(calls) == 5  # none but those that answered
    # What was decided outlives the process, and goes on.
    with running(TOML, folder) as gateway:
        turn(gateway, "s", 4)
        assert figures(gateway)["large"].turns == 5


def test_a_reload_takes_shadows_on_and_off(folder: Path) -> None:
    file = folder / "turnout.toml"
    with running(TOML[: TOML.index("[shadows")], folder) as gateway:
        turn(gateway, "s", 0)
        assert figures(gateway) == {}
        without = file.read_text()
        file.write_text(without + TOML[TOML.index("[shadows") :])
        assert gateway.reload()
        turn(gateway, "s", 1)
        assert figures(gateway)["large"].turns == 1
        file.write_text(without)
        assert gateway.reload()
        turn(gateway, "s", 2)
        assert figures(gateway)["large"].turns == 1


def test_a_shadow_takes_over_what_is_remembered_of_lanes_under_way(folder: Path) -> None:
    """A stage router that begins in the middle of a hold holds on: it agrees from its first turn."""
    with running(TOML, folder) as gateway:
        assert turn(gateway, "s", 3) == "large"
        figures(gateway)
        file = folder / "turnout.toml"
        file.write_text(file.read_text() + '[shadows.same]\nroute = "coder"\nas = "coder"\n')
        assert gateway.reload()
        for steps in (4, 5, 6):
            turn(gateway, "s", steps)
        found = figures(gateway)["same"]
        assert (found.turns, found.agreed) == (3, 3)


def test_a_shadow_that_raises_goes_to_its_last_resort_and_touches_no_turn(folder: Path) -> None:
    beyond = TOML + '[shadows.beyond]\nroute = "coder"\ntype = "broken"\ntarget = "small"\nbeyond = true\n'
    toml = beyond + '[shadows.broken]\nroute = "coder"\ntype = "broken"\ntarget = "large"\n'
    with running(toml, folder, routers=Stage | Passthrough | Broken) as gateway:
        served = [turn(gateway, "s", steps) for steps in range(3)]
        found = figures(gateway)
        assert found["broken"].now == {"large": 3}
        assert found["large"].turns == 3
        assert "beyond" not in found
        assert {counts.name: counts.faults for counts in gateway.gateway.shadows.counts()}["beyond"] == 3
        assert [t.target for t in reversed(gateway.turns())] == served
        assert all(t.ended == "ok" for t in gateway.turns())


def test_a_full_queue_drops_counted_and_what_follows_is_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml = TOML + '[shadows.stage]\nroute = "coder"\nas = "coder"\n'
    with running(toml, folder) as gateway:
        turn(gateway, "s", 0)
        gateway.settled()
        gateway.beside()
        monkeypatch.setattr(host, "QUEUED_AT_MOST", 0)
        turn(gateway, "s", 1)
        gateway.settled()
        monkeypatch.undo()
        turn(gateway, "s", 2)
        turn(gateway, "new", 0)
        turn(gateway, "s", 3)
        found = figures(gateway)
        assert found["stage"].unsupported == {"memory": 2}
        assert found["stage"].agreed == 2
        assert found["large"].decided == 4  # it remembers nothing, so it knows all it needs
        assert {c.name: c.dropped for c in gateway.gateway.shadows.counts()} == {"large": 1, "stage": 1}


def test_a_ledger_that_does_not_take_them_gets_them_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(TOML, folder) as gateway:
        turn(gateway, "s", 0)
        gateway.settled()
        gateway.beside()
        shadows, ledger = gateway.gateway.shadows, gateway.gateway.ledger
        add, tried = ledger.add_shadows, []

        def refused(rows: object) -> None:
            tried.append(rows)
            if len(tried) < 2:
                raise OperationalError("INSERT", {}, Exception("database is locked"))
            add(rows)  # type: ignore[arg-type]

        monkeypatch.setattr(ledger, "add_shadows", refused)
        turn(gateway, "s", 1)
        assert figures(gateway)["large"].turns == 2
        assert len(tried) >= 2
        assert shadows.waiting == 0


def test_without_capture_no_words_of_a_judge_are_kept(folder: Path) -> None:
    with running(TOML, folder, capture="none") as gateway:
        turn(gateway, "s", 0)
        assert figures(gateway)["large"].turns == 1


@pytest.mark.parametrize("store", ["memory", "redis"])
def test_memory_lives_where_sessions_do_apart_from_what_serves(
    store: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    """A stage router in the shadow of another goes its own way, hold by hold, wherever sessions are kept."""
    url = request.getfixturevalue("redis_url") if store == "redis" else "memory:"
    eager = (
        '[shadows.eager]\nroute = "coder"\ntype = "stage"\nefficient = "small"\ncapable = "large"\nthreshold = 0.1\n'
    )
    same = '[shadows.same]\nroute = "coder"\nas = "coder"\n'
    with running(f'{TOML}{eager}{same}[sessions]\nurl = "{url}"\n', folder) as gateway:
        served = [turn(gateway, "s", steps) for steps in range(5)]
        found = figures(gateway)
        assert found["same"].agreed == found["same"].turns == 5
        assert found["same"].usd == pytest.approx(found["same"].live_usd)
        assert found["eager"].decided == 5
        assert found["eager"].now["large"] >= served.count("large")
        assert not any(counts.faults for counts in gateway.gateway.shadows.counts())
        memory = gateway.turns()[0].memory
        assert not any(name.startswith("beside/") for name in memory)
