"""An escalation route over upstreams that play what a test says: the weak model, the judge and the strong one."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.vendors import EVENTS, REPLY, Call, Play
from tests.played import Played, Seen, Step, event, stream, whole
from tests.replays import replayed
from tests.running import Running, running

JSON = dict[str, Any]
FORMATS = ("openai_chat", "openai_responses", "anthropic_messages")
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}
WEAK = Play(
    "The weak one says hello.", calls=(Call("call_w1", "bash", '{"command": "make  test"}'),), stop="tool_calls"
)
STRONG = Play("The strong one says hello.", prompt=200, output=30)
PRICES = {"weak": (1.0, 2.0), "strong": (10.0, 50.0), "judge": (0.5, 1.0)}


def said(play: Play, form: str, body: JSON) -> list[Step]:
    """A play as a vendor of a format sends it, streamed or whole as asked; each reply has an id of its own."""
    number = b"%x" % time.monotonic_ns()
    if not body.get("stream"):
        reply = json.dumps(REPLY[form](play, body["model"])).encode()
        return whole(200, _identified(reply, number), anthropic_ratelimit_requests_remaining="7")
    events = [
        event(b"[DONE]" if one.get("done") else one, "" if form == "openai_chat" else one["type"])
        for one in EVENTS[form](play, body)
    ]
    return stream(*[_identified(one, number) for one in events])


def _identified(data: bytes, number: bytes) -> bytes:
    """Clients take replies of one id for parts of one message."""
    return data.replace(b'"msg_v1"', b'"msg_%s"' % number).replace(b'"chatcmpl-v1"', b'"chatcmpl-%s"' % number)


def verdict(escalate: bool) -> Play:
    """A judge's answer."""
    return Play(json.dumps({"reason": "it repeats itself", "escalate": escalate}), prompt=900, output=9)


class Upstreams:
    """The three models' servers. Each of `weak`, `strong`, `judge` gives the steps of an answer, and may be replaced."""

    def __init__(self, form: str, judge_form: str = "openai_chat") -> None:
        self.form, self.judge_form = form, judge_form
        self.calls: list[tuple[str, JSON]] = []
        self.votes: Callable[[int], bool] = lambda number: False
        self.closed: dict[str, float] = {}
        self.weak: Callable[[JSON], list[Step]] = lambda body: said(WEAK, form, body)
        self.strong: Callable[[JSON], list[Step]] = lambda body: said(STRONG, form, body)
        self.judge: Callable[[JSON], list[Step]] = lambda body: said(
            verdict(self.votes(sum(name == "judge" for name, _ in self.calls))), judge_form, body
        )
        self._lock = threading.Lock()
        self.server = Played(self._play)

    def _play(self, seen: Seen, number: int) -> list[Step]:
        body = json.loads(seen.body)
        with self._lock:
            self.calls.append((body["model"], body))
        play: Callable[[JSON], list[Step]] = getattr(self, body["model"])
        return play(body)

    def asked(self) -> list[str]:
        """Which models were called, in order."""
        return [name for name, _ in self.calls]


def toml(upstreams: Upstreams, **fields: Any) -> str:
    """The configuration of the route `r`."""
    parts = [
        f'[upstreams.agents]\nformat = "{upstreams.form}"\nbase_url = "{upstreams.server.url}"\nmax_retries = 0\n'
        f'[upstreams.judges]\nformat = "{upstreams.judge_form}"\nbase_url = "{upstreams.server.url}"\nmax_retries = 0\n'
    ]
    for name, (i, o) in PRICES.items():
        upstream = "judges" if name == "judge" else "agents"
        price = f"price = {{ input = {i}, output = {o}, cache_read = 0.0, cache_write = {i} }}"
        parts.append(f'[targets.{name}]\nupstream = "{upstream}"\nmodel = "{name}"\n{price}\n')
    own = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items() if not isinstance(value, dict))
    nested = "".join(
        f"[routes.r.{key}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in value.items())
        for key, value in fields.items()
        if isinstance(value, dict)
    )
    parts.append(f'[routes.r]\ntype = "escalation"\nweak = "weak"\nstrong = "strong"\njudge = "judge"\n{own}{nested}')
    return "".join(parts)


@contextmanager
def escalating(
    folder: Path, form: str = "openai_chat", judge_form: str = "openai_chat", server: str = "", **fields: Any
) -> Iterator[tuple[Running, Upstreams]]:
    """The route served, and its upstreams. In the end every turn is decided again from what was recorded of it."""
    upstreams = Upstreams(form, judge_form)
    with upstreams.server, running(server + toml(upstreams, **fields), folder, capture="full") as gateway:
        yield gateway, upstreams
        replayed(gateway)


def body_of(form: str, step: int = 0, **more: Any) -> JSON:
    """A request whose conversation has gone `step` tool results far."""
    body: JSON = {"model": "r", **more}
    if form == "openai_responses":
        items: list[JSON] = [{"role": "user", "content": "Fix the parser"}]
        for i in range(step):
            items.append({"type": "function_call", "call_id": f"c{i}", "name": "bash", "arguments": f'{{"n":{i}}}'})
            items.append({"type": "function_call_output", "call_id": f"c{i}", "output": f"output {i}"})
        return {**body, "input": items, "store": False}
    messages: list[JSON] = [{"role": "user", "content": "Fix the parser"}]
    for i in range(step):
        if form == "openai_chat":
            call = {"id": f"c{i}", "type": "function", "function": {"name": "bash", "arguments": f'{{"n":{i}}}'}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": f"output {i}"})
        else:
            use = {"type": "tool_use", "id": f"c{i}", "name": "bash", "input": {"n": i}}
            messages.append({"role": "assistant", "content": [use]})
            result = {"type": "tool_result", "tool_use_id": f"c{i}", "content": f"output {i}"}
            messages.append({"role": "user", "content": [result]})
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    return {**body, "messages": messages} | ({"max_tokens": 100, "tools": tools} if form.startswith("anth") else {})


def begin(gateway: Running, form: str, body: JSON, session: str = "s", agent: str = "") -> http.client.HTTPConnection:
    """Send a request; the answer is the caller's to read."""
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=30)
    headers = {"content-type": "application/json"}
    headers |= {"x-turnout-session": session} if session else {}
    headers |= {"x-turnout-agent": agent} if agent else {}
    connection.request("POST", PATHS[form], json.dumps(body), headers)
    return connection


def post(gateway: Running, form: str, body: JSON, session: str = "s", agent: str = "") -> tuple[int, JSON, bytes]:
    """Send a request and read the whole answer."""
    connection = begin(gateway, form, body, session, agent)
    try:
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.005)
