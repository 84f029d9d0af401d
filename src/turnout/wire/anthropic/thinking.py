"""Thinking as different Messages models take it: a named effort (adaptive), a fixed token budget, or none at all.

The table, both ways: an effort becomes the budget beside it; a budget becomes the first effort whose budget is not below it.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from turnout.wire.body import fields, splice
from turnout.wire.drops import Drop, Drops

MIN_BUDGET = 1024
"""Fewest thinking tokens Messages takes."""

LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
"""Named efforts of all formats as Messages spells them; `none` switches thinking off."""

BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_000, "max": 64_000}
"""The thinking tokens that stand for an effort."""

Accepts: TypeAlias = Literal["adaptive", "budget", "none"]

_ANY = msgspec.json.Decoder()
_DISABLED = {"type": "disabled"}


def clamped_budget(budget: int, max_tokens: int) -> int | None:
    """A thinking budget Messages accepts beside this `max_tokens`: at least 1,024 and below the limit; None when both
    cannot be had, so that thinking has to be off."""
    if max_tokens <= MIN_BUDGET:
        return None
    return min(max(budget, MIN_BUDGET), max_tokens - 1)


def effort_of(budget: int) -> str:
    """The named effort that stands for a budget of thinking tokens."""
    return next((level for level, most in BUDGETS.items() if budget <= most), "max")


def fit_thinking(body: bytes, accepts: Accepts) -> tuple[bytes, tuple[Drop, ...]]:
    """A native body with its thinking said in the way the target `accepts`, and what changed. A body that fits is returned
    as it is; budgets out of range are clamped, so that a call never fails for its thinking alone."""
    top = {k: _ANY.decode(v) for k, v in fields(body).items() if k in _READ}
    thinking, config = top.get("thinking"), top.get("output_config")
    drops = Drops()
    changes: dict[str, Any] = {}
    thinking = thinking if isinstance(thinking, dict) else {}
    config = config if isinstance(config, dict) else {}
    if accepts == "none":
        if thinking and thinking.get("type") != "disabled":
            drops.drop("thinking", "the target does not think")
            changes["thinking"] = None
        if "effort" in config:
            drops.drop("output_config.effort", "the target knows no effort")
            changes["output_config"] = _without_effort(config)
    elif accepts == "budget":
        _budgeted(thinking, config, top.get("max_tokens"), changes, drops)
    elif thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        rest = {k: v for k, v in thinking.items() if k not in ("type", "budget_tokens")}
        changes["thinking"] = {"type": "adaptive", **rest}
        if "effort" not in config and isinstance(budget, int):
            changes["output_config"] = {**config, "effort": effort_of(budget)}
        drops.emulate("thinking", "the target chooses its own budget: a named effort stands for the one given")
    off = changes.get("thinking", thinking) in (None, _DISABLED)
    if "thinking" in changes and off:
        changes.update(without_thinking_edits(top))
    if not changes:
        return body, ()
    encoded = {k: None if v is None else msgspec.json.encode(v) for k, v in changes.items()}
    return splice(body, encoded), tuple(drops.found)


_READ = frozenset(("thinking", "output_config", "max_tokens", "context_management"))


def _budgeted(
    thinking: dict[str, Any], config: dict[str, Any], limit: Any, changes: dict[str, Any], drops: Drops
) -> None:
    if "effort" in config:
        changes["output_config"] = _without_effort(config)
        drops.emulate("output_config.effort", "the target knows no effort: a thinking budget stands for it")
    if thinking.get("type") not in ("adaptive", "enabled"):
        return
    level = LEVELS.get(str(config.get("effort")), "high")
    given = thinking.get("budget_tokens")
    wanted = given if isinstance(given, int) else BUDGETS[level]
    budget = clamped_budget(wanted, limit if isinstance(limit, int) else 1 << 62)
    if budget is None:
        drops.drop("thinking", f"max_tokens leaves no room for the {MIN_BUDGET} thinking tokens Messages asks for")
        changes["thinking"] = _DISABLED
    elif budget != given:
        if given is not None:
            drops.downgrade("thinking.budget_tokens", f"a thinking budget of {given} was set to {budget}")
        else:
            drops.emulate("thinking", f"the target wants a fixed budget: {budget} tokens")
        rest = {k: v for k, v in thinking.items() if k not in ("type", "budget_tokens")}
        changes["thinking"] = {"type": "enabled", "budget_tokens": budget, **rest}


def _without_effort(config: dict[str, Any]) -> dict[str, Any] | None:
    return {k: v for k, v in config.items() if k != "effort"} or None


def without_thinking_edits(top: Mapping[str, Any]) -> dict[str, Any]:
    """The change to `context_management` (decoded, in `top`) that takes out the edits Messages allows only beside thinking."""
    management = top.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    if not isinstance(management, dict) or not isinstance(edits, list):
        return {}
    kept = [e for e in edits if not (isinstance(e, dict) and str(e.get("type")).startswith("clear_thinking"))]
    if len(kept) == len(edits):
        return {}
    return {"context_management": {**management, "edits": kept} if kept or len(management) > 1 else None}
