"""How coding agents are pointed at a gateway: environment and files of one process, never a global setting."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

PLACEHOLDER = "turnout"
"""Sent as a key where the gateway asks for none: agents refuse to start without one."""

KEY_VARIABLE = "TURNOUT_API_KEY"
"""The variable in which Codex finds the key it sends to the gateway."""

_ELSEWHERE = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""Settings of Claude Code that would send it past the gateway, or a second key beside ours."""

_KEPT = ("AGENTS.md", "AGENTS.override.md", "prompts", "skills", "rules")
"""What a temporary CODEX_HOME borrows from the user's own: instructions, but neither login nor providers."""


class Wiring(Struct, frozen=True):
    """What one agent process needs. `env`: variables to set. `unset`: variables to remove. `config`: text of its config file,
    to be written into a folder named by the variable `home`. `login`: the user's own login belongs into that folder too."""

    env: dict[str, str]
    unset: tuple[str, ...] = ()
    home: str = ""
    config: str = ""
    login: bool = False

    def environment(self, base: Mapping[str, str], home: Path | None = None) -> dict[str, str]:
        """The process's whole environment."""
        merged = {name: value for name, value in base.items() if name not in self.unset} | self.env
        if self.home and home is not None:
            merged[self.home] = str(home)
        return merged

    def script(self) -> str:
        """Shell lines that do the same by hand."""
        lines = [f"unset {name}" for name in self.unset]
        lines += [f"export {name}={_quoted(value)}" for name, value in self.env.items()]
        if self.home:
            lines += [
                f'export {self.home}="$(mktemp -d)"',
                f"cat > \"${self.home}/config.toml\" <<'END'",
                self.config + "END",
            ]
        return "\n".join(lines)


def claude(url: str, route: str, key: str | None, small: str = "", context_window: int | None = None) -> Wiring:
    """Claude Code. `key` None: it keeps its own login, for upstreams that take the client's credentials. `small`: the route of
    its background calls. `context_window`: tokens, where known; it takes a model it does not know to have a million."""
    small = small or route
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_MODEL": route,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": route,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": route,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": small,
        "ANTHROPIC_SMALL_FAST_MODEL": small,
        # Its first system line changes with every request and would spoil the prompt caches of other vendors.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    }
    if context_window:
        env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(context_window)
    if key is None:
        return Wiring(env, unset=_ELSEWHERE[1:])
    return Wiring({**env, "ANTHROPIC_AUTH_TOKEN": key}, unset=_ELSEWHERE)


def codex(url: str, route: str, key: str | None, context_window: int | None = None) -> Wiring:
    """Codex, in a home of its own, as its login and providers are global settings. `key` None: its own login is borrowed, for
    upstreams that take the client's credentials. `context_window`: tokens, where known."""
    quoted = json.dumps
    lines = [
        f"model = {quoted(route)}",
        'model_provider = "turnout"',
        *([f"model_context_window = {context_window}"] if context_window else []),
        "",
        "[model_providers.turnout]",
        'name = "Turnout"',
        f"base_url = {quoted(url + '/v1')}",
        "requires_openai_auth = true" if key is None else f"env_key = {quoted(KEY_VARIABLE)}",
        'wire_api = "responses"',
        "supports_websockets = false",
        "",
    ]
    env = {} if key is None else {KEY_VARIABLE: key}
    return Wiring(env, unset=("OPENAI_BASE_URL",), home="CODEX_HOME", config="\n".join(lines), login=key is None)


def furnish(home: Path, wiring: Wiring, own: Path) -> None:
    """Write the agent's config file into `home` and link the user's instructions (and login, if wanted) from `own`."""
    (home / "config.toml").write_text(wiring.config, "utf-8")
    for name in (*_KEPT, "auth.json") if wiring.login else _KEPT:
        if (own / name).exists():
            (home / name).symlink_to((own / name).resolve())


def _quoted(value: str) -> str:
    """A value for a shell; `${NAME}` stays a reference to a variable."""
    return f'"{value}"' if value.startswith("${") else shlex.quote(value)
