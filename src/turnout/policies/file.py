"""Policy files: reading and writing one version of a route."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from turnout.errors import ConfigError
from turnout.policies.policy import Policy
from turnout.policies.toml import written

HEADING = "# A version of a route. It is not edited: a change is a new version. `turnout policy show` explains it.\n"
NOT_VERSIONED = ("aliases", "description")
"""Keys of a route that stay the configuration's: they name it for clients and people, and decide nothing."""
_WHERE = re.compile(r" - at `(?:key in `)?\$\.?(.*?)`+$")
_ALLOWED = ", ".join(Policy.__struct_fields__)


def read(path: Path) -> Policy:
    """The policy in a file. Raises ConfigError with file and key."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("no such file", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Policy:
    """The policy in `text`. Raises ConfigError; its table is checked against nothing yet."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        raise ConfigError(f"not valid TOML: {error}", file=file, line=int(at[1]) if at else None) from None
    try:
        policy = msgspec.convert(document, Policy)
    except msgspec.ValidationError as error:
        raise _wrong(error, file) from None
    for key in NOT_VERSIONED:
        if key in policy.router:
            message = (
                f"`{key}` is not versioned; it belongs to [routes.{policy.route}] of the configuration, remove it here"
            )
            raise ConfigError(message, file=file, key=f"router.{key}")
    return policy


def _wrong(error: msgspec.ValidationError, file: str) -> ConfigError:
    message = str(error)
    where = _WHERE.search(message)
    message = _WHERE.sub("", message)
    hint = f"; a policy file has {_ALLOWED}" if "missing" in message or "unknown field" in message else ""
    return ConfigError(message[0].lower() + message[1:] + hint, file=file, key=where[1] if where else "")


def text_of(policy: Policy) -> str:
    """The file of a policy; `parse` undoes it."""
    tree: dict[str, Any] = {}
    for name in ("route", "digest", "made_at", "made_by", "came_from", "note"):
        value = getattr(policy, name)
        if value != "":
            tree[name] = value
    tree["router"] = policy.router
    if policy.models:
        tree["models"] = {name: _filled(model) for name, model in policy.models.items()}
    if policy.evidence is not None:
        tree["evidence"] = _filled(policy.evidence)
    return HEADING + written(tree)


def _filled(struct: msgspec.Struct) -> dict[str, Any]:
    """A struct's fields that say something, as TOML values."""
    filled: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is None or value == "" or value == () or value == {}:
            continue
        if isinstance(value, dict):
            value = {key: _filled(one) for key, one in value.items()}
        filled[name] = value
    return filled
