"""The digest of what a route decides by: recorded with every turn, and the identity of a version."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from turnout.policies.file import NOT_VERSIONED
from turnout.policies.policy import ModelBehind


def identity(table: Mapping[str, Any], models: Mapping[str, ModelBehind], *added: Any) -> str:
    """The digest of a route's effective table (defaults filled in) and the models behind its targets; names for people are left
    out. `added`: whatever else shapes how its turns are read."""
    decides = {key: value for key, value in table.items() if key not in NOT_VERSIONED}
    behind = {name: (one.model, one.format, one.prompt, one.effort) for name, one in models.items()}
    return digest((decides, behind, *added))


def digest(value: Any) -> str:
    """A short digest of anything JSON can hold; the order of keys does not matter."""
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=6).hexdigest()
