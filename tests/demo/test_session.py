"""The recorded sessions hang together, and their script plays them whoever is asked."""

import msgspec
import pytest

from turnout.demo.session import LOST, Session, Step, lay_out, load, script
from turnout.gateway.config import load as load_config
from turnout.upstream.scripted import ScriptedCall

SESSIONS = load()


def test_every_official_client_has_a_session():
    assert {session.client for session in SESSIONS} == {"anthropic", "openai_chat", "openai_responses"}


def test_every_step_is_told_apart_by_what_comes_before_it():
    """The script is one for all sessions and both models: no two steps may answer the same request."""
    lines = script(SESSIONS)[:-1]
    asked = [(line.turn, line.contains) for line in lines]
    assert len(set(asked)) == len(asked) == sum(len(session.steps) for session in SESSIONS)
    for line in lines:
        first = next(other for other in lines if other.fits(line.turn or 0, "", line.contains or ""))
        assert first is line


def test_anything_else_gets_a_plain_answer():
    last = script(SESSIONS)[-1]
    assert not last.conditional
    assert last.text == LOST


@pytest.mark.parametrize(
    "steps",
    [
        (Step("hello"),),
        (Step("a", user="u", calls=(ScriptedCall("x"),)),),
        (Step("a", user="u"), Step("b")),
    ],
)
def test_a_session_that_does_not_hang_together_is_refused(steps):
    with pytest.raises(ValueError, match="step"):
        Session("anthropic", "", "", (), steps)


def test_the_configuration_is_sound(tmp_path):
    config = load_config(lay_out(tmp_path, SESSIONS), {})
    assert set(config.routes) == {"coder", "all-capable", "all-efficient"}
    for name, target in config.targets.items():
        plain = config.targets[msgspec.convert(str(name).removesuffix("_alone"), type(name))]
        assert (target.model, target.price_id) == (plain.model, plain.price_id)
