"""Errors in the envelope of the OpenAI APIs: `{"error": {"message", "type", "param", "code"}}`."""

from collections.abc import Sequence

import msgspec

from turnout.errors import ClientError, TurnoutError, UpstreamError
from turnout.wire.codec import ErrorReply
from turnout.wire.faults import upstream_error

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}
_OF_KIND: dict[str, tuple[int, str | None]] = {
    "timeout": (504, "timeout"),
    "unavailable": (502, "upstream_unavailable"),
    "rate_limit": (429, "rate_limit_exceeded"),
    "overflow": (400, "context_length_exceeded"),
    "refused": (400, "content_policy_violation"),
    "auth": (401, "upstream_authentication"),
    "malformed": (502, "malformed_reply"),
    "request": (400, None),
    "cancelled": (499, "cancelled"),
}
_KEPT: dict[str, range] = {"unavailable": range(500, 600), "auth": range(401, 404), "request": range(400, 500)}


def read_error(status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> UpstreamError:
    """See `Codec.read_error`."""
    return upstream_error(status, headers, body)


def write_error(error: TurnoutError) -> ErrorReply:
    """See `Codec.write_error`."""
    headers = [(b"content-type", b"application/json")]
    param: str | None = None
    if isinstance(error, ClientError):
        status, code, param, message = error.status, error.code, error.param, error.message
        headers += ((k.encode("latin-1"), v.encode("latin-1")) for k, v in error.headers.items())
    elif isinstance(error, UpstreamError):
        status, own = _OF_KIND[error.kind]
        if error.status is not None and error.status in _KEPT.get(error.kind, ()):
            status = error.status
        # Clients recognise an overflow by its code; for the rest the provider's own word says more.
        code = (own if error.kind == "overflow" else error.code or own) or "upstream_error"
        param, message = error.param, error.message
        if error.retry_after_s is not None:
            headers.append((b"retry-after", b"%d" % max(1, round(error.retry_after_s))))
    else:
        status, code, message = 500, "internal_error", str(error) or "the gateway failed"
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return ErrorReply(status, msgspec.json.encode(body), tuple(headers))


_STREAM_CODES: dict[str, str] = {
    "overflow": "context_length_exceeded",
    "rate_limit": "rate_limit_exceeded",
    "refused": "invalid_prompt",
    "auth": "authentication_error",
}


_STREAM_KNOWN = frozenset(
    (
        "server_error",
        "rate_limit_exceeded",
        "invalid_prompt",
        "context_length_exceeded",
        "insufficient_quota",
        "server_is_overloaded",
        "slow_down",
        "usage_not_included",
        "unsupported_capability",
    )
)


def stream_code(error: UpstreamError) -> str:
    """The code of a `response.failed` event, of those that clients know: a request at fault must not be tried again."""
    if error.code in _STREAM_KNOWN and error.kind not in _STREAM_CODES:
        return error.code
    return _STREAM_CODES.get(error.kind) or ("invalid_prompt" if error.kind == "request" else "server_error")
