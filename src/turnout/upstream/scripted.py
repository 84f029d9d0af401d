"""Models that play a script: an upstream without a server, a key or a network, for demos, examples and tests.

A script is JSON Lines; each line is one reply (see `Line`). A request is answered by the first line whose conditions all
hold. Lines without conditions are played in order: line i answers the request whose conversation holds i assistant turns, and
the last one repeats. So a script needs no state: any number of sessions may play it at once, and a repeated request gets the
same reply.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout.conversation import (
    ArgumentsDelta,
    Conversation,
    Delta,
    Message,
    Part,
    Reasoning,
    Reply,
    Stop,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    unfold,
)
from turnout.errors import ClientError, ConfigError, UpstreamError
from turnout.pricing.tokens import estimate_tokens
from turnout.upstream.http import Timeouts, Url
from turnout.upstream.prompt_cache import PromptCache
from turnout.upstream.target import Upstream
from turnout.wire import CODECS
from turnout.wire.codec import Codec, Request


class ScriptedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call. `arguments`: any JSON for functions, a string for custom tools. `id`: made from its place when absent."""

    name: str
    arguments: Any = {}
    id: str = ""
    namespace: str | None = None


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One reply and when it is given.

    Conditions: `turn` (assistant turns so far), `model` (the model asked for), `contains` (text in the newest message or its
    tool results). What is said: `reasoning`, `text`, `calls`; `stop` follows from them unless stated; `usage` is estimated
    unless stated, prompt cache included. How: `delay_s` before the first byte, `gap_s` between stream events, `status` and
    `error` for a refusal with `retry_after_s`, `cut_after` to break the connection after that many stream events.
    """

    turn: int | None = None
    model: str | None = None
    contains: str | None = None
    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: Stop | None = None
    usage: Usage | None = None
    delay_s: float = 0.0
    gap_s: float = 0.0
    status: int = 200
    error: str = ""
    code: str = ""
    retry_after_s: float | None = None
    cut_after: int | None = None

    @property
    def conditional(self) -> bool:
        """Whether it states a condition."""
        return self.turn is not None or self.model is not None or self.contains is not None

    def fits(self, turn: int, model: str, newest: str) -> bool:
        """Whether all its conditions hold."""
        return (
            (self.turn is None or self.turn == turn)
            and (self.model is None or self.model == model)
            and (self.contains is None or self.contains in newest)
        )


class Script:
    """A transport that plays a script in one wire format."""

    def __init__(self, upstream: Upstream, lines: Sequence[Line]) -> None:
        """Raises ConfigError when there is no line."""
        if not lines:
            raise ConfigError("the script has no lines", file=upstream.script)
        self.codec: Codec = CODECS[upstream.format]
        self.cache = PromptCache(upstream.format)
        self.conditional = [line for line in lines if line.conditional]
        self.in_order = [line for line in lines if not line.conditional]

    @classmethod
    def load(cls, upstream: Upstream) -> "Script":
        """The script that `upstream.script` names. Raises ConfigError with file and line."""
        path = Path(upstream.script)
        try:
            texts = path.read_text("utf-8").splitlines()
        except OSError as error:
            raise ConfigError(f"the script cannot be read: {error.strerror}", file=str(path)) from None
        lines = []
        for number, text in enumerate(texts, 1):
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            try:
                lines.append(msgspec.json.decode(text, type=Line))
            except msgspec.MsgspecError as error:
                raise ConfigError(f"not a script line: {error}", file=str(path), line=number) from None
        return cls(upstream, lines)

    async def send(
        self, method: str, url: Url, headers: Sequence[tuple[bytes, bytes]], body: bytes, timeouts: Timeouts
    ) -> "ScriptedResponse":
        """Play the reply to one request."""
        try:
            request = self.codec.read_request(body)
            line, turn = self.line_for(request)
        except ClientError as error:
            refusal = self.codec.write_error(error)
            return ScriptedResponse(refusal.status, list(refusal.headers), [refusal.body])
        if line.delay_s:
            await asyncio.sleep(line.delay_s)
        if line.status != 200:
            return self._refusal(line)
        reply = reply_of(line, request, turn, self.cache)
        model = request.settings.model
        if not request.settings.stream:
            body = self.codec.write_reply(reply, request, model).body
            return ScriptedResponse(200, [(b"content-type", b"application/json")], [body])
        writer = self.codec.writer(request, model)
        events = [data for delta in spoken(reply) if (data := writer.feed(delta))]
        headers = [(b"content-type", b"text/event-stream")]
        return ScriptedResponse(200, headers, events, line.gap_s, line.cut_after)

    async def close(self) -> None:
        """Nothing to close."""

    def line_for(self, request: Request) -> tuple[Line, int]:
        """The line that answers `request`, and the number of assistant turns before it."""
        turn = assistant_turns(request.conversation)
        newest = newest_text(request.conversation)
        for line in self.conditional:
            if line.fits(turn, request.settings.model, newest):
                return line, turn
        if not self.in_order:
            raise ClientError("no line of the script fits this request", code="script_exhausted")
        return self.in_order[min(turn, len(self.in_order) - 1)], turn

    def _refusal(self, line: Line) -> "ScriptedResponse":
        message = line.error or f"scripted refusal with status {line.status}"
        reply = self.codec.write_error(ClientError(message, status=line.status, code=line.code or "scripted"))
        headers = list(reply.headers)
        if line.retry_after_s is not None:
            headers.append((b"retry-after", f"{line.retry_after_s:g}".encode()))
        return ScriptedResponse(line.status, headers, [reply.body])


class ScriptedResponse:
    """A response played from memory."""

    def __init__(
        self,
        status: int,
        headers: list[tuple[bytes, bytes]],
        chunks: list[bytes],
        gap_s: float = 0.0,
        cut_after: int | None = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._gap_s = gap_s
        self._cut_after = cut_after
        self._at = 0

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header, by its lower-case name."""
        return next((value for key, value in self.headers if key == name), None)

    async def next(self) -> bytes | None:
        """The next event, or all that is left when nothing is waited for in between."""
        if self._cut_after is not None and self._at >= self._cut_after:
            raise UpstreamError("unavailable", "the script cut the connection (body)")
        if self._at >= len(self._chunks):
            return None
        if self._gap_s and self._at:
            await asyncio.sleep(self._gap_s)
        until = self._at + 1 if self._gap_s or self._cut_after is not None else len(self._chunks)
        data = b"".join(self._chunks[self._at : until])
        self._at = until
        return data

    async def read(self, limit: int) -> bytes:
        """The whole body."""
        parts = []
        while (data := await self.next()) is not None:
            parts.append(data)
        return b"".join(parts)

    def abort(self) -> None:
        """Stop playing."""
        self._at = len(self._chunks)


