"""The ASGI application: three dialects in the hot path, everything else in cold pages."""

from collections.abc import Awaitable, Callable
from typing import Any

from turnout.conversation import Format
from turnout.errors import ClientError
from turnout.gateway.live import Live
from turnout.gateway.pages import pages
from turnout.gateway.serving import Serving
from turnout.wire import CODECS
from turnout.wire.codec import Codec

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_PATHS: tuple[tuple[str, Format], ...] = (
    ("/chat/completions", "openai_chat"),
    ("/responses", "openai_responses"),
    ("/messages", "anthropic_messages"),
)
_WITHIN = "/sessions/"
# Clients append their path to a base URL that people give with and without /v1.
_TURNS = {prefix + path: CODECS[form] for path, form in _PATHS for prefix in ("/v1", "", "/v1/v1")}


def application(live: Live) -> Application:
    """The application that serves whatever gateway is `live`."""
    cold = pages(live)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            codec = _TURNS.get(scope["path"])
            if codec is None and scope["path"].startswith(_WITHIN):
                scope = within_session(scope)
                codec = _TURNS.get(scope["path"])
            if codec is not None:
                if scope["method"] == "POST":
                    await Serving(live.gateway, codec, scope, receive, send).serve()
                else:
                    await refuse_method(codec, scope, send)
                return
            await cold(scope, receive, send)
        elif kind == "lifespan":
            await lifespan(live, receive, send)
        elif kind == "websocket":
            # Clients that speak WebSocket fall back to server-sent events when the handshake is refused.
            await receive()
            await send({"type": "websocket.close", "code": 1003, "reason": "use POST with server-sent events"})

    return app


def within_session(scope: Scope) -> Scope:
    """A request to /sessions/ID/PATH, as one to /PATH that names the session ID in its header: for clients that are told a
    base URL and nothing else."""
    session, slash, path = scope["path"][len(_WITHIN) :].partition("/")
    if not session.strip():
        return scope
    headers = [pair for pair in scope["headers"] if pair[0] != b"x-turnout-session"]
    headers.append((b"x-turnout-session", session.encode("ascii", "replace")))
    path = slash + path or "/"
    return {**scope, "path": path, "raw_path": path.encode(), "headers": headers}


async def refuse_method(codec: Codec, scope: Scope, send: Send) -> None:
    """405 in the dialect of the path."""
    error = ClientError(
        f"{scope['method']} is not supported here; send a POST (streams are server-sent events, not WebSocket)",
        status=405,
        code="method_not_allowed",
    )
    reply = codec.write_error(error)
    length = (b"content-length", str(len(reply.body)).encode())
    headers = [*reply.headers, (b"allow", b"POST"), length]
    await send({"type": "http.response.start", "status": 405, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})


async def lifespan(live: Live, receive: Receive, send: Send) -> None:
    """Start and stop with the server."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            live.start()
            await send({"type": "lifespan.startup.complete"})
        else:
            await live.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
