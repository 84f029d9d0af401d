"""An upstream's address, parsed once, and the head of a request to it."""

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DEFAULT_PORTS = {"http": 80, "https": 443}

# Header names as they go on the wire, each with its line break and colon; empty for those the connection itself owns.
# Filled as names are seen, because checking a name costs more than sending it; capped, because clients choose names.
_LABELS: dict[bytes, bytes] = dict.fromkeys(
    (
        b"host", b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"te", b"trailer", b"upgrade",
        b"expect", b"accept-encoding", b"proxy-connection", b"proxy-authorization", b"proxy-authenticate",
    ),
    b"",
)  # fmt: skip
_LABELS_MAX = 1024


class Url:
    """An http or https URL. ValueError, which does not repeat the URL, if it is none.

    `origin` is `scheme://host:port`, the only part of it that is ever shown. A fragment is dropped; user and password
    are refused: credentials go in headers.
    """

    __slots__ = ("_absolute", "_prefixes", "host", "origin", "path", "port", "scheme")

    def __init__(self, text: str) -> None:
        if not text.isprintable() or " " in text:
            raise ValueError("URL holds a space or a control character")
        parts = urlsplit(text)
        if parts.scheme not in _DEFAULT_PORTS:
            raise ValueError(f"URL must start with http:// or https://, not {parts.scheme[:16]!r}")
        if parts.username is not None or parts.password is not None:
            raise ValueError("URL holds a user name or password; put credentials in a header")
        try:
            port = parts.port
        except ValueError:
            raise ValueError("URL has a port that is not a number from 0 to 65535") from None
        self.scheme: str = parts.scheme
        self.host: str = _ascii_host(parts.hostname)
        self.port: int = port or _DEFAULT_PORTS[parts.scheme]
        query = f"?{parts.query}" if parts.query else ""
        self.path: bytes = quote((parts.path or "/") + query, safe="%/:=&?~#+!$,;'@()*[]|").encode()
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.origin: str = f"{self.scheme}://{shown}:{self.port}"
        authority = shown if self.port == _DEFAULT_PORTS[self.scheme] else f"{shown}:{self.port}"
        self._absolute: bytes = f"{self.scheme}://{authority}".encode()
        self._prefixes: dict[tuple[str, bool], bytes] = {}

    def __repr__(self) -> str:
        return f"Url({self.origin!r})"

    def prefix(self, method: str, forwarded: bool = False) -> bytes:
        """Request line, host and accept-encoding, without the last line break; the absolute form for a proxy."""
        prefix = self._prefixes.get((method, forwarded))
        if prefix is None:
            if not _TOKEN.fullmatch(method.encode()):
                raise ValueError("method is not an HTTP token")
            target = self._absolute + self.path if forwarded else self.path
            authority = self._absolute.partition(b"://")[2]
            prefix = b"%b %b HTTP/1.1\r\nhost: %b\r\naccept-encoding: identity" % (method.encode(), target, authority)
            self._prefixes[method, forwarded] = prefix
        return prefix


def request_head(prefix: bytes, headers: Sequence[tuple[bytes, bytes]], length: int | None) -> bytes:
    """The whole head. Headers that belong to the connection (host, length, encoding, hop by hop) are left out.

    ValueError, naming the header and never its value, if one could break out of its line.
    """
    parts = [prefix]
    for name, value in headers:
        label = _LABELS.get(name)
        if label is None:
            label = _label(name)
        if label:
            parts.append(label)
            parts.append(value)
    lines = len(parts) // 2 + 2
    parts.append(b"\r\n\r\n" if length is None else b"\r\ncontent-length: %d\r\n\r\n" % length)
    lines += 2 if length is None else 3
    head = b"".join(parts)
    if head.count(b"\n") != lines or head.count(b"\r") != lines or b"\0" in head:
        for name, value in headers:
            if any(byte in value for byte in (b"\r", b"\n", b"\0")):
                raise ValueError(f"header {name.decode('latin-1')!r} holds a line break or NUL")
    return head


def _label(name: bytes) -> bytes:
    lower = name.lower()
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name.decode('latin-1')[:64]!r} is not a header name")
    label = _LABELS.get(lower)
    if label is None:
        label = b"\r\n%b: " % lower
    if len(_LABELS) < _LABELS_MAX:
        _LABELS[name] = label
    return label


def _ascii_host(host: str | None) -> str:
    if not host:
        raise ValueError("URL has no host")
    if ":" in host:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError("URL has a host that is no IPv6 address") from None
        return host
    try:
        ascii_host = host.encode("ascii" if host.isascii() else "idna").decode()
    except UnicodeError:
        raise ValueError("URL has a host that is no domain name") from None
    if not re.fullmatch(r"[A-Za-z0-9._-]+", ascii_host):
        raise ValueError("URL has a host that is no domain name")
    return ascii_host
