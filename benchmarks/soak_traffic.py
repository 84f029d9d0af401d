"""What the soak sends: requests of all dialects and kinds, most of them well formed, drawn from one seed."""

import json
import random
from dataclasses import dataclass
from typing import Any

TURN_PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
ROUTES = (
    "stage-same",
    "stage-mixed",
    "to-chat",
    "to-messages",
    "to-responses",
    "dice",
    "escalate-same",
    "escalate-mixed",
)
LOREM = (
    "The parser keeps a cursor into the token list and advances it only when a rule matches. "
    "When a rule fails the cursor is restored, so a partial match never leaks into the next rule. "
)
OUTPUTS = (
    "\n".join(f"{n:4d}  def f_{n}(x): return x + {n}" for n in range(44)),
    "============ 12 passed in 0.41s ============\n" + LOREM * 8,
    'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: bad token\n' + LOREM * 8,
    "total 48\n" + "\n".join(f"-rw-r--r-- 1 u u {n * 977} f_{n}.py" for n in range(36)),
    "bash: frobnicate: command not found\n" + LOREM * 8,
    "The file src/x.py has been updated successfully.\n" + LOREM * 8,
)
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "File to act on."}, "limit": {"type": "integer"}},
    "required": ["path"],
}
TOOLS = [(f"tool_{n}", f"Tool number {n}. {LOREM * 3}", SCHEMA) for n in range(20)]


@dataclass(slots=True)
class Planned:
    """One request to send. `turn`: it is served by a model, so that the ledger must hold it. `hang_up`: when the client goes
    (`request` = within the body, `wait` = before the answer, `stream` = within the answer); "" = it stays."""

    kind: str
    method: str
    path: str
    body: bytes
    headers: list[tuple[str, str]]
    turn: bool = False
    hang_up: str = ""
    stream: bool = False


