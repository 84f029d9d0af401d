"""Whose turn is this? The identity ladder: from an explicit header down to a fingerprint of the content.

A per-request id is never an identity. Blank values count as absent, long ones are cut by digest. Everything a client sends
is untrusted: identities only separate state, they grant nothing.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from turnout.conversation import Conversation, Lazy, Settings, Sourced, Text, Tool
from turnout.routing.core import BACKGROUND_AGENT, UNNAMED_CHILD, AgentInfo, Lane, Rung
from turnout.signals import real_user_text

V = TypeVar("V")

_LONGEST = 200
_JSON = msgspec.json.Decoder()

# A line that changes from turn to turn or day to day must not open a new lane.
_VOLATILE = re.compile(
    r"(?im)^.*(?:x-anthropic-billing-header|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}:\d\d(?::\d\d)?\b"
    r"|\btoday'?s date\b|\bcurrent (?:date|time)\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b).*$"
)
_USER_ID_SESSION = re.compile(r"_session_([0-9A-Za-z-]{8,})$")

_DELEGATED = frozenset({"collab_spawn", "thread_spawn", "review"})
_MAINTENANCE = frozenset({"compact", "memory_consolidation"})

Headers = Mapping[bytes, bytes]


_OWN_SESSION = frozenset({"codex", "opencode", "affinity", "session_header"})
"""Rungs whose children may have a session to themselves instead of an agent id: one that is not their parent's."""

_Found = tuple[Rung, str, str, AgentInfo]
_MAIN = AgentInfo()
_NAMING = frozenset(
    {
        b"x-turnout-session",
        b"x-claude-code-session-id",
        b"x-codex-turn-metadata",
        b"session-id",
        b"session_id",
        b"thread-id",
        b"thread_id",
        b"conversation_id",
        b"x-opencode-session",
        b"x-session-affinity",
        b"x-session-id",
    }
)
"""Headers that can name a session; most programs send none of them."""


def identify(
    headers: Headers, conversation: Conversation, settings: Settings, tenant: str = ""
) -> tuple[Lane, AgentInfo]:
    """The lane and agent of a request. `headers`: names in lower case."""
    found: _Found | None = None
    if not _NAMING.isdisjoint(headers):
        found = _of_program(headers, conversation)
        session = _header(headers, b"x-turnout-session")
        if session:
            found = _explicit(headers, session, found or _claude_code_user(conversation, settings))
    if found is None:
        found = _from_body(conversation, settings)
    rung, session, agent, info = found
    if info.kind == "subagent" and not agent and not (rung in _OWN_SESSION and info.parent not in ("", session)):
        agent = UNNAMED_CHILD
    return Lane(tenant, _bounded(session), _bounded(agent), rung), info


def _header(headers: Headers, name: bytes) -> str:
    value = headers.get(name)
    return value.decode("latin-1").strip() if value else ""


def _of_program(headers: Headers, conversation: Conversation) -> _Found | None:
    return _claude_code(headers, conversation) or _codex(headers) or _other(headers, conversation)


def _explicit(headers: Headers, session: str, told: _Found | None) -> _Found:
    """The session that is named, and in it the agent that is named, else the one that the program tells of by itself."""
    agent = _header(headers, b"x-turnout-agent")
    parent = _header(headers, b"x-turnout-parent-agent")
    if agent or parent or told is None:
        return "header", session, agent, AgentInfo(kind="subagent" if parent else "main", parent=parent)
    rung, own, agent, info = told
    if info.kind == "subagent" and not agent and rung in _OWN_SESSION and info.parent != own:
        agent = own
    return "header", session, agent, info


def _claude_code(headers: Headers, conversation: Conversation) -> _Found | None:
    session = _header(headers, b"x-claude-code-session-id")
    if not session:
        return None
    agent = _header(headers, b"x-claude-code-agent-id")
    parent = _header(headers, b"x-claude-code-parent-agent-id")
    return "claude_code", session, *_agent_of("claude-code", agent, parent, conversation)


def _agent_of(program: str, agent: str, parent: str, conversation: Conversation) -> tuple[str, AgentInfo]:
    if agent:
        return agent, AgentInfo(program, "subagent", parent)
    # Titles, summaries and suggestions come under the session's id, but an agent at work always offers tools.
    if not len(conversation.tools):
        return BACKGROUND_AGENT, AgentInfo(program, "background", parent)
    return "", AgentInfo(program, "main", parent)


def _codex(headers: Headers) -> _Found | None:
    meta = _metadata(headers)
    session = _text(meta, "session_id") or _header(headers, b"session-id") or _header(headers, b"session_id")
    thread = (
        _text(meta, "thread_id")
        or _header(headers, b"thread-id")
        or _header(headers, b"thread_id")
        or _header(headers, b"conversation_id")
    )
    if not session and not thread:
        return None
    parent = _text(meta, "parent_thread_id") or _header(headers, b"x-codex-parent-thread-id")
    kind = _text(meta, "subagent_kind") or _header(headers, b"x-openai-subagent")
    agent = "" if not thread or thread == session else thread
    program = "codex" if meta or b"x-codex-window-id" in headers or b"originator" in headers else ""
    info = AgentInfo(program, _codex_kind(kind, parent, meta), parent)
    if kind in _MAINTENANCE and parent:
        agent = "" if parent == session else parent
    return "codex", session or thread, agent, info


def _codex_kind(kind: str, parent: str, meta: dict[str, Any]) -> Literal["main", "subagent", "background"]:
    if kind in _MAINTENANCE:
        return "background"
    if kind in _DELEGATED or (_text(meta, "thread_source") == "subagent" and parent):
        return "subagent"
    return "main"


