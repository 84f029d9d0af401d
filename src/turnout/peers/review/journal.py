"""The journal of a review: append-only JSON lines, one for each call that is over, written before the call counts.

Whatever ends the process, what the journal holds is never bought again; only calls in flight at that moment are made once more.
What it means does not depend on the order of its lines.
"""

import fcntl
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.routing.judging import FailOpen

_FINISHED = frozenset(("ok", "parse_error", "invalid_response"))
_SYNC_EVERY_S = 1.0


class Entry(Struct, frozen=True, omit_defaults=True):
    """A call that is over.

    `key`: hash of all that the reply depends on. `kind`: an answer to a question, or a score of one. `model`: who was asked.
    `author`: whose answer it was; another author's, word for word the same, has the same score. `status`: `ok`, or why there is
    nothing (`message`). `text`: the answer. `score`, `reason`, `flags`: the judge's. `cut`: the answer stopped at its limit of
    tokens. `served`: the model by its server's name. `at`: when it ended, Unix seconds. `tries`: requests that were sent.
    `input_tokens`, `output_tokens`, `usd`: what it used, as reported; `estimated`: as assumed, for want of a report. `usd` None:
    no price is known.
    """

    key: str
    kind: Literal["answer", "score"]
    question: str
    model: str
    author: str = ""
    status: Literal["ok"] | FailOpen = "ok"
    message: str = ""
    text: str = ""
    score: int | None = None
    reason: str = ""
    flags: tuple[str, ...] = ()
    cut: bool = False
    served: str = ""
    at: float = 0.0
    took_s: float = 0.0
    tries: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    estimated: bool = False

    @property
    def finished(self) -> bool:
        """Whether a model replied: what it wrote counts, for better or worse, and is not asked for again."""
        return self.status in _FINISHED


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line. `began`: UTC, to the second."""

    journal: Literal["turnout peers review"]
    version: Literal[1]
    began: str


_LINE = msgspec.json.Decoder(Entry)
_HEAD = msgspec.json.Decoder(Head)
_ENCODE = msgspec.json.Encoder().encode


def counts(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The entry that counts of each key: one that is finished before one that is not, then the earliest. The order does not
    matter."""
    best: dict[str, Entry] = {}
    for entry in entries:
        held = best.get(entry.key)
        if held is None or _rank(entry) < _rank(held):
            best[entry.key] = entry
    return best


def _rank(entry: Entry) -> tuple[bool, float, bytes]:
    return (not entry.finished, entry.at, _ENCODE(entry))


def parse(data: bytes, file: str = "") -> tuple[str, list[Entry], int]:
    """When the journal began ("": it has no whole line), its entries, and how many bytes of `data` they are.

    A last line that is torn is left out. Raises ConfigError for any other line that is none of a journal's.
    """
    whole = data.rfind(b"\n") + 1
    texts = data[:whole].split(b"\n")[:-1]
    began, entries = "", []
    for number, text in enumerate(texts, 1):
        try:
            if number == 1:
                began = _HEAD.decode(text).began
            elif text.strip():
                entries.append(_LINE.decode(text))
        except msgspec.DecodeError as error:
            step = "name another file" if number == 1 else "remove the line: what it held is bought again"
            raise ConfigError(f"not a line of a review's journal ({error}); {step}", file=file, line=number) from None
    return began, entries, whole


class Journal:
    """A journal open for writing by this process alone. `entries`: those that count, by key. `spent`: all, for the accounts."""

    def __init__(self, file: IO[bytes], began: str, entries: list[Entry]) -> None:
        self._file = file
        self._synced = time.monotonic()
        self.began = began
        self.spent = entries
        self.entries = counts(entries)

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open a journal, or begin one. Raises ConfigError where it is damaged or another process writes it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError("another review is writing this journal; wait for it", file=str(path)) from None
            file.seek(0)
            began, entries, whole = parse(file.read(), str(path))
            file.truncate(whole)
            if not began:
                began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                _write(file, _ENCODE(Head("turnout peers review", 1, began)) + b"\n")
            return cls(file, began, entries)
        except BaseException:
            file.close()
            raise

    def add(self, entry: Entry) -> None:
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


def read(path: Path) -> tuple[str, list[Entry]]:
    """When a journal began and what it holds, without touching it; ("", []) where there is none. Raises ConfigError."""
    if not path.exists():
        return "", []
    began, entries, _ = parse(path.read_bytes(), str(path))
    return began, entries


def _write(file: IO[bytes], line: bytes) -> None:
    left = line
    while left:
        left = left[file.write(left) :]