class Traffic:
    """An endless source of requests."""

    def __init__(self, seed: int, sessions: int = 1000) -> None:
        self.random = random.Random(seed)
        self.sessions = sessions
        self.answered: list[str] = []
        self._agent: dict[tuple[str, int], str] = {}

    def next(self) -> Planned:
        """The next request."""
        draw = self.random.random()
        if draw < 0.03:
            return self._malformed()
        if draw < 0.06:
            return self._counted()
        if draw < 0.08:
            return self._decision()
        if draw < 0.10:
            return self._page()
        return self._turn()

    def _turn(self) -> Planned:
        draw = self.random
        dialect = draw.choice(list(TURN_PATHS))
        stream = draw.random() < 0.5
        agent = draw.random() < 0.2
        model = draw.choice(ROUTES)
        body = self.agent_turn(dialect, draw.randint(0, 5)) if agent else self.small(dialect)
        more: dict[str, Any] = {"model": model}
        if stream:
            more["stream"] = True
        if dialect == "responses" and not agent:
            if self.answered and draw.random() < 0.2:
                more["previous_response_id"] = draw.choice(self.answered)
            elif draw.random() < 0.5:
                more["store"] = False
        hang_up = draw.choice(("request", "wait", "wait", "stream", "stream", "stream")) if draw.random() < 0.1 else ""
        head = json.dumps(more, separators=(",", ":"))[:-1]
        return Planned(
            f"{dialect}{' agent' if agent else ''}{' stream' if stream else ''}",
            "POST",
            TURN_PATHS[dialect],
            f"{head},{body[1:]}".encode(),
            self.identity(),
            True,
            hang_up,
            stream,
        )

    def identity(self) -> list[tuple[str, str]]:
        """Headers that say whose turn it is, in the ways of several programs; sometimes none."""
        draw = self.random
        session = f"{draw.randrange(self.sessions):08d}-0000-4000-8000-000000000000"
        sub = draw.random() < 0.25
        kind = draw.randrange(4)
        if kind == 0:
            return [("x-turnout-session", session), *([("x-turnout-agent", f"a{draw.randrange(3)}")] if sub else [])]
        if kind == 1:
            more = [("x-claude-code-agent-id", f"agent-{draw.randrange(3)}")] if sub else []
            return [("anthropic-version", "2023-06-01"), ("x-claude-code-session-id", session), *more]
        if kind == 2:
            more = [("x-openai-subagent", "review"), ("x-codex-parent-thread-id", session)] if sub else []
            return [("session-id", session), ("thread-id", session), ("originator", "codex_exec"), *more]
        return []

    def small(self, dialect: str) -> str:
        """A short chat, without `model`, as JSON."""
        said = [
            LOREM + f"Why does test {self.random.randrange(10_000)} fail?",
            "The cursor is not restored.",
            "Show me.",
        ]
        # Some go on from where others of the session stand.
        for step in range(self.random.choice((0, 0, 1, 2))):
            said += [f"This is step {step}.", "And now?"]
        turns = [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(said)]
        if dialect == "messages":
            return json.dumps({"max_tokens": 256, "system": LOREM, "messages": turns})
        if dialect == "responses":
            return json.dumps({"instructions": LOREM, "input": turns, "max_output_tokens": 256})
        return json.dumps({"messages": [{"role": "system", "content": LOREM}, *turns], "max_tokens": 256})

    def agent_turn(self, dialect: str, ends_with: int) -> str:
        """A coding agent's turn of about 99 KB, without `model`, as JSON. `ends_with`: which output came last."""
        key = (dialect, ends_with)
        if key not in self._agent:
            self._agent[key] = json.dumps(AGENT_TURNS[dialect](ends_with), separators=(",", ":"))
        return self._agent[key]

    def _malformed(self) -> Planned:
        draw = self.random
        dialect = draw.choice(list(TURN_PATHS))
        good = self.small(dialect)
        body = draw.choice(
            (
                good[: len(good) // 2],
                good.replace('"user"', "7", 1)[:-1] + ',"model":"to-chat"}',
                "",
                "[]",
                "\x00" * 50,
                '{"model":"no-such-route",' + good[1:],
                '{"model":17,' + good[1:],
                "[" * 2000,
            )
        )
        return Planned("malformed", "POST", TURN_PATHS[dialect], body.encode(), self.identity(), True)

    def _counted(self) -> Planned:
        dialect = self.random.choice(("messages", "responses"))
        path = "/v1/messages/count_tokens" if dialect == "messages" else "/v1/responses/input_tokens"
        body = self.agent_turn(dialect, 1) if self.random.random() < 0.1 else self.small(dialect)
        return Planned("count", "POST", path, f'{{"model":"stage-same",{body[1:]}'.encode(), self.identity())

    def _decision(self) -> Planned:
        body = self.agent_turn("messages", 2) if self.random.random() < 0.3 else self.small("chat")
        return Planned("route", "POST", "/v1/route", f'{{"model":"stage-same",{body[1:]}'.encode(), self.identity())

    def _page(self) -> Planned:
        pages = ("/metrics", "/health", "/ready", "/v1/models", "/v1/turns?limit=5", "/nowhere", "/metrics", "/")
        return Planned("page", "GET", self.random.choice(pages), b"", [])


def outputs(ends_with: int) -> list[tuple[str, str, str]]:
    """Call ids, tool names and outputs of a long session."""
    count = 60
    kinds = [*(n % len(OUTPUTS) for n in range(count - 2)), ends_with, ends_with]
    return [(f"call_{n:04d}", f"tool_{n % 20}", OUTPUTS[kind]) for n, kind in enumerate(kinds)]


def chat_agent(ends_with: int) -> dict[str, Any]:
    """An agent turn in Chat Completions."""
    said: list[dict[str, Any]] = [
        {"role": "system", "content": LOREM * 8},
        {"role": "user", "content": "Fix it. " + LOREM},
    ]
    for call, name, text in outputs(ends_with):
        function = {"name": name, "arguments": '{"path":"src/a.py","limit":40}'}
        said.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call, "type": "function", "function": function}],
            }
        )
        said.append({"role": "tool", "tool_call_id": call, "content": text})
    tools = [{"type": "function", "function": {"name": n, "description": d, "parameters": s}} for n, d, s in TOOLS]
    return {"messages": said, "tools": tools, "max_tokens": 1024}


def messages_agent(ends_with: int) -> dict[str, Any]:
    """An agent turn in Messages."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Fix it. " + LOREM}]
    for call, name, text in outputs(ends_with):
        use = {"type": "tool_use", "id": call, "name": name, "input": {"path": "src/a.py", "limit": 40}}
        said.append({"role": "assistant", "content": [{"type": "text", "text": "The next file."}, use]})
        said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]})
    tools = [{"name": n, "description": d, "input_schema": s} for n, d, s in TOOLS]
    return {"max_tokens": 1024, "system": LOREM * 8, "messages": said, "tools": tools}


def responses_agent(ends_with: int) -> dict[str, Any]:
    """An agent turn in Responses, as Codex sends it: nothing is to be stored."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "Fix it. " + LOREM}]
    for call, name, text in outputs(ends_with):
        arguments = '{"path":"src/a.py","limit":40}'
        items.append({"type": "function_call", "call_id": call, "name": name, "arguments": arguments})
        items.append({"type": "function_call_output", "call_id": call, "output": text})
    tools = [{"type": "function", "name": n, "description": d, "parameters": s, "strict": False} for n, d, s in TOOLS]
    return {"instructions": LOREM * 8, "input": items, "tools": tools, "store": False}


AGENT_TURNS = {"chat": chat_agent, "messages": messages_agent, "responses": responses_agent}
