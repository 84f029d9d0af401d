"""A file as records: streamed, with what is damaged counted and everything else kept.

Lines that are no JSON are searched for whole records in them: a cut that took a line's end away, or bytes that got between,
cost the record they hit and no other.
"""

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

LINE_AT_MOST = 64 * 2**20
"""Bytes of a line, and of a document that has no lines, beyond which it is not read into memory."""
HEAD = 256 * 1024
"""Bytes of a file that its format is told from."""
EXAMPLES = 20
"""Places named per reason; the rest is counted."""

T = TypeVar("T")
Looks: TypeAlias = Callable[[dict[str, Any]], bool]
"""Whether an object is a record of a format."""


class Skipped(Struct, frozen=True):
    """Something that was not imported. `line`: from 1, 0 = the file. `reason`: one of few; `detail`: for people."""

    file: str
    line: int
    reason: str
    detail: str = ""


class Tally(Struct):
    """What a file held. `records`: all of them, whole or not; `skipped` by reason; `ignored`: records of a known kind that hold
    no turn, by kind; `mended`: damage that cost nothing, by kind; `examples` of what was skipped."""

    records: int = 0
    skipped: dict[str, int] = {}
    ignored: dict[str, int] = {}
    mended: dict[str, int] = {}
    examples: list[Skipped] = []


class Record(Struct, frozen=True):
    """One record. `line`: where it begins, from 1. `digest`: of its text."""

    line: int
    value: dict[str, Any]
    digest: str


class Source:
    """One file. `on_skip`: told of everything that is skipped."""

    def __init__(self, path: Path, on_skip: Callable[[Skipped], None] | None = None) -> None:
        self.path = path
        self.tally = Tally(skipped={}, ignored={}, mended={}, examples=[])
        self.size = path.stat().st_size
        self.changed_at = path.stat().st_mtime
        self._on_skip = on_skip
        self._file: IO[bytes] | None = None

    @property
    def position(self) -> int:
        """How many bytes of the file were read."""
        try:
            return self._file.tell() if self._file is not None else 0
        except ValueError:
            return self.size

    def skip(self, line: int, reason: str, detail: str = "") -> None:
        """Count a record that cannot be imported."""
        self.tally.skipped[reason] = count = self.tally.skipped.get(reason, 0) + 1
        skipped = Skipped(str(self.path), line, reason, detail[:200])
        if count <= EXAMPLES:
            self.tally.examples.append(skipped)
        if self._on_skip is not None:
            self._on_skip(skipped)

    def ignore(self, kind: str) -> None:
        """Count a record that is as it should be and holds no turn."""
        self.tally.ignored[kind] = self.tally.ignored.get(kind, 0) + 1

    def mend(self, kind: str) -> None:
        """Count damage that cost nothing."""
        self.tally.mended[kind] = self.tally.mended.get(kind, 0) + 1

    def head(self) -> bytes:
        """The first bytes of the content, fewer where it is damaged."""
        with self.path.open("rb") as raw:
            unzipped = self._unzipped(raw)
            found = bytearray()
            try:
                while len(found) < HEAD and (more := unzipped.read(min(8192, HEAD - len(found)))):
                    found += more
            except (EOFError, OSError, zlib.error):
                pass
        data = bytes(found)
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16", "replace").encode()
        return data.removeprefix(b"\xef\xbb\xbf")

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Lines with their numbers from 1, as UTF-8, without NUL bytes; empty ones are left out."""
        with self.path.open("rb") as raw:
            self._file = raw
            number = 0
            stream = self._decoded(self._unzipped(raw))
            while True:
                number += 1
                try:
                    line = stream.readline(LINE_AT_MOST + 1)
                    long = len(line) > LINE_AT_MOST and not line.endswith(b"\n")
                    while long and (more := stream.readline(LINE_AT_MOST)):
                        if more.endswith(b"\n"):
                            break
                except (EOFError, OSError, zlib.error) as error:
                    self.tally.records += 1
                    self.skip(number, "the compressed file is damaged from here on", str(error))
                    return
                if not line:
                    return
                if long:
                    self.tally.records += 1
                    self.skip(number, f"a line of more than {LINE_AT_MOST // 2**20} MiB")
                    continue
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if b"\0" in line:
                    line = line.replace(b"\0", b"")
                    self.mend("NUL bytes")
                line = line.strip()
                if line:
                    yield number, line

    def texts(self) -> Iterator[tuple[int, str]]:
        """Lines as text; bytes that are not UTF-8 are read as Windows-1252."""
        for number, line in self.lines():
            yield number, self._text(line)

    def records(self, looks: Looks) -> Iterator[Record]:
        """The records of a JSON Lines file, of a JSON array, or the one that a JSON document is."""
        if self._is_document():
            yield from self._of_document(looks)
            return
        for number, line in self.lines():
            value = _decoded(line)
            if value is None:
                yield from self._found(number, line, looks)
                continue
            self.tally.records += 1
            if isinstance(value, dict):
                yield Record(number, value, _digest(line))
            else:
                self.skip(number, "not an object", line[:80].decode(errors="replace"))

    def each(self, looks: Looks, take: Callable[[Record], Iterator[T]]) -> Iterator[T]:
        """What `take` makes of every record. One whose fields are of types that nobody expects is skipped, as far as it was not
        taken."""
        for record in self.records(looks):
            try:
                yield from take(record)
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
                self.skip(record.line, "fields of unexpected types", f"{type(error).__name__}: {error}")

    def sample(self) -> list[dict[str, Any]]:
        """Objects from the beginning of the file, whole ones only, to tell its format by."""
        head = self.head()
        lines = head.split(b"\n")
        if len(head) >= HEAD:
            lines.pop()
        found = [v for line in lines[:200] if isinstance(v := _decoded(line.replace(b"\0", b"").strip()), dict)]
        if not found and self._is_document():
            whole = self._document()
            found = [v for v in (whole if isinstance(whole, list) else [whole])[:20] if isinstance(v, dict)]
        if not found and len(head) >= HEAD and len(lines) <= 1:
            found = [
                v for _, line in zip(range(1), self.lines(), strict=False) if isinstance(v := _decoded(line[1]), dict)
            ]
        if not found:
            text = head.decode(errors="replace")
            found = [value for value, _ in _objects(text, lambda _: True)][:50]
        return found

    def _is_document(self) -> bool:
        """Whether the file is one JSON value over several lines, or an array on one line."""
        head = self.head().lstrip(b"\0 \t\r\n")
        if head[:1] == b"[":
            return True
        first = head.split(b"\n", 1)[0].strip()
        return first in (b"{", b"") or (first[:1] == b"{" and first[-1:] in b",{[:" and _decoded(first) is None)

    def _document(self) -> Any:
        """The whole file as one JSON value; None when it is none, or too large to be read at once."""
        data = self._whole()
        return _decoded(data) if data is not None else None

    def _whole(self) -> bytes | None:
        parts = bytearray()
        with self.path.open("rb") as raw:
            self._file = raw
            stream = self._decoded(self._unzipped(raw))
            try:
                while more := stream.read(1 << 20):
                    parts += more
                    if len(parts) > 8 * LINE_AT_MOST:
                        return None
            except (EOFError, OSError, zlib.error):
                pass
        return bytes(parts).removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").strip()

    def _of_document(self, looks: Looks) -> Iterator[Record]:
        data = self._whole()
        if data is None:
            self.tally.records += 1
            self.skip(1, f"a document of more than {8 * LINE_AT_MOST // 2**20} MiB")
            return
        value = _decoded(data)
        if value is None:
            yield from self._found(1, data, looks)
            return
        for number, one in enumerate(value if isinstance(value, list) else [value], 1):
            self.tally.records += 1
            if isinstance(one, dict):
                yield Record(number, one, _digest(msgspec.json.encode(one)))
            else:
                self.skip(number, "not an object", str(one)[:80])

    def _found(self, number: int, line: bytes, looks: Looks) -> Iterator[Record]:
        """Whole records in a line that is damaged."""
        text = self._text(line)
        at = kept = 0
        for value, (start, end) in _objects(text, looks):
            if text[at:start].strip(_BETWEEN):
                self.tally.records += 1
                self.skip(number, "damaged: cut or overwritten", text[at : at + 80])
            at = end
            kept += 1
            self.tally.records += 1
            yield Record(number, value, _digest(text[start:end].encode(errors="replace")))
        if text[at:].strip(_BETWEEN):
            self.tally.records += 1
            self.skip(number, "damaged: cut or overwritten", text[at : at + 80])
        if kept:
            self.mend("a record in a damaged line")

    def _text(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.mend("not UTF-8")
            return _STRAY.sub(_windows, line.decode("utf-8", "surrogateescape"))

    def _unzipped(self, raw: IO[bytes]) -> IO[bytes]:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if zipped else raw

    def _decoded(self, stream: IO[bytes]) -> IO[bytes]:
        """The stream as UTF-8 where it begins like UTF-16."""
        with self.path.open("rb") as raw:
            try:
                mark = self._unzipped(raw).read(2)
            except (EOFError, OSError, zlib.error):
                return stream
        if mark not in (b"\xff\xfe", b"\xfe\xff"):
            return stream
        self.mend("UTF-16")
        return cast("IO[bytes]", _Recoded(io.TextIOWrapper(stream, "utf-16", errors="replace", newline="\n")))


class _Recoded:
    """A text stream read as UTF-8."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._stream = stream

    def readline(self, limit: int) -> bytes:
        return self._stream.readline(limit).encode(errors="replace")

    def read(self, limit: int) -> bytes:
        return self._stream.read(limit).encode(errors="replace")


