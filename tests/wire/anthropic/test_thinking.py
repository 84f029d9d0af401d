"""Thinking fitted to what a target accepts, on native bodies."""

from typing import Any

import msgspec
import pytest

from turnout.wire.anthropic.thinking import BUDGETS, Accepts, effort_of, fit_thinking

CLEARING = {"edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]}


def fitted(accepts: Accepts, **fields: Any) -> dict[str, Any]:
    raw = msgspec.json.encode({"model": "m", "max_tokens": 20_000, "messages": [], **fields})
    once, drops = fit_thinking(raw, accepts)
    assert fit_thinking(once, accepts) == (once, ())
    assert bool(drops) == (once != raw)
    value: dict[str, Any] = msgspec.json.decode(once)
    return {k: v for k, v in value.items() if k not in ("model", "max_tokens", "messages")}


ADAPTIVE = {"type": "adaptive"}


@pytest.mark.parametrize(
    ("accepts", "fields", "expected"),
    [
        ("adaptive", {}, {}),
        ("adaptive", {"thinking": ADAPTIVE}, {"thinking": ADAPTIVE}),
        ("adaptive", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        (
            "adaptive",
            {"thinking": {"type": "enabled", "budget_tokens": 500, "display": "omitted"}},
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "low"}},
        ),
        (
            "budget",
            {"thinking": ADAPTIVE, "output_config": {"effort": "medium", "x": 1}},
            {"thinking": {"type": "enabled", "budget_tokens": 8192}, "output_config": {"x": 1}},
        ),
        ("budget", {"thinking": ADAPTIVE}, {"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        (
            "budget",
            {"thinking": {"type": "enabled", "budget_tokens": 500}},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        ),
        (
            "budget",
            {"thinking": {"type": "enabled", "budget_tokens": 99_000}},
            {"thinking": {"type": "enabled", "budget_tokens": 19_999}},
        ),
        (
            "budget",
            {"thinking": ADAPTIVE, "max_tokens": 300, "context_management": CLEARING},
            {"thinking": {"type": "disabled"}, "context_management": {"edits": CLEARING["edits"][1:]}},
        ),
        ("budget", {"output_config": {"effort": "high"}}, {}),
        ("none", {"thinking": ADAPTIVE, "output_config": {"effort": "high"}, "top_k": 1}, {"top_k": 1}),
    ],
)
def test_thinking_fits_the_target(accepts: Accepts, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert fitted(accepts, **fields) == expected


def test_the_table_reads_the_same_both_ways() -> None:
    for level, budget in BUDGETS.items():
        assert effort_of(budget) == level
    assert effort_of(10**9) == "max"
