"""Every error Turnout raises on purpose, named by whose fault it is.

    TurnoutError
    ├── ClientError        the caller's request cannot be served as it is
    ├── ConfigError        the operator's file is wrong; raised at start-up with file, line and key
    ├── UpstreamError      a model's server failed; a value routers and hosts act on by its `kind`
    ├── RouterError        a router broke its contract; the host falls to the route's `otherwise` target
    └── TapeMiss           a replay asked for a call that the recording does not hold

No message may hold a secret, a part of one, or its hash: messages reach clients, logs and traces.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

UpstreamFault = Literal[
    "timeout", "unavailable", "rate_limit", "overflow", "refused", "auth", "malformed", "request", "cancelled"
]
"""What went wrong upstream. `overflow`: the prompt does not fit the model's context window. `refused`: a content policy
refused the request. `request`: the upstream calls the request itself wrong (another 4xx). `malformed`: the answer is not
what the format promises. `unavailable`: no connection, a reset, 5xx. `cancelled`: we gave up on purpose."""


class TurnoutError(Exception):
    """Root of all errors raised on purpose."""


class ClientError(TurnoutError):
    """The request cannot be served as it is.

    `status`: HTTP status to answer with. `code`: a stable machine-readable name. `param`: path of the field at fault,
    such as `messages[2].content`. `headers`: extra response headers.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str = "invalid_request",
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.headers = dict(headers or {})


class ConfigError(TurnoutError):
    """The configuration is wrong. `where`: file, line and TOML key as far as known, already part of the message."""

    def __init__(self, message: str, *, file: str = "", line: int | None = None, key: str = "") -> None:
        where = ":".join(str(x) for x in (file, line) if x)
        prefix = " ".join(x for x in (f"{where}:" if where else "", f"{key}:" if key else "") if x)
        super().__init__(f"{prefix} {message}" if prefix else message)
        self.message = message
        self.file = file
        self.line = line
        self.key = key


class UpstreamError(TurnoutError):
    """A model's server failed.

    `kind` says how (see `UpstreamFault`); `status` is the HTTP status where there was one; `retry_after_s` what the server
    asked for. `code` and `message` are the provider's own words, cleaned of secrets. `body` is its answer, parsed, where
    it can be passed on in the same format. `answer`: the answer itself, its bytes cleaned of secrets, where it is an error
    envelope of the format `answer_format`. `sent`: False when no part of the request had gone out, so that nobody can charge
    for it.
    """

    def __init__(
        self,
        kind: UpstreamFault,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        type: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
        body: Any = None,
        target: str = "",
    ) -> None:
        super().__init__(message)
        self.kind: UpstreamFault = kind
        self.message = message
        self.status = status
        self.code = code
        self.type = type
        self.param = param
        self.retry_after_s = retry_after_s
        self.body = body
        self.target = target
        self.answer: bytes | None = None
        self.answer_format = ""
        self.sent = True

    def __str__(self) -> str:
        return self.message


class RouterError(TurnoutError):
    """A router broke its contract (unknown target, no decision, an exception of its own)."""


Missing = Literal["call", "conversation", "continued", "signals", "memory"]
"""What a replay lacks. `call`: the outcome of a call that was not made. `conversation`: what was said, which was not recorded.
`continued`: a conversation that goes on from a stored response. `signals`: they were not recorded. `memory`: what the router
would remember, since an earlier turn could not be decided."""


class TapeMiss(TurnoutError):
    """A replayed router asked for what the recording does not hold; the turn counts as unsupported. `reason`: what it lacks."""

    def __init__(self, message: str, reason: Missing = "call") -> None:
        super().__init__(message)
        self.reason: Missing = reason


E = TypeVar("E", bound=Exception)


def afresh(error: E) -> E:
    """A copy of `error` to raise, for whoever keeps the original: an error that is raised knows the frames it passed, and if
    one of these knows what keeps the error, only a garbage collection frees any of them."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy
