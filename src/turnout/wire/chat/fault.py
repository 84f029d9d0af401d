"""Errors in the envelope of the OpenAI APIs, both ways."""

from collections.abc import Sequence
from typing import Any

import msgspec

from turnout.errors import ClientError, TurnoutError, UpstreamError
from turnout.wire.codec import ErrorReply
from turnout.wire.faults import upstream_error

_JSON = (b"content-type", b"application/json")

_STATUS = {
    "timeout": 504,
    "unavailable": 502,
    "rate_limit": 429,
    "overflow": 400,
    "refused": 400,
    "auth": 401,
    "malformed": 502,
    "request": 400,
    "cancelled": 499,
}
_CODE = {
    "timeout": "upstream_timeout",
    "unavailable": "upstream_unavailable",
    "rate_limit": "rate_limit_exceeded",
    "overflow": "context_length_exceeded",
    "refused": "content_policy_violation",
    "auth": "upstream_authentication_failed",
    "malformed": "upstream_malformed",
    "request": "invalid_request_error",
    "cancelled": "cancelled",
}
_TYPE = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
}


def read_error(status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> UpstreamError:
    """A non-2xx answer, classified."""
    return upstream_error(status, headers, body)


def status_of(error: TurnoutError) -> int:
    """The HTTP status an error is answered with."""
    if isinstance(error, ClientError):
        return error.status
    if not isinstance(error, UpstreamError):
        return 500
    status, kind = error.status, error.kind
    if status is None:
        return _STATUS[kind]
    if kind == "unavailable" and status >= 500:
        return status
    if kind == "auth" and status in (401, 403):
        return status
    if kind == "request" and 400 <= status < 500:
        return status
    return _STATUS[kind]


def envelope(error: TurnoutError) -> dict[str, Any]:
    """The body of an error, for answers and for streams."""
    status = status_of(error)
    kind = _TYPE.get(status, "invalid_request_error" if status < 500 else "server_error")
    if isinstance(error, ClientError):
        return _said(error.message, kind, error.param, error.code)
    if isinstance(error, UpstreamError):
        keep = error.kind not in ("overflow", "timeout", "malformed", "cancelled")
        return _said(
            error.message,
            (error.type if keep else None) or kind,
            error.param,
            (error.code if keep else None) or _CODE[error.kind],
        )
    return _said("the gateway failed to serve this request", "server_error", None, "internal_error")


def _said(message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def write_error(error: TurnoutError) -> ErrorReply:
    """An error as an HTTP answer."""
    headers = [_JSON]
    if isinstance(error, ClientError):
        headers += [(k.lower().encode(), v.encode()) for k, v in error.headers.items()]
    elif isinstance(error, UpstreamError) and error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(0, round(error.retry_after_s + 0.499))).encode()))
    return ErrorReply(status_of(error), msgspec.json.encode(envelope(error)), tuple(headers))