def reply_of(line: Line, request: Request, turn: int, cache: PromptCache) -> Reply:
    """The reply a line stands for."""
    parts: list[Part] = []
    if line.reasoning:
        parts.append(Reasoning(line.reasoning))
    if line.text:
        parts.append(Text(line.text))
    styles = {tool.name: tool.style for tool in request.conversation.tools}
    seed = hashlib.blake2b(request.body, digest_size=6).hexdigest()
    for index, call in enumerate(line.calls):
        custom = styles.get(call.name) == "custom" and isinstance(call.arguments, str)
        arguments = call.arguments if custom else msgspec.json.encode(call.arguments).decode()
        parts.append(
            ToolCall(
                call.id or f"call_{seed}_{turn}_{index}",
                call.name,
                arguments,
                style="custom" if custom else "function",
                namespace=call.namespace,
            )
        )
    stop = line.stop or ("tool_calls" if line.calls else "end")
    usage = line.usage or cache.usage(request.body, output_tokens(parts))
    return Reply(tuple(parts), stop, usage, id=f"scripted_{seed}_{turn}", model=request.settings.model)


def output_tokens(parts: Sequence[Part]) -> int:
    """About how many tokens a model would have spent on `parts`."""
    said = "".join(p.arguments if isinstance(p, ToolCall) else getattr(p, "text", "") for p in parts)
    return max(1, estimate_tokens(said))


def assistant_turns(conversation: Conversation) -> int:
    """How many assistant turns a conversation holds. Adjacent assistant units are one, and so are the calls of one scripted
    reply: translated to Responses, each stands beside its own result."""
    turns, before, reply = 0, "", ""
    for index, role in enumerate(conversation.roles):
        if role == "assistant":
            own = scripted_reply(conversation.messages[index])
            if before != "assistant" and not (own and own == reply):
                turns += 1
            reply = own or reply
        before = role
    return turns


_CALL_ID = re.compile(r"(call_[0-9a-f]{12}_\d+)_\d+")


def scripted_reply(message: Message) -> str:
    """What the ids of a scripted reply's calls have in common, told from the first call of `message`; "" when it has none."""
    for part in message.parts:
        if isinstance(part, ToolCall):
            found = _CALL_ID.fullmatch(part.id)
            return found.group(1) if found else ""
    return ""


def newest_text(conversation: Conversation) -> str:
    """The text of the newest message, its tool results included."""
    if not len(conversation.messages):
        return ""
    pieces = []
    for part in conversation.messages[-1].parts:
        text = getattr(part, "text", None)
        if isinstance(text, str):
            pieces.append(text)
    return "\n".join(pieces)


def spoken(reply: Reply) -> Iterator[Delta]:
    """The deltas of a reply, its texts a few words at a time, as models send them."""
    for delta in unfold(reply):
        if isinstance(delta, TextDelta | ArgumentsDelta) and len(delta.text) > 24:
            for piece in pieces(delta.text):
                yield type(delta)(delta.index, piece)
        else:
            yield delta


def pieces(text: str, size: int = 24) -> Iterator[str]:
    """`text` in pieces of about `size` characters, cut after a space where there is one."""
    at = 0
    while at < len(text):
        end = min(len(text), at + size)
        space = text.rfind(" ", at, end)
        if end < len(text) and space > at:
            end = space + 1
        yield text[at:end]
        at = end
