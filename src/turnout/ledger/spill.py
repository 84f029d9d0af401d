"""Where rows go while the database cannot take them and memory is full: a file of rows, read back when it can.

A file belongs to one ledger, held by a lock, so that a starting process adopts what a dead one left and never what a living
one owns. A row is written by one system call, so a killed process leaves at most one half row, at the end, which is skipped.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from turnout.ledger.rows import Parts, Row

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[tuple[Any, ...], list[tuple[bytes, str, bytes]]])


class SpillFile:
    """A locked file of rows."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self.rows = 0

    def write(self, row: Row, parts: Parts) -> None:
        """Add a row whole or not at all. Raises OSError."""
        data = _encoder.encode((row, parts))
        data = len(data).to_bytes(8, "big") + data
        size = os.fstat(self._file).st_size
        if os.write(self._file, data) != len(data):
            os.ftruncate(self._file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.rows += 1

    def read(self) -> Iterator[tuple[Row, Parts]]:
        """The rows, oldest first."""
        with self._path.open("rb") as file:
            while len(head := file.read(8)) == 8:
                size = int.from_bytes(head, "big")
                data = file.read(size)
                if len(data) < size:
                    return
                yield _decoder.decode(data)

    def close(self, done: bool) -> None:
        """Let go of it; `done`: its rows are in the database and the file goes. Else another process may adopt it."""
        if done:
            self._path.unlink(missing_ok=True)
        os.close(self._file)


class Spill:
    """The overflow of one ledger. `stem`: path its files begin with."""

    def __init__(self, stem: Path) -> None:
        self._stem = stem

    def new(self) -> SpillFile:
        """A new file, locked. Raises OSError."""
        self._stem.parent.mkdir(parents=True, exist_ok=True)
        while True:
            path = self._stem.with_name(f"{self._stem.name}-{secrets.token_hex(6)}.spill")
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_nlink:  # else another process took the empty file for an orphan before it was locked
                return SpillFile(path, file)
            os.close(file)

    def orphans(self) -> Iterator[SpillFile]:
        """Files that dead processes left, each locked until it is closed."""
        for path in sorted(self._stem.parent.glob(f"{self._stem.name}-*.spill")):
            try:
                file = os.open(path, os.O_RDWR)
            except OSError:
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(file)
                continue
            yield SpillFile(path, file)