def _metadata(headers: Headers) -> dict[str, Any]:
    raw = headers.get(b"x-codex-turn-metadata")
    if not raw:
        return {}
    try:
        value = _JSON.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value.strip() if isinstance(value, str) else ""


_SESSION_HEADERS: tuple[tuple[bytes, Rung, str], ...] = (
    (b"x-opencode-session", "opencode", "opencode"),
    (b"x-session-affinity", "affinity", ""),
    (b"x-session-id", "session_header", ""),
)


def _other(headers: Headers, conversation: Conversation) -> _Found | None:
    for name, rung, program in _SESSION_HEADERS:
        session = _header(headers, name)
        if session:
            parent = _header(headers, b"x-parent-session-id") or _header(headers, b"x-opencode-parent-session")
            if not program and headers.get(b"user-agent", b"").startswith(b"opencode/"):
                program = "opencode"
            if parent:
                return rung, session, "", AgentInfo(program, "subagent", parent)
            if program == "opencode":
                return rung, session, *_agent_of(program, "", "", conversation)
            return rung, session, "", AgentInfo(program)
    return None


def _from_body(conversation: Conversation, settings: Settings) -> _Found:
    if (user := _claude_code_user(conversation, settings)) is not None:
        return user
    if settings.prompt_cache_key and settings.prompt_cache_key.strip():
        return "cache_key", settings.prompt_cache_key.strip(), "", _MAIN
    if settings.conversation_id and settings.conversation_id.strip():
        return "chain", settings.conversation_id.strip(), "", _MAIN
    session = fingerprint(conversation)
    return ("fingerprint", session, "", _MAIN) if session else ("none", "", "", _MAIN)


def _claude_code_user(conversation: Conversation, settings: Settings) -> _Found | None:
    if settings.user is None or settings.user_field != "metadata.user_id":
        return None
    session = _session_of_user_id(settings.user)
    return ("metadata", session, *_agent_of("claude-code", "", "", conversation)) if session else None


def _session_of_user_id(user_id: str) -> str:
    """The session inside Claude Code's `metadata.user_id`: a JSON string, or `user_..._account_..._session_<uuid>`."""
    if user_id.startswith("{"):
        try:
            value = _JSON.decode(user_id)
        except msgspec.DecodeError:
            return ""
        return _text(value, "session_id") if isinstance(value, dict) else ""
    match = _USER_ID_SESSION.search(user_id)
    return match.group(1) if match else ""


def fingerprint(conversation: Conversation) -> str:
    """A digest of what stays the same in a conversation: instructions without volatile lines, tool names, and the first
    real user text. "" when there is no user text. Two sessions that open alike share it, so it may carry no latch."""
    key = _opening(conversation)
    found = None if key is None else _fingerprints.get(key)
    if found is None:
        found, opening = _fingerprint(conversation)
        # The key looks no further than the first user message: it must be the one that opens the session.
        if key is not None and opening == conversation.roles.index("user"):
            _remember(_fingerprints, key, found)
    return found


def _opening(conversation: Conversation) -> int | None:
    """A hash of the source of all that a fingerprint mostly looks at; None when the source is not at hand."""
    messages, system, tools = conversation.messages, conversation.system, conversation.tools
    if not isinstance(messages, Lazy) or "user" not in conversation.roles:
        return None
    opening = messages.source(conversation.roles.index("user") + 1)
    if not opening:
        return None
    instructions = system.source() if isinstance(system, Sourced) else tuple(getattr(p, "text", "") for p in system)
    return hash((opening, instructions, tools.source() if isinstance(tools, Sourced) else len(tools)))


def _fingerprint(conversation: Conversation) -> tuple[str, int]:
    """The fingerprint, and the index of the message that opens the session (-1 when none does)."""
    digest = hashlib.blake2b(digest_size=12)
    opening, index = "", -1
    for part in conversation.system:
        if isinstance(part, Text):
            digest.update(_stable(part.text))
    for index, role in enumerate(conversation.roles):
        if role in ("system", "developer"):
            digest.update(_stable(conversation.messages[index].text))
        elif role == "user":
            opening = real_user_text(conversation.messages[index]) or ""
            if opening:
                break
    if not opening:
        return "", -1
    digest.update(_tool_names(conversation.tools))
    digest.update(opening.encode("utf-8", "surrogatepass"))
    return digest.hexdigest(), index


# Every turn of a session repeats the same instructions and tools, so what they come to is remembered, by hash alone.
_REMEMBERED_AT_MOST = 4096
_fingerprints: dict[int, str] = {}
_stable_texts: dict[int, bytes] = {}
_names_of_tools: dict[int, bytes] = {}


def _stable(text: str) -> bytes:
    """A digest of `text` without its volatile lines."""
    key = hash(text)
    found = _stable_texts.get(key)
    if found is None:
        found = hashlib.blake2b(_VOLATILE.sub("", text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        _remember(_stable_texts, key, found)
    return found


def _tool_names(tools: Sequence[Tool]) -> bytes:
    """A digest of the tools' names; b"" when there are none."""
    source = tools.source() if isinstance(tools, Sourced) else b""
    key = hash(source) if source else None
    found = None if key is None else _names_of_tools.get(key)
    if found is None:
        names = "\x1f".join([tool.name for tool in tools]).encode("utf-8", "surrogatepass")
        found = hashlib.blake2b(names, digest_size=16).digest() if len(tools) else b""
        if key is not None:
            _remember(_names_of_tools, key, found)
    return found


def _remember(memo: dict[int, V], key: int, value: V) -> None:
    if len(memo) >= _REMEMBERED_AT_MOST:
        memo.clear()
    memo[key] = value


def _bounded(identity: str) -> str:
    if len(identity) <= _LONGEST:
        return identity
    return "long_" + hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
