"""What was served when: promotions and roll-backs in the order they came, and what follows from them. Pure."""

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """One promotion or roll-back of a route: what its new turns are decided by from then on.

    `at`: Unix seconds. `digest`: of the version; "" = the configuration's own table. `file`, `sha256`: name and content of its
    file. `before`: the digest until then, "" = the configuration's own table. `by`: the user who did it. `forced`: it had no
    evidence.
    """

    at: float
    action: Literal["promote", "rollback"]
    route: str
    digest: str
    file: str = ""
    sha256: str = ""
    before: str = ""
    by: str = ""
    reason: str = ""
    forced: bool = False


_LINE = msgspec.json.Decoder(Change)


def read_lines(text: str, file: str) -> list[Change]:
    """The changes in a history, oldest first. Raises ConfigError with the line."""
    changes = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                changes.append(_LINE.decode(line))
            except msgspec.DecodeError as error:
                message = f"not a line of a history of policies: {error}; take the file from a backup"
                raise ConfigError(message, file=file, line=number) from None
    return changes


def line_of(change: Change) -> str:
    """A change as a line."""
    return msgspec.json.encode(change).decode() + "\n"


def promoted(changes: Iterable[Change]) -> dict[str, tuple[Change, ...]]:
    """By route the promotions that roll-backs have left standing, the served one last; empty = the configuration's own table."""
    standing: dict[str, tuple[Change, ...]] = {}
    for change in changes:
        stack = standing.get(change.route, ())
        if change.action == "promote":
            stack = (*stack, change)
        else:
            stack = stack[:-1]
            while stack and (stack[-1].digest, stack[-1].file) != (change.digest, change.file):
                stack = stack[:-1]
        standing[change.route] = stack
    return standing
