"""What the commands say of escalation routes: at start-up, when a file is checked, and of recorded turns."""

import json
from pathlib import Path

import pytest

from turnout.cli.saving import saving
from turnout.cli.serve import announce
from turnout.cli.why import Option
from turnout.conversation import Usage
from turnout.gateway.checking import check
from turnout.gateway.config import load, parse
from turnout.ledger.trace import Call, TurnRecord

TOML = """
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:9"
[targets.weak]
upstream = "u"
model = "small"
price = { input = 1.0, output = 2.0 }
[targets.strong]
upstream = "u"
model = "large"
price = { input = 10.0, output = 50.0 }
[targets.judge]
upstream = "u"
model = "medium"
price = { input = 2.0, output = 4.0 }
[routes.r]
type = "escalation"
weak = "weak"
strong = "strong"
judge = "judge"
"""


def test_start_up_and_check_say_what_cannot_latch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(TOML)
    announce(load(file, None), "127.0.0.1", 4321, as_json=False)
    said = capsys.readouterr()
    assert "routes.r.confirmations" in said.out + said.err
    assert "x-turnout-session" in said.out + said.err
    _, findings = check(TOML, "f", {})
    assert [f.severity for f in findings if f.key == "routes.r.confirmations"] == ["warning"]
    file.write_text(TOML + "confirmations = 1\n")
    announce(load(file, None), "127.0.0.1", 4321, as_json=False)
    said = capsys.readouterr()
    assert "routes.r" not in said.out + said.err


def call(target: str, purpose: str, served: bool, usd: float) -> Call:
    usage = Usage(100, 10)
    return Call(target=target, model=target, purpose=purpose, served=served, usage=usage, cost_usd=usd)


def test_a_turn_that_was_done_twice_has_a_negative_saving() -> None:
    config = parse(TOML, "f", None)
    calls = (
        call("weak", "draft", False, 0.001),
        call("judge", "judge", False, 0.002),
        call("strong", "answer", True, 0.01),
    )
    record = TurnRecord(id="t", at=1.0, route="r", target="strong", calls=calls, cost_usd=0.013)
    prices = [Option("weak", "small", False, 0.001, 0.001), Option("strong", "large", True, 0.01, 0.01)]
    found = saving(record, prices, config)
    assert found is not None
    assert (found.against, found.usd) == ("strong", pytest.approx(-0.003))
    assert "-$0.003" in found.sentence
    assert "would have been cheaper" in found.sentence


def test_a_turn_the_weak_model_did_saves_what_is_left_after_the_judge() -> None:
    config = parse(TOML, "f", None)
    calls = (call("weak", "draft", True, 0.001), call("judge", "judge", False, 0.002))
    record = TurnRecord(id="t", at=1.0, route="r", target="weak", calls=calls, cost_usd=0.003)
    prices = [Option("weak", "small", True, 0.001, 0.001), Option("strong", "large", False, 0.01, 0.01)]
    found = saving(record, prices, config)
    assert found is not None
    assert found.usd == pytest.approx(0.007)
    assert json.loads(json.dumps(found.against)) == "strong"


def test_what_is_not_known_is_no_saving() -> None:
    config = parse(TOML, "f", None)
    calls = (call("weak", "draft", True, 0.001),)
    prices = [Option("strong", "large", False, None, None)]
    record = TurnRecord(id="t", at=1.0, route="r", target="weak", calls=calls, cost_usd=0.001)
    assert saving(record, prices, config) is None
    assert saving(record, [], None) is None
    latched = TurnRecord(
        id="t", at=1.0, route="r", target="strong", calls=(call("strong", "answer", True, 0.01),), cost_usd=0.01
    )
    assert saving(latched, [Option("strong", "large", True, 0.01, 0.01)], config) is None
