"""What goes with a request besides its body: credentials, the headers that may pass, and keeping secrets out of texts."""

import re
from collections.abc import Iterable, Mapping

from turnout.conversation import Format
from turnout.errors import ClientError
from turnout.upstream.target import Upstream

Headers = tuple[tuple[bytes, bytes], ...]

VENDOR: Mapping[Format, str] = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
}

_SAME_FORMAT: Mapping[Format, frozenset[bytes]] = {
    "openai_chat": frozenset({b"openai-beta", b"x-client-request-id"}),
    "openai_responses": frozenset(
        {
            b"openai-beta",
            b"x-client-request-id",
            b"session-id",
            b"session_id",
            b"thread-id",
            b"conversation_id",
            b"originator",
            b"version",
            b"x-codex-turn-state",
            b"x-codex-turn-metadata",
            b"x-codex-window-id",
            b"x-codex-parent-thread-id",
            b"x-codex-beta-features",
            b"x-openai-subagent",
        }
    ),
    "anthropic_messages": frozenset(
        {
            b"anthropic-beta",
            b"anthropic-version",
            b"x-app",
            b"x-claude-code-session-id",
            b"x-claude-code-agent-id",
            b"x-claude-code-parent-agent-id",
        }
    ),
}
"""Request headers that a vendor's own protocol defines: they pass only to an upstream of the same format."""

_FORWARDED_AUTH: Mapping[str, frozenset[bytes]] = {
    "openai": frozenset(
        {b"authorization", b"chatgpt-account-id", b"x-openai-fedramp", b"openai-organization", b"openai-project"}
    ),
    "anthropic": frozenset({b"authorization", b"x-api-key"}),
}

_BACK = frozenset(
    {
        b"request-id",
        b"x-request-id",
        b"retry-after",
        b"openai-processing-ms",
        b"openai-model",
        b"x-codex-turn-state",
        b"cf-ray",
    }
)
_BACK_PREFIXES = (b"x-ratelimit-", b"anthropic-ratelimit-", b"anthropic-organization-", b"x-upstream-", b"x-codex-")


def header_text(text: str) -> bytes:
    """`text` as a header value: ASCII, one line."""
    return text.encode("ascii", "replace").replace(b"\r", b"?").replace(b"\n", b"?")


def fixed_headers(upstream: Upstream, key: str | None) -> Headers:
    """The headers every request to `upstream` carries: content type, credentials, the operator's own."""
    headers = [(b"content-type", b"application/json"), (b"user-agent", b"turnout")]
    if key:
        own_header = upstream.format == "anthropic_messages" and not key.startswith("sk-ant-oat")
        if upstream.auth == "x-api-key" or (upstream.auth == "auto" and own_header):
            headers.append((b"x-api-key", key.encode()))
        else:
            headers.append((b"authorization", b"Bearer " + key.encode()))
    if upstream.format == "anthropic_messages":
        headers.append((b"anthropic-version", b"2023-06-01"))
    own = {name.lower().encode(): value.encode() for name, value in upstream.headers.items()}
    return (*(h for h in headers if h[0] not in own), *own.items())


def passed_headers(
    upstream: Upstream, fixed: Headers, came_as: Format, client: Iterable[tuple[bytes, bytes]]
) -> Headers:
    """`fixed` plus what may pass of the client's headers: its vendor's protocol headers to the same format, and its
    credentials where the upstream forwards them and belongs to the vendor they are for."""
    allowed = _SAME_FORMAT[upstream.format] if came_as == upstream.format else frozenset()
    if upstream.forward_auth:
        if VENDOR[came_as] != VENDOR[upstream.format]:
            raise ClientError(
                f"the target forwards the client's own credentials, but they are for {VENDOR[came_as]} and its upstream "
                f"speaks {upstream.format}; give the upstream an api_key_env instead",
                status=401,
                code="credentials_not_forwardable",
            )
        allowed = allowed | _FORWARDED_AUTH[VENDOR[upstream.format]] | {b"user-agent"}
    passing = [h for h in client if h[0] in allowed]
    if upstream.forward_auth and not any(h[0] in _CREDENTIALS for h in passing):
        raise ClientError(
            "the target forwards the client's own credentials, and the request has none for it (a key of this gateway goes "
            "no further); send them beside it, one in `authorization` and the other in `x-api-key`",
            status=401,
            code="missing_credentials",
        )
    if upstream.betas is not None:
        passing = [h if h[0] != b"anthropic-beta" else (h[0], known_betas(h[1], upstream.betas)) for h in passing]
        passing = [h for h in passing if h[1]]
    if not passing:
        return fixed
    names = {h[0] for h in passing}
    return (*(h for h in fixed if h[0] not in names), *passing)


