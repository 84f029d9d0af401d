"""`turnout demo`: the whole of it, and that its decisions follow the recorded tool results."""

import json
import signal
import subprocess
import sys

import msgspec
import pytest

from turnout.cli import demo as command
from turnout.cli import exits, gateways
from turnout.cli.app import run
from turnout.demo.session import Result, lay_out, load

pytest.importorskip("anthropic")
pytest.importorskip("openai")


@pytest.fixture(scope="module")
def told():
    done = subprocess.run(
        [sys.executable, "-m", "turnout", "demo", "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_recorded_turn_is_routed_priced_and_explained(told):
    assert len(told["turns"]) == sum(len(session.steps) for session in load())
    for turn in told["turns"]:
        assert turn["target"] in ("efficient", "capable")
        assert turn["why"]
        assert turn["cost_usd"] > 0


def test_both_models_serve_all_three_formats_are_sent_and_both_are_spoken(told):
    assert {turn["target"] for turn in told["turns"]} == {"efficient", "capable"}
    assert {turn["format"] for turn in told["turns"]} == {"anthropic_messages", "openai_chat", "openai_responses"}
    assert {turn["upstream_format"] for turn in told["turns"]} == {"anthropic_messages", "openai_chat"}


def test_the_bill_is_the_sum_of_its_turns(told):
    bill = told["bill"]
    assert bill["routed"]["cost_usd"] == pytest.approx(sum(turn["cost_usd"] for turn in told["turns"]))
    assert bill["saved_usd"] == pytest.approx(bill["all_capable"]["cost_usd"] - bill["routed"]["cost_usd"])
    assert bill["all_capable"]["capable_turns"] == bill["all_capable"]["turns"]
    assert bill["all_efficient"]["capable_turns"] == 0


def test_each_run_starts_with_a_cold_cache(told):
    bill = told["bill"]
    for alone in ("all_capable", "all_efficient"):
        assert 0 < bill[alone]["cached"] < bill[alone]["prompt"]
    assert bill["all_capable"]["written"] > 0


def test_failures_move_the_work_up_and_green_tests_move_it_down(told):
    first = [turn for turn in told["turns"] if turn["session"] == told["turns"][0]["session"]]
    up = next(i for i, turn in enumerate(first) if turn["target"] == "capable")
    assert first[up]["source"] in ("override", "signals")
    assert any(turn["target"] == "efficient" for turn in first[up:])


def test_without_failures_nothing_moves_up(tmp_path):
    """The decisions are not recorded: with harmless tool results the same session stays with the efficient model."""
    session = load()[0]
    steps = tuple(
        msgspec.structs.replace(
            step,
            results=tuple(Result(f"{number} lines written") if result.error else result for result in step.results),
        )
        for number, step in enumerate(session.steps)
    )
    harmless = [msgspec.structs.replace(session, steps=steps)]
    with gateways.started(lay_out(tmp_path, harmless)) as url:
        records = command._play(url, command.ROUTED, harmless, None, 0.0)
    assert {record.target for record in records} == {"efficient"}


def test_a_person_sees_turns_reasons_and_the_bill(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "turnout", "demo", "--fast"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    for text in ("repeated_failure", "all-capable", "against all-capable", "turnout init", "turnout launch codex"):
        assert text in done.stdout


def test_without_the_extra_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "anthropic", None)
    assert run(["demo"]) == exits.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["error: this needs anthropic; pip install 'turnout[demo]'"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_served_demo_ends_with_its_gateway(end):
    command = [sys.executable, "-m", "turnout", "demo", "--json", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        url = json.loads(process.stdout.readline())["url"]
        assert gateways.alive(url)
        process.send_signal(end)
        assert process.wait(30) == exits.OK
    assert not gateways.alive(url)
