"""The real Claude Code and Codex finish a task that needs a tool, through a gateway, whatever its upstreams speak."""

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import agents
from tests.e2e.agents import DIALECT, NAMES, PROGRAM, RUNG, needs_agents
from tests.e2e.considering import ROUTERS
from tests.e2e.vendors import FORMATS, MAIN_ANSWER, SHELL_ANSWER, SHELL_COMMAND, Vendors, tool_results
from tests.recorded import ROOT
from tests.running import Running, running, script
from turnout.ledger.store import Ledger

JSON = dict[str, Any]
pytestmark = [pytest.mark.agents, needs_agents]


@pytest.fixture(scope="module")
def vendors() -> Iterator[Vendors]:
    with Vendors() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(vendors: Vendors, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(toml(vendors.url), tmp_path_factory.mktemp("agents")) as served:
        yield served


def toml(url: str) -> str:
    """Routes to the plays of an agent's models, for each upstream format."""
    parts = []
    for form in FORMATS:
        parts.append(f'[upstreams.{form}]\nformat = "{form}"\nbase_url = "{url}"\n')
        for play in ("agent", "delegating"):
            parts.append(
                f'[targets."{play}-{form}"]\nupstream = "{form}"\nmodel = "{play}"\nprice = {{ input = 1.0, output = 10.0, '
                f'cache_read = 0.1, cache_write = 1.25 }}\n[routes."{play}-{form}"]\ntype = "passthrough"\n'
                f'target = "{play}-{form}"\n'
            )
        # The same play, its delegated work by a target and an affinity of its own.
        parts.append(
            f'[targets."apart-{form}"]\nupstream = "{form}"\nmodel = "delegating"\n'
            f'[routes."apart-{form}"]\ntype = "affinity"\n'
            f'router = {{ type = "random", targets = ["delegating-{form}"] }}\n'
            f'subagents = {{ type = "affinity", router = {{ type = "random", targets = ["apart-{form}"] }} }}\n'
        )
    return "".join(parts)


PAIRS = list(itertools.product(NAMES, FORMATS))


def turns_since(gateway: Running, before: int) -> list[Any]:
    """The turns after the first `before`, oldest first."""
    turns = gateway.settled()
    return list(reversed(turns[: len(turns) - before]))


@pytest.mark.parametrize(("agent", "theirs"), PAIRS)
def test_an_agent_finishes_its_task(
    gateway: Running, vendors: Vendors, tmp_path: Path, agent: str, theirs: str
) -> None:
    before, sent = len(gateway.settled()), len(vendors.requests)
    ran = agents.run(agent, gateway.url, f"agent-{theirs}", tmp_path)
    assert (ran.code, ran.said) == (0, SHELL_ANSWER), ran
    form, _, body = vendors.requests[-1]
    assert form == theirs
    assert len(vendors.requests) == sent + 2
    (result,) = tool_results(theirs, body)
    assert "hello-from-tool" in result
    turns = turns_since(gateway, before)
    assert [turn.stop for turn in turns] == ["tool_calls", "end"]
    assert len({turn.session for turn in turns}) == 1
    for turn in turns:
        assert (turn.ended, turn.format, turn.upstream_format) == ("ok", DIALECT[agent], theirs)
        assert (turn.rung, turn.agent_program) == (RUNG[agent], PROGRAM[agent])
        assert (turn.agent, turn.agent_kind, turn.agent_parent) == ("", "main", "")
        assert turn.cost_usd == pytest.approx((1130 * 1.0 + 60 * 0.1 + 10 * 1.25 + 12 * 10.0) / 1e6)
    if DIALECT[agent] == theirs:
        assert all(turn.drops == 0 for turn in turns)
    else:
        assert "x-anthropic-billing-header" not in json.dumps(body)


@pytest.mark.parametrize(("agent", "theirs"), PAIRS)
def test_a_sub_agent_has_a_lane_of_its_own(
    gateway: Running, vendors: Vendors, tmp_path: Path, agent: str, theirs: str
) -> None:
    before = len(gateway.settled())
    ran = agents.run(agent, gateway.url, f"delegating-{theirs}", tmp_path)
    turns = turns_since(gateway, before)
    assert (ran.code, ran.said) == (0, MAIN_ANSWER), ran
    assert len({turn.session for turn in turns}) == 1
    delegated = [turn for turn in turns if turn.agent_kind == "subagent"]
    main = [turn for turn in turns if turn.agent_kind == "main"]
    assert [turn.stop for turn in delegated] == ["tool_calls", "end"]
    assert len(main) == (2 if agent == "claude" else 3)
    assert {turn.agent for turn in main} == {""}
    (sub_agent,) = {turn.agent for turn in delegated}
    assert sub_agent


@pytest.mark.parametrize(("agent", "theirs"), PAIRS)
def test_delegated_work_is_decided_apart(
    gateway: Running, vendors: Vendors, tmp_path: Path, agent: str, theirs: str
) -> None:
    before = len(gateway.settled())
    ran = agents.run(agent, gateway.url, f"apart-{theirs}", tmp_path)
    turns = turns_since(gateway, before)
    assert (ran.code, ran.said) == (0, MAIN_ANSWER), ran
    seen = {kind: [turn for turn in turns if turn.agent_kind == kind] for kind in ("main", "subagent")}
    assert {turn.target for turn in seen["main"]} == {f"delegating-{theirs}"}
    assert {turn.target for turn in seen["subagent"]} == {f"apart-{theirs}"}
    assert [turn.why.source for turn in seen["main"]] == ["random"] + ["pin"] * (len(seen["main"]) - 1)
    assert [(turn.why.source, turn.why.place) for turn in seen["subagent"]] == [
        ("random", "subagents/router"),
        ("pin", "subagents"),
    ]


SHELLS: dict[str, JSON] = {
    "claude": {"name": "Bash", "arguments": {"command": SHELL_COMMAND, "description": "Say hello"}},
    "codex": {"name": "exec_command", "arguments": {"cmd": SHELL_COMMAND}},
}


@pytest.mark.parametrize("agent", NAMES)
def test_what_an_agent_calls_done_is_reviewed(tmp_path: Path, agent: str) -> None:
    """The model stops too early; what the agent prints in the end is what the advisor's plan led to."""
    again = {"contains": "was reviewed and held back", "text": SHELL_ANSWER}
    script(tmp_path, "executor.jsonl", again, {"text": "Trying.", "calls": [SHELLS[agent]]}, {"text": "All done."})
    script(tmp_path, "advisor.jsonl", {"text": "REDO\nSay what the shell said."})
    parts = [
        f'[upstreams.{name}]\nformat = "{form}"\nscript = "{name}.jsonl"\n'
        f'[targets.{name}]\nupstream = "{name}"\nmodel = "played"\n'
        for name, form in (("executor", DIALECT[agent]), ("advisor", "openai_chat"))
    ]
    parts.append(
        '[routes.advised]\ntype = "advisor"\nexecutor = "executor"\nadvisor = "advisor"\nbackground = "executor"\n'
    )
    with running("".join(parts), tmp_path) as gateway:
        (tmp_path / "home").mkdir()
        ran = agents.run(agent, gateway.url, "advised", tmp_path / "home")
        turns = [turn for turn in reversed(gateway.settled()) if turn.agent_kind == "main"]
    assert (ran.code, ran.said) == (0, SHELL_ANSWER), ran
    assert [(turn.why.source, turn.why.rule) for turn in turns if turn.why] == [("fixed", ""), ("advisor", "redo")]
    assert [call.purpose for call in turns[-1].calls] == ["draft", "advisor", "answer"]


@pytest.mark.parametrize("agent", NAMES)
def test_an_agent_takes_scripted_targets_for_models(tmp_path: Path, agent: str) -> None:
    lines: list[JSON] = [{"reasoning": "A shell will do.", "text": "Trying.", "calls": [SHELLS[agent]]}]
    name = script(tmp_path, "script.jsonl", *lines, {"text": SHELL_ANSWER})
    parts = [
        f'[upstreams.{form}]\nformat = "{form}"\nscript = "{name}"\n[targets.{form}]\nupstream = "{form}"\n'
        f'model = "played"\n[routes.{form}]\ntype = "passthrough"\ntarget = "{form}"\n'
        for form in FORMATS
    ]
    with running("".join(parts), tmp_path) as gateway:
        for form in FORMATS:
            before = len(gateway.settled())
            ran = agents.run(agent, gateway.url, form, tmp_path / form)
            assert (ran.code, ran.said) == (0, SHELL_ANSWER), (form, ran)
            assert [(turn.stop, turn.ended) for turn in turns_since(gateway, before)] == [
                ("tool_calls", "ok"),
                ("end", "ok"),
            ]


@pytest.mark.parametrize("agent", NAMES)
def test_launch_runs_the_agent_on_a_gateway_of_its_own(vendors: Vendors, tmp_path: Path, agent: str) -> None:
    ledger = f"sqlite:///{tmp_path / 'turns.db'}"
    file = tmp_path / "turnout.toml"
    file.write_text(f'{toml(vendors.url)}[ledger]\nurl = "{ledger}"\n')
    arguments = agents.command(agent)[1:]
    argv = [sys.executable, "-m", "turnout", "launch", agent, "--config", str(file), "--route", "agent-openai_chat"]
    env = agents.clean(tmp_path) | {"PYTHONPATH": str(ROOT / "src")}
    ran = agents.ended(agent, [*argv, "--", *arguments], env, tmp_path, within_s=120)
    assert (ran.code, ran.said) == (0, SHELL_ANSWER), ran
    assert not list(tmp_path.glob(".codex/config.toml"))
    with closing(Ledger.read(ledger)) as opened:
        turns = opened.turns().turns
    assert [(turn.route, turn.agent_program, turn.ended) for turn in turns] == [
        ("agent-openai_chat", PROGRAM[agent], "ok")
    ] * 2


SILENCE_S = 120


@pytest.mark.skipif(
    "true" not in (os.environ.get("CI"), os.environ.get("TURNOUT_LONG", "").replace("1", "true")),
    reason="takes two minutes: set TURNOUT_LONG=1",
)
def test_agents_sit_through_two_minutes_of_silence(tmp_path: Path) -> None:
    cases = list(itertools.product(NAMES, ("considering", "passthrough"), (None, "openai_chat")))
    with Vendors() as vendors:
        vendors.silent_s = SILENCE_S
        parts = [f'[upstreams.{form}]\nformat = "{form}"\nbase_url = "{vendors.url}"\n' for form in FORMATS]
        for agent, router, form in cases:
            name = f"{agent}-{router}-{form or 'own'}"
            parts.append(
                f'[targets."{name}"]\nupstream = "{form or DIALECT[agent]}"\nmodel = "silent#{name}"\n'
                f'[routes."{name}"]\ntype = "{router}"\ntarget = "{name}"\n'
            )
        with running("".join(parts), tmp_path, routers=ROUTERS) as gateway:
            with ThreadPoolExecutor(len(cases)) as pool:
                names = [f"{agent}-{router}-{form or 'own'}" for agent, router, form in cases]
                runs = [
                    pool.submit(agents.run, name.partition("-")[0], gateway.url, name, tmp_path / name, within_s=300)
                    for name in names
                ]
            for name, run in zip(names, runs, strict=True):
                ran = run.result()
                assert (ran.code, ran.said) == (0, SHELL_ANSWER), (name, ran)
            turns = gateway.settled()
            assert {turn.ended for turn in turns} == {"ok"}
            asked = Counter(body["model"] for _, _, body in vendors.requests)
    # One silent turn and one with the tool's result: nobody gave up and asked again.
    assert asked == {f"silent#{name}": 2 for name in names}
    assert sum(turn.total_s >= SILENCE_S for turn in turns) == len(cases)
