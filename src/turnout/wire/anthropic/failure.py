"""Errors in the envelope of Messages: `{"type": "error", "error": {"type", "message"}}`."""

import math

import msgspec

from turnout.errors import ClientError, TurnoutError, UpstreamError
from turnout.wire.codec import ErrorReply

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CODES = {"overflow": "context_length_exceeded", "refused": "content_policy_violation"}
"""What no type of Messages says."""
_JSON = (b"content-type", b"application/json")


def status_of(error: TurnoutError) -> int:
    """The HTTP status to answer with."""
    if isinstance(error, ClientError):
        return error.status
    if not isinstance(error, UpstreamError):
        return 500
    status = error.status
    match error.kind:
        case "timeout":
            return 504
        case "rate_limit":
            return 429
        case "overflow" | "refused":
            return 400
        case "auth":
            return status if status in (401, 403) else 401
        case "request":
            return status if status is not None and 400 <= status < 500 else 400
        case "unavailable":
            return status if status is not None and 500 <= status < 600 else 502
        case _:
            return 502


def error_value(error: TurnoutError) -> dict[str, object]:
    """The envelope, before encoding: also the data of an in-stream `error` event."""
    status = status_of(error)
    kind = _TYPES.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")
    message = getattr(error, "message", None) or str(error) or "the request failed"
    inner: dict[str, object] = {"type": kind, "message": message}
    code = error.code if isinstance(error, ClientError) else None
    if isinstance(error, UpstreamError):
        code = _CODES.get(error.kind, error.code) or error.code
        if error.kind == "overflow" and "prompt is too long" not in message:
            # Clients look for these words anywhere in the body to compact their history and try again.
            inner["reason"] = "prompt is too long"
    if code is not None:
        inner["code"] = code
    param = getattr(error, "param", None)
    if param is not None:
        inner["param"] = param
    return {"type": "error", "error": inner}


def error_event(error: TurnoutError) -> bytes:
    """`error` as an event of a stream: its one failure terminal."""
    return b"event: error\ndata: " + msgspec.json.encode(error_value(error)) + b"\n\n"


def write_error(error: TurnoutError) -> ErrorReply:
    """`error` as an answer of its own."""
    headers = [_JSON]
    if isinstance(error, ClientError):
        headers += [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in error.headers.items()]
    elif isinstance(error, UpstreamError) and error.retry_after_s is not None:
        headers.append((b"retry-after", str(math.ceil(error.retry_after_s)).encode()))
    return ErrorReply(status_of(error), msgspec.json.encode(error_value(error)), tuple(headers))
