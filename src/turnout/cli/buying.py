"""What commands that buy calls of models share."""

import os
from typing import TYPE_CHECKING

from turnout.cli import exits

if TYPE_CHECKING:
    from turnout.gateway.config import Config


def keys(config: "Config", upstreams: list[str]) -> dict[str, str | None]:
    """The keys of the upstreams that are called. Raises CommandError."""
    from turnout.gateway.config import secret, unset

    found: dict[str, str | None] = {}
    for name in upstreams:
        variable = config.upstreams[name].api_key_env
        found[name] = secret(os.environ, variable) or None
        if variable and not found[name]:
            message, hint = unset(variable)
            raise exits.CommandError(f"[upstreams.{name}] {message}", step=hint)
    return found
