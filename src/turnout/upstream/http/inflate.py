"""Decoding a body that was compressed although we asked for it as it is."""

import zlib

# One step gives at most this much, so that a small body cannot unfold into all of memory at once.
STEP_BYTES = 256 * 1024

ENCODINGS = frozenset((b"gzip", b"x-gzip", b"deflate"))


class Inflater:
    """A gzip or deflate stream (with or without zlib's header), bytes in, bytes out; zlib.error if it is neither."""

    __slots__ = ("_deflate", "_held", "_zlib", "pending")

    def __init__(self, encoding: bytes) -> None:
        self._deflate = encoding == b"deflate"
        self._zlib: zlib._Decompress | None = None
        self._held = b""
        self.pending = False
        """More output is ready: call `feed(b"")`."""

    def feed(self, data: bytes) -> bytes:
        """Output so far, at most STEP_BYTES at a time."""
        data = self._held + data if self._held else data
        if self._zlib is None or self._zlib.eof:
            if len(data) < 2:
                self._held = data
                self.pending = False
                return b""
            self._zlib = zlib.decompressobj(self._window(data))
        out = self._zlib.decompress(data, STEP_BYTES)
        self._held = self._zlib.unconsumed_tail or self._zlib.unused_data
        # A full step may have left output inside zlib even when all input went in.
        self.pending = len(out) == STEP_BYTES or len(self._held) > 1
        return out

    @property
    def whole(self) -> bool:
        """The stream has ended where it says it ends, or it was empty."""
        return not self._held and (self._zlib is None or self._zlib.eof)

    def _window(self, data: bytes) -> int:
        if not self._deflate:
            return 16 + zlib.MAX_WBITS
        wrapped = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
        return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
