"""Knowledge behind a URL: `turnout knowledge serve`, or another service with Graph-R1's shape."""

import http.client
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from turnout.errors import ConfigError, UpstreamFault
from turnout.routing.core import Failure
from turnout.routing.retrieval.facts import Fact, Found, Lookup

_MOST_BYTES = 64 * 1024 * 1024


class Remote:
    """Look-ups over HTTP, one request for a batch; a connection of each thread's own is kept open."""

    def __init__(self, url: str) -> None:
        """`url`: of the service, or of its `/search`. Raises ConfigError for one that is none."""
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or parts.username or parts.query:
            raise ConfigError("not the URL of a knowledge service, such as http://127.0.0.1:8001", key="knowledge")
        self._make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._address = (host, port)
        path = parts.path.rstrip("/")
        self._path = path if path.endswith("/search") else path + "/search"
        self._here = threading.local()

    def look_up(self, lookups: Sequence[Lookup]) -> list[Found | Failure]:
        """See Knowledge. Where the service fails, all of the batch do."""
        if not lookups:
            return []
        most = max(one.at_most for one in lookups)
        body = msgspec.json.encode({"queries": [one.query for one in lookups], "at_most": max(most, 1)})
        try:
            status, data = self._posted(body, max(one.within_s for one in lookups))
        except TimeoutError:
            return _all(lookups, "timeout", "the knowledge service did not answer in time")
        except (OSError, http.client.HTTPException) as error:
            return _all(lookups, "unavailable", f"the knowledge service cannot be reached: {type(error).__name__}")
        if status != 200:
            kind: UpstreamFault = "unavailable" if status >= 500 else "request"
            return _all(lookups, kind, f"the knowledge service answered with status {status}")
        try:
            return list(_found(msgspec.json.decode(data), lookups))
        except (msgspec.DecodeError, ValueError) as error:
            return _all(lookups, "malformed", f"the knowledge service's answer is not of Graph-R1's shape: {error}")

    def close(self) -> None:
        """Close this thread's connection; those of others close with their threads."""
        connection = getattr(self._here, "connection", None)
        if connection is not None:
            connection.close()
            self._here.connection = None

    def _posted(self, body: bytes, within_s: float) -> tuple[int, bytes]:
        """POST the body; a kept connection that the service has closed meanwhile is made once more."""
        kept = getattr(self._here, "connection", None)
        if kept is not None:
            try:
                return self._exchanged(kept, body, within_s)
            except (http.client.RemoteDisconnected, ConnectionError):
                self.close()
        connection = self._make(self._address[0], self._address[1], timeout=within_s)
        self._here.connection = connection
        return self._exchanged(connection, body, within_s)

    def _exchanged(self, connection: Any, body: bytes, within_s: float) -> tuple[int, bytes]:
        try:
            if connection.sock is not None:
                connection.sock.settimeout(within_s)
            connection.request("POST", self._path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            data = answer.read(_MOST_BYTES + 1)
        except BaseException:
            self.close()
            raise
        if len(data) > _MOST_BYTES:
            self.close()
            raise http.client.HTTPException("too long")
        return answer.status, data


def _all(lookups: Sequence[Lookup], kind: UpstreamFault, message: str) -> list[Found | Failure]:
    return [Failure(kind, message) for _ in lookups]


def _found(answer: Any, lookups: Sequence[Lookup]) -> list[Found]:
    """Raises ValueError for an answer of another shape."""
    if not isinstance(answer, list) or len(answer) != len(lookups):
        raise ValueError("not a list with one entry for each query")
    return [_facts(one, lookup.at_most) for one, lookup in zip(answer, lookups, strict=True)]


def _facts(entry: Any, at_most: int) -> Found:
    value = msgspec.json.decode(entry) if isinstance(entry, str) else entry
    results = value.get("results") if isinstance(value, Mapping) else None
    if not isinstance(results, list):
        raise ValueError("an entry has no list `results`")
    return Found(tuple(_fact(one, place) for place, one in enumerate(results[: max(at_most, 0)], 1)))


def _fact(result: Any, place: int) -> Fact:
    """A service that names no fact gets its place as the id."""
    if not isinstance(result, Mapping) or not isinstance(result.get("<knowledge>"), str):
        raise ValueError("a result has no text `<knowledge>`")
    score = result.get("<coherence>", 0.0)
    return Fact(
        str(result.get("id", place)),
        result["<knowledge>"],
        float(score) if isinstance(score, int | float) else 0.0,
        tuple(map(str, result.get("sources", ()))),
        tuple(map(str, result.get("entities", ()))),
    )
