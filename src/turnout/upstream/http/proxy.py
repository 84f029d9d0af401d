"""Proxies as the environment names them: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, in either case."""

import ipaddress
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec


class Proxy(msgspec.Struct, frozen=True):
    """An HTTP proxy reached over plain TCP; `authorization` is the value of its header."""

    host: str
    port: int
    authorization: bytes | None = None

    def __repr__(self) -> str:
        return f"Proxy({self.host!r}, {self.port})"


class Proxies:
    """Which proxy serves which origin; the environment is read once. ValueError names a variable that is wrong."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        # A CGI script gets HTTP_PROXY from whoever sends it a Proxy header.
        upper_http = "" if "REQUEST_METHOD" in environ else "HTTP_PROXY"
        anything = _first(environ, "all_proxy", "ALL_PROXY")
        self._by_scheme = {
            "http": _first(environ, "http_proxy", upper_http) or anything,
            "https": _first(environ, "https_proxy", "HTTPS_PROXY") or anything,
        }
        named = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        self._direct = tuple(entry.strip().lower() for entry in named.split(",") if entry.strip())

    def find(self, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy for an origin, None to go straight to it."""
        proxy = self._by_scheme[scheme]
        if proxy is None or any(_matches(entry, host.lower(), port) for entry in self._direct):
            return None
        return proxy


def _first(environ: Mapping[str, str], *names: str) -> Proxy | None:
    for name in names:
        if environ.get(name):
            return _parse(name, environ[name])
    return None


def _parse(name: str, text: str) -> Proxy:
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if parts.scheme != "http":
        raise ValueError(f"{name}: only http:// proxies are supported, not {parts.scheme}://")
    try:
        port = parts.port or 80
    except ValueError:
        port = 0
    if not parts.hostname or not port:
        raise ValueError(f"{name} must look like http://host:port")
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = b"Basic " + b64encode(pair.encode())
    return Proxy(parts.hostname, port, authorization)


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isdigit() and (":" not in name or name.endswith("]")):
        if int(digits) != port:
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").lstrip(".")
    return bool(entry) and (host == entry or host.endswith("." + entry))