_BETWEEN = "[], \t\r\n"
"""What stands between the elements of an array and is none itself."""
_START = re.compile(r'\{\s*"')
_STRAY = re.compile("[\udc80-\udcff]")
_lenient = json.JSONDecoder(strict=False)


def _windows(stray: re.Match[str]) -> str:
    return bytes([ord(stray[0]) - 0xDC00]).decode("cp1252", "replace")


def _decoded(data: bytes) -> Any:
    """A JSON value, None when it is none (and for null, which is no record either)."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _objects(text: str, looks: Looks) -> Iterator[tuple[dict[str, Any], tuple[int, int]]]:
    """Whole objects in a text that are records, with their places."""
    at = 0
    while found := _START.search(text, at):
        at = found.start() + 1
        try:
            value, end = _lenient.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and looks(value):
            yield _sound(value), (found.start(), end)
            at = end


def _sound(value: Any) -> Any:
    """A decoded value that can be encoded again: lone surrogates are replaced."""
    try:
        msgspec.json.encode(value)
        return value
    except (UnicodeEncodeError, ValueError, OverflowError):
        return msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()


def fingerprint(path: Path, *options: str) -> str:
    """A name for a file as it stands now, read in the way `options` say; the whole file is not read."""
    stat = path.stat()
    digest = blake2b(f"{stat.st_size} {stat.st_mtime_ns} {options}".encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(65536))
        file.seek(max(stat.st_size - 65536, 0), os.SEEK_SET)
        digest.update(file.read(65536))
    return digest.hexdigest()
