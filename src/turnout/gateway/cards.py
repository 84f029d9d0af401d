"""Model cards for Codex: what it must know of a route to work with it as with a model of its own."""

from pathlib import Path
from typing import Any

from turnout.gateway.config import Config
from turnout.gateway.routes import Route
from turnout.upstream.target import Target

INSTRUCTIONS = (Path(__file__).parent / "codex.md").read_text("utf-8")
"""The system prompt. A card without one is refused by Codex, and it has no way to say: keep your own."""

_EFFORTS = (
    ("low", "Fast, with little reasoning"),
    ("medium", "Speed and depth in balance"),
    ("high", "More reasoning for hard problems"),
)


_ITS_OWN = ("gpt-", "codex-")
"""Codex has better cards of its own for names that begin so."""


def cards(config: Config, names: list[str]) -> list[dict[str, Any]]:
    """A card per model name, in the schema of Codex's own catalogue. The first is what Codex picks unasked."""
    routes = config.by_model()
    ours = [name for name in names if not name.startswith(_ITS_OWN)]
    return [card(config, name, routes[name], place) for place, name in enumerate(ours, 1)]


def card(config: Config, name: str, route: Route, priority: int) -> dict[str, Any]:
    """What every target of the route can do: any of them may serve the next turn."""
    targets = [config.targets[target] for target in dict.fromkeys((*route.targets, route.falls_to))]
    window = _window(targets)
    return {
        "slug": name,
        "display_name": name,
        "description": route.description or f"Turnout route {route.name}",
        "default_reasoning_level": None,
        "supported_reasoning_levels": [
            {"effort": effort, "description": text} for effort, text in _EFFORTS if _all_can(targets, "reasoning")
        ],
        "shell_type": "unified_exec",
        "visibility": "list",
        "supported_in_api": True,
        "priority": priority,
        "upgrade": None,
        "availability_nux": None,
        "base_instructions": INSTRUCTIONS,
        "supports_reasoning_summaries": True,
        "support_verbosity": False,
        "default_verbosity": None,
        # Freeform is what Codex gives its own models; on the way to another format it becomes a function and is turned back.
        "apply_patch_tool_type": "freeform",
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "supports_parallel_tool_calls": True,
        **({} if window is None else {"context_window": window, "max_context_window": window}),
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"] if _all_can(targets, "images") else ["text"],
    }


def _window(targets: list[Target]) -> int | None:
    """The smallest context window, in tokens; None unless every target declares one."""
    known = [target.context_window for target in targets if target.context_window is not None]
    return min(known) if known and len(known) == len(targets) else None


def _all_can(targets: list[Target], what: str) -> bool:
    return all(target.capabilities is None or what in target.capabilities for target in targets)
