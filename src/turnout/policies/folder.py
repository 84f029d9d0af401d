"""A folder of policies: one file a version, and the history of which of them was served.

The last promotion in the history that no roll-back has undone is the pointer to what is served: one file holds both, so they
cannot disagree. It is replaced as a whole, by a rename, and only ever by itself and one more line.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.policies.file import parse, read, text_of
from turnout.policies.history import Change, line_of, promoted, read_lines
from turnout.policies.policy import Policy

HISTORY = "history.jsonl"
_LOCK = ".lock"


class Stored(Struct, frozen=True):
    """A file of the folder: the policy in it, or why there is none."""

    path: Path
    policy: Policy | None = None
    error: str = ""


class Folder:
    """The policies beside one configuration. The folder is made when something is put into it.

    Safe to be used by several processes: changes wait for one another, readers see a change as a whole or not at all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def history_file(self) -> Path:
        """The file that says what is served."""
        return self.path / HISTORY

    def history(self) -> list[Change]:
        """All changes, oldest first. Raises ConfigError."""
        try:
            text = self.history_file.read_text("utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(self.history_file)) from None
        return read_lines(text, str(self.history_file))

    def promoted(self) -> dict[str, Change]:
        """The promotion that stands, by route; a route that is absent is served by the configuration's own table."""
        return {route: stack[-1] for route, stack in promoted(self.history()).items() if stack}

    def policies(self, route: str = "") -> list[Stored]:
        """All files, oldest version first (only those of `route`, if given; then without those that cannot be read)."""
        found = [_stored(path) for path in sorted(self.path.glob("*.toml"))]
        kept = [one for one in found if not route or (one.policy is not None and one.policy.route == route)]
        return sorted(kept, key=lambda one: one.policy.made_at.timestamp() if one.policy is not None else 0.0)

    def find(self, route: str, digest: str) -> Stored | None:
        """The newest file of the version whose digest begins with `digest`. Raises ConfigError where two versions do."""
        found = [one for one in self.policies(route) if one.policy is not None and one.policy.digest.startswith(digest)]
        several = sorted({one.policy.digest for one in found if one.policy is not None})
        if len(several) > 1:
            raise ConfigError(
                f"`{digest}` is the beginning of {', '.join(several)}; give more of it", file=str(self.path)
            )
        return found[-1] if found else None

    def served(self, change: Change) -> tuple[Policy, str]:
        """The policy that a promotion put into service, and its text. Raises ConfigError when its file is gone or changed."""
        path = self.path / change.file
        remedy = f"take it from a backup, or run: turnout policy rollback {change.route} --to-configuration"
        try:
            content = path.read_bytes()
        except OSError as error:
            message = f"is promoted for route {change.route} and cannot be read ({error.strerror}); {remedy}"
            raise ConfigError(message, file=str(path)) from None
        if hashlib.sha256(content).hexdigest() != change.sha256:
            message = (
                f"was changed after it was promoted for route {change.route}, and versions are not edited; {remedy}"
            )
            raise ConfigError(message, file=str(path))
        text = content.decode("utf-8-sig")
        return parse(text, str(path)), text

    def add(self, policy: Policy) -> Path:
        """Keep a version; its file. The same one, with the same evidence, is kept once. Raises ConfigError without a digest."""
        if not policy.digest:
            raise ConfigError("has no digest yet, so it cannot be kept", key=f"policy of route {policy.route}")
        with self._alone():
            return self._add(policy)

    def _add(self, policy: Policy) -> Path:
        number = 1
        while True:
            path = self.path / f"{_slug(policy.route)}-{policy.digest}{f'-{number}' if number > 1 else ''}.toml"
            if not path.exists():
                _replace(path, text_of(policy))
                return path
            there = _stored(path).policy
            if there is not None and msgspec.structs.replace(there, made_at=policy.made_at) == policy:
                return path
            number += 1

    def promote(
        self, policy: Policy, path: Path, *, reason: str = "", by: str = "", forced: bool = False
    ) -> Change | None:
        """Serve the version in the file at `path` from now on; None when that very file is served already."""
        with self._alone():
            changes = self.history()
            stack = promoted(changes).get(policy.route, ())
            if stack and (stack[-1].digest, stack[-1].file) == (policy.digest, path.name):
                return None
            change = Change(
                at=time.time(),
                action="promote",
                route=policy.route,
                digest=policy.digest,
                file=path.name,
                sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
                before=stack[-1].digest if stack else "",
                by=by,
                reason=reason,
                forced=forced,
            )
            self._append(change)
            return change

    def rollback(self, route: str, *, to_own: bool = False, reason: str = "", by: str = "") -> Change:
        """Serve the version before again, or the configuration's own table (`to_own`, or when no version was before).

        Raises ConfigError when the configuration's own table is served already.
        """
        with self._alone():
            stack = promoted(self.history()).get(route, ())
            if not stack:
                message = f"route {route} is served by the configuration's own table; there is nothing to roll back"
                raise ConfigError(message, file=str(self.history_file))
            to = stack[-2] if len(stack) > 1 and not to_own else None
            change = Change(
                at=time.time(),
                action="rollback",
                route=route,
                digest=to.digest if to else "",
                file=to.file if to else "",
                sha256=to.sha256 if to else "",
                before=stack[-1].digest,
                by=by,
                reason=reason,
            )
            self._append(change)
            return change

    def _append(self, change: Change) -> None:
        before = self.history_file.read_text("utf-8") if self.history_file.exists() else ""
        _replace(self.history_file, before + line_of(change))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other process changes the folder."""
        import fcntl

        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _stored(path: Path) -> Stored:
    try:
        return Stored(path, read(path))
    except ConfigError as error:
        return Stored(path, error=str(error))


def _slug(route: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", route).strip("-")[:60] or "route"


def _replace(path: Path, text: str) -> None:
    """Put a file where it belongs: whole, and on the disk, or not at all."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
