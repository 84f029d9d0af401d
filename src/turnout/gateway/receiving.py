"""Takes in a request's body: bounded, decompressed, noticing a client that hangs up."""

import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from turnout.errors import ClientError

Receive = Callable[[], Awaitable[Any]]


class ClientGone(Exception):
    """The client hung up while its request was being read."""


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    """A request's body, decompressed, valid UTF-8.

    Raises ClientError (413, 415, 400), ClientGone when the client hangs up first.
    """
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise too_large(limit)
    message = await receive()
    chunk: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body"):
        body = chunk
    else:
        chunks, size = [chunk], len(chunk)
        while message["type"] != "http.disconnect" and message.get("more_body"):
            message = await receive()
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > limit:
                raise too_large(limit)
        if message["type"] == "http.disconnect":
            raise ClientGone
        body = b"".join(chunks)
    encoding = headers.get(b"content-encoding")
    if encoding is not None:
        body = decoded(body, encoding, limit)
    elif len(body) > limit:
        raise too_large(limit)
    if not body.isascii():
        # JSON decoders look at the strings they decode only; the rest would be found out far from here, or passed on.
        try:
            body.decode()
        except UnicodeDecodeError as error:
            message = f"the body is not valid UTF-8 (byte {error.start})"
            raise ClientError(message, code="invalid_json") from None
    return body


def too_large(limit: int) -> ClientError:
    """The error for a body above the limit."""
    return ClientError(
        f"the request body is larger than {limit / 2**20:g} MiB; `[server] max_body_mib` raises the limit",
        status=413,
        code="request_too_large",
    )


def decoded(body: bytes, encoding: bytes, limit: int) -> bytes:
    """A compressed request body, decompressed, never beyond `limit`. Raises ClientError (415, 400, 413)."""
    name = encoding.strip().lower()
    if name in (b"identity", b""):
        return body
    try:
        if name in (b"gzip", b"x-gzip", b"deflate"):
            machine = zlib.decompressobj(wbits=47 if name != b"deflate" else 15)
            plain = machine.decompress(body, limit + 1)
            if not machine.eof and len(plain) <= limit:
                raise ClientError(f"the {name.decode()} body ends before it is complete", code="invalid_encoding")
        elif name == b"zstd":
            plain = _unzstd(body, limit)
        else:
            raise ClientError(
                f"content-encoding {name.decode('latin-1')[:40]!r} is not supported; send gzip, deflate, zstd or none",
                status=415,
                code="unsupported_encoding",
            )
    except zlib.error:
        raise ClientError(f"the body is not valid {name.decode()}", code="invalid_encoding") from None
    if len(plain) > limit:
        raise too_large(limit)
    return plain


def _unzstd(body: bytes, limit: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise ClientError(
            "zstd request bodies need the package `zstandard` on the gateway; send gzip or no encoding",
            status=415,
            code="unsupported_encoding",
        ) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(body) as reader:
            plain: bytes = reader.read(limit + 1)
            return plain
    except zstandard.ZstdError:
        raise ClientError("the body is not valid zstd", code="invalid_encoding") from None
