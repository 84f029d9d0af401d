"""A journal of calls: append-only JSON lines, one for each call that is over, written before the call counts.

Whatever ends the process, what the journal holds is never bought again; only calls in flight at that moment are made once more.
What it means does not depend on the order of its lines.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError

_SYNC_EVERY_S = 1.0


class Bought(Protocol):
    """A call that is over. `key`: hash of all that the reply depends on. `at`: when it ended, Unix seconds. `finished`: whether a
    model replied; what it wrote counts then, for better or worse, and is not asked for again. The rest is for the accounts:
    requests that were sent, tokens and money used (None: no price is known)."""

    @property
    def key(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def finished(self) -> bool: ...
    @property
    def tries(self) -> int: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def usd(self) -> float | None: ...


E = TypeVar("E", bound=Bought)


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line. `began`: UTC, to the second."""

    journal: str
    version: int
    began: str


class Form(Generic[E]):
    """What the journals of one kind of work hold. `name`: in their first lines. `one`: what writes them, "a review". `entry`: the
    type of their lines."""

    def __init__(self, name: str, one: str, entry: type[E]) -> None:
        self.name = name
        self.one = one
        self.decode: Callable[[bytes], E] = msgspec.json.Decoder(entry).decode


_VERSION = 1
_HEAD = msgspec.json.Decoder(Head)
_ENCODE = msgspec.json.Encoder().encode


def counts(entries: Iterable[E]) -> dict[str, E]:
    """The entry that counts of each key: one that is finished before one that is not, then the earliest. The order does not
    matter."""
    best: dict[str, E] = {}
    for entry in entries:
        held = best.get(entry.key)
        if held is None or _rank(entry) < _rank(held):
            best[entry.key] = entry
    return best


def _rank(entry: Bought) -> tuple[bool, float, bytes]:
    return (not entry.finished, entry.at, _ENCODE(entry))


def parse(form: Form[E], data: bytes, file: str = "") -> tuple[str, list[E], int]:
    """When the journal began ("": it has no whole line), its entries, and how many bytes of `data` they are.

    A last line that is torn is left out. Raises ConfigError for any other line that is none of such a journal's.
    """
    whole = data.rfind(b"\n") + 1
    texts = data[:whole].split(b"\n")[:-1]
    began, entries = "", []
    for number, text in enumerate(texts, 1):
        try:
            if number == 1:
                began = _began(form, text)
            elif text.strip():
                entries.append(form.decode(text))
        except msgspec.DecodeError as error:
            step = "name another file" if number == 1 else "remove the line: what it held is bought again"
            raise ConfigError(f"not a line of {form.one}'s journal ({error}); {step}", file=file, line=number) from None
    return began, entries, whole


def _began(form: Form[E], line: bytes) -> str:
    head = _HEAD.decode(line)
    if (head.journal, head.version) != (form.name, _VERSION):
        raise msgspec.ValidationError(f"it says {head.journal!r}, version {head.version}"[:120])
    return head.began


class Journal(Generic[E]):
    """A journal open for writing by this process alone. `entries`: those that count, by key. `spent`: all, for the accounts."""

    def __init__(self, file: IO[bytes], began: str, entries: list[E]) -> None:
        self._file = file
        self._synced = time.monotonic()
        self.began = began
        self.spent = entries
        self.entries = counts(entries)

    @classmethod
    def open(cls, path: Path, form: Form[E]) -> "Journal[E]":
        """Open a journal, or begin one. Raises ConfigError where it is damaged or another process writes it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"{form.one.replace('a ', 'another ', 1)} is writing this journal; wait for it", file=str(path)
                ) from None
            file.seek(0)
            began, entries, whole = parse(form, file.read(), str(path))
            file.truncate(whole)
            if not began:
                began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                _write(file, _ENCODE(Head(form.name, _VERSION, began)) + b"\n")
            return cls(file, began, entries)
        except BaseException:
            file.close()
            raise

    def add(self, entry: E) -> None:
        """Keep a call that is over: it is in the file when this returns. Raises OSError."""
        _write(self._file, _ENCODE(entry) + b"\n")
        now = time.monotonic()
        if now - self._synced > _SYNC_EVERY_S:
            # A killed process loses nothing that was written; a machine without power loses this last second.
            os.fsync(self._file.fileno())
            self._synced = now
        self.spent.append(entry)
        held = self.entries.get(entry.key)
        if held is None or _rank(entry) < _rank(held):
            self.entries[entry.key] = entry

    def close(self) -> None:
        """Make it durable and let others write it."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()


def read(form: Form[E], path: Path) -> tuple[str, list[E]]:
    """When a journal began and what it holds, without touching it; ("", []) where there is none. Raises ConfigError."""
    if not path.exists():
        return "", []
    began, entries, _ = parse(form, path.read_bytes(), str(path))
    return began, entries


def _write(file: IO[bytes], line: bytes) -> None:
    left = line
    while left:
        left = left[file.write(left) :]
