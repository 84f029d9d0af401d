"""Responses that clients continue by id, in Redis: any gateway continues what another one answered."""

import asyncio
import hashlib
import zlib

import msgspec

from turnout.errors import ClientError
from turnout.sessions.link import Away, Link
from turnout.sessions.responses import StoredResponse

_JSON = msgspec.json.Encoder()
_READ = msgspec.json.Decoder(StoredResponse)
_PREFIX = b"turnout:response:"
"""Of the keys; what is kept under an item's id is the key of its response."""
_LEVEL = 1
"""Of compression: the fast end; transcripts shrink to about a quarter all the same."""
_ELSEWHERE = 128 * 1024
"""Bytes from which (de)compressing is left to a thread: below it would take longer to get there."""


class RedisResponses:
    """Responses by id in the server of `link`, compressed.

    `ttl_s`: how long after its last use an id can be continued. `max_entry_bytes`: a transcript that is larger when compressed
    is not kept; the client must then send the whole conversation.
    """

    def __init__(self, link: Link, *, ttl_s: float = 24 * 3600.0, max_entry_bytes: int = 4 << 20) -> None:
        self._link = link
        self._ttl_ms = max(1, int(ttl_s * 1000))
        self._max_entry_bytes = max_entry_bytes

    async def find(self, some_id: str) -> StoredResponse | None:
        """The response of this id, or with an item of this id; None when it is unknown or too old. Raises ClientError (503)
        while the server is away: without the transcript the request cannot be served, but it may be in a moment."""
        try:
            value = await self._get(response_name(some_id))
            if value is not None and value.startswith(_PREFIX):
                value = await self._get(value)
        except Away:
            self._link.count("find", "given_up")
            raise ClientError(
                "the store that keeps earlier responses cannot be reached; try again, or send the whole conversation "
                "instead of previous_response_id",
                status=503,
                code="sessions_unavailable",
                param="previous_response_id",
                headers={"retry-after": "1"},
            ) from None
        if value is None:
            return None
        try:
            return _READ.decode(await _unpacked(value))
        except (msgspec.DecodeError, UnicodeDecodeError, zlib.error):
            self._link.count("find", "undecodable")
            return None

    async def _get(self, name: bytes) -> bytes | None:
        value: bytes | None = await self._link.insist("find", b"GETEX", name, b"PX", self._ttl_ms)
        return value

    async def keep(self, response: StoredResponse) -> None:
        """Remember a response. Never raises for the server's sake: one that could not be kept is counted."""
        try:
            text = _JSON.encode(response)
        except Exception:
            # Something in it that JSON cannot hold: it cannot be continued, but it has been answered.
            self._link.count("keep", "undecodable")
            return
        value = await _packed(text)
        if len(value) > self._max_entry_bytes:
            self._link.count("keep", "too_large")
            return
        try:
            name = response_name(response.id)
            entries = [(name, value), *((response_name(item), name) for item in response.items)]
            await asyncio.gather(*(self._link.insist("keep", b"SET", *entry, b"PX", self._ttl_ms) for entry in entries))
        except Away:
            self._link.count("keep", "given_up")


def response_name(response_id: str) -> bytes:
    """The key of a response: of one length, whatever a client sends as an id."""
    digest = hashlib.blake2b(response_id.encode("utf-8", "surrogatepass"), digest_size=16)
    return _PREFIX + digest.hexdigest().encode()


async def _packed(text: bytes) -> bytes:
    if len(text) < _ELSEWHERE:
        return zlib.compress(text, _LEVEL)
    return await asyncio.to_thread(zlib.compress, text, _LEVEL)


async def _unpacked(value: bytes) -> bytes:
    if len(value) < _ELSEWHERE // 4:
        return zlib.decompress(value)
    return await asyncio.to_thread(zlib.decompress, value)
