"""`turnout prices`: rates of a model, and what is said of a model without."""

import json

import pytest

from turnout.cli import exits
from turnout.cli.app import run


def test_rates_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["prices", "show", "claude-haiku-4-5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rates"]["cache_read"] == 0.1
    assert run(["prices", "show", "openrouter/anthropic/claude-sonnet-4.5"]) == 0
    out = capsys.readouterr().out
    assert "cache write" in out
    assert "prompts over 200,000 tokens" in out


def test_an_unknown_model_is_unpriced_not_free(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["prices", "show", "home-made"]) == exits.NOT_FOUND
    assert "no price is known for home-made" in capsys.readouterr().err