def known_betas(value: bytes, known: Iterable[str]) -> bytes:
    """The flags of an `anthropic-beta` header that an upstream knows."""
    names = {name.encode() for name in known}
    return b",".join(flag for flag in (part.strip() for part in value.split(b",")) if flag in names)


def returned_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What may pass of an upstream's response headers to the client."""
    return [h for h in headers if h[0] in _BACK or h[0].startswith(_BACK_PREFIXES)]


_LOOKS_SECRET = re.compile(r"\b(?:sk|pk|rk|gsk|xai|nvapi|hf|ghp|AIza)[-_](?=\S*[\d*…])[A-Za-z0-9_\-*.…]{4,}")
_CREDENTIAL = re.compile(r"(?i)\b(bearer|x-api-key:?|authorization:?(?:\s+bearer)?)\s+[^\s\"',;\\]{4,}")
_RUN = 6
_CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"api-key"})


# An ASCII character as a JSON escape; quotes and backslashes must stay escaped.
_ESCAPED = re.compile(rb"(?<!\\)((?:\\\\)*)\\u00(?!22|5[cC])([2-7][0-9a-fA-F])")


def _spelled_out(escaped: re.Match[bytes]) -> bytes:
    return escaped[1] + bytes([int(escaped[2], 16)])


class Redactor:
    """Takes secrets out of texts that come from elsewhere: known ones, any run of `_RUN` or more of their characters, and
    whatever is spelled like a key (providers echo keys half masked)."""

    __slots__ = ("_grams", "_known")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._known: set[str] = set()
        self._grams: set[str] = set()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Know one more secret."""
        if len(secret) >= _RUN and secret not in self._known:
            self._known.add(secret)
            self._grams.update(secret[i : i + _RUN] for i in range(len(secret) - _RUN + 1))

    def with_credentials(self, headers: Iterable[tuple[bytes, bytes]]) -> "Redactor":
        """One that also knows the credentials in `headers`."""
        own = [h[1].decode("latin-1").removeprefix("Bearer ").strip() for h in headers if h[0] in _CREDENTIALS]
        if all(secret in self._known for secret in own):
            return self
        return Redactor([*self._known, *own])

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        if self._grams and any(gram in text for gram in self._grams):
            text = self._without_runs(text)
        if "-" in text or "_" in text:
            text = _LOOKS_SECRET.sub("[redacted]", text)
        return _CREDENTIAL.sub(r"\1 [redacted]", text)

    def clean_header(self, value: bytes) -> bytes:
        """A header's value without secrets. Short values, as most are, cost next to nothing."""
        if len(value) < _RUN:
            return value
        if b"\\u00" in value:
            value = _ESCAPED.sub(_spelled_out, value)
        text, grams = value.decode("latin-1"), self._grams
        for i in range(len(text) - _RUN + 1):
            if text[i : i + _RUN] in grams:
                return self.clean(text).encode("latin-1")
        return value

    def clean_bytes(self, data: bytes) -> bytes:
        """`data` without secrets, however JSON spells them; undecodable bytes are kept."""
        if b"\\u00" in data:
            data = _ESCAPED.sub(_spelled_out, data)
        return self.clean(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _without_runs(self, text: str) -> str:
        hidden = [False] * len(text)
        for i in range(len(text) - _RUN + 1):
            if text[i : i + _RUN] in self._grams:
                hidden[i : i + _RUN] = [True] * _RUN
        pieces: list[str] = []
        for i, character in enumerate(text):
            if not hidden[i]:
                pieces.append(character)
            elif not i or not hidden[i - 1]:
                pieces.append("[redacted]")
        return "".join(pieces)
