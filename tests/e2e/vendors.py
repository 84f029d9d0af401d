"""A server that speaks three vendors' formats natively, written by hand: nothing here comes from the codecs under test.

The model name of a request says which play it gets (`PLAYS`, or a refusal such as `s429`). `requests` keeps what came in.
"""

import base64
import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FORMATS = ("openai_chat", "openai_responses", "anthropic_messages")
PATHS = {"/chat/completions": "openai_chat", "/responses": "openai_responses", "/messages": "anthropic_messages"}
JSON = dict[str, Any]
ENCRYPTED = base64.b64encode(b"opaque reasoning of the vendor").decode()
SIGNATURE = base64.b64encode(b"signature of the thinking").decode()


@dataclasses.dataclass(frozen=True)
class Call:
    """A tool call as the vendor makes it; `arguments` is the JSON text, sent as it stands."""

    id: str
    name: str
    arguments: str
    namespace: str = ""

    @property
    def flat(self) -> str:
        """The name where names have no namespace."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


@dataclasses.dataclass(frozen=True)
class Play:
    """One reply. Token counts: the whole prompt, what of it was read from and written to a cache, the output."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    stop: str = "end"
    prompt: int = 100
    cached: int = 60
    written: int = 10
    output: int = 12
    breaks: bool = False
    item: JSON | None = None  # a further output item of Responses


TEXT = "Hello, Wörld \U0001f682 - all signals green."
FIRST_CALLS = (
    Call("call_a1", "read_file", '{"path": "src/a b.py", "lines": [1, 2]}'),
    Call("call_a2", "run", '{"command": "echo \\"h\\u00e9\\" | wc -c", "timeout": 5}'),
)
SECOND_CALL = (Call("call_b1", "list_files", "{}"),)
SHELL_COMMAND = "echo hello-from-tool"
SHELL_ANSWER = "All done: hello-from-tool"

PLAYS: dict[str, Play] = {
    "text": Play(TEXT),
    "reasoning": Play(TEXT, reasoning="First I think. Then I speak."),
    "structured": Play('{"city": "Zürich", "trains": 3}'),
    "length": Play("Cut off right he", stop="length"),
    "stop_sequence": Play("One, two", stop="stop_sequence"),
    "refusal": Play("I will not.", stop="refusal"),
    "patch": Play(
        "Patching.", item={"type": "apply_patch_call", "id": "apc_1", "call_id": "c1", "status": "completed"}
    ),
    "breaks": Play("Some words, then ", breaks=True),
}
LOOP = (
    Play("Let me look.", calls=FIRST_CALLS, stop="tool_calls"),
    Play(calls=SECOND_CALL, stop="tool_calls"),
    Play("Three tools later: done."),
)
REFUSALS: dict[str, tuple[int, str]] = {
    "s400": (400, "invalid_request_error"),
    "s401": (401, "authentication_error"),
    "s403": (403, "permission_error"),
    "s404": (404, "not_found_error"),
    "s429": (429, "rate_limit_error"),
    "s500": (500, "api_error"),
}


class Vendors:
    """Serves until closed. `requests`: (format, headers, body) of each request, in order."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, JSON, JSON]] = []
        self.silent_s = 0.0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> "Vendors":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def last(self) -> JSON:
        """The body of the newest request."""
        return self.requests[-1][2]


class _Handler(BaseHTTPRequestHandler):
    owner: Vendors
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None: ...

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw)
        form = next(form for path, form in PATHS.items() if self.path.partition("?")[0].endswith(path))
        self.owner.requests.append((form, {k.lower(): v for k, v in self.headers.items()}, body))
        name = body["model"].partition("#")[0]
        if name in REFUSALS:
            self.whole(REFUSALS[name][0], refusal_body(form, name))
            return
        play = played(name, form, body)
        if name == "silent" and not tool_results(form, body):
            time.sleep(self.owner.silent_s)
        if body.get("stream"):
            self.stream(form, play, body)
        else:
            self.whole(200, REPLY[form](play, body["model"]))

    def whole(self, status: int, body: JSON) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if status == 429:
            self.send_header("retry-after", "7")
        self.end_headers()
        self.wfile.write(data)

    def stream(self, form: str, play: Play, body: JSON) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in EVENTS[form](play, body):
            kind = event.get("type") if form != "openai_chat" else None
            if play.breaks and (event.get("type") in ("error", "response.failed") or "error" in event):
                time.sleep(0.2)  # so that what came before has reached the client
            data = b"[DONE]" if event.get("done") else json.dumps(event).encode()
            frame = (f"event: {kind}\n".encode() if kind else b"") + b"data: " + data + b"\n\n"
            self.wfile.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


def refusal_body(form: str, name: str) -> JSON:
    """What a vendor of a format says when it refuses."""
    status, kind = REFUSALS[name]
    error: JSON = {"type": kind, "message": f"the vendor says {status}"}
    if form == "anthropic_messages":
        return {"type": "error", "error": error, "request_id": "req_1"}
    return {"error": {**error, "param": None, "code": None}}


def played(name: str, form: str, body: JSON) -> Play:
    """The play a request gets: `loop` and `agent` depend on how far its conversation is."""
    results = tool_results(form, body)
    if name == "loop":
        return LOOP[{0: 0, 2: 1}.get(len(results), 2)]
    if name in ("agent", "silent"):
        call = shell_call(form, body)
        if call is None or results:
            return Play(SHELL_ANSWER, prompt=1200)
        return Play(calls=(call,), stop="tool_calls", prompt=1200)
    if name == "delegating":
        return delegated(form, body, results)
    return PLAYS[name]


SUBTASK = "SUBTASK: say hello with echo"
SUB_ANSWER = "The delegated part is done."
MAIN_ANSWER = "The sub-agent said hello."


def delegated(form: str, body: JSON, results: list[str]) -> Play:
    """A main agent that hands its work to a sub-agent, and the sub-agent that does it with one shell call."""
    if any(text.strip().startswith(SUBTASK) for text in user_texts(form, body)):
        call = shell_call(form, body)
        if call is None or results:
            return Play(SUB_ANSWER)
        return Play(calls=(call,), stop="tool_calls")
    call = delegation(form, body, results)
    return Play(calls=(call,), stop="tool_calls") if call is not None else Play(MAIN_ANSWER)


def delegation(form: str, body: JSON, results: list[str]) -> Call | None:
    """The call with which a main agent goes on: it starts a sub-agent, and waits for it where starting does not."""
    prefix = "toolu_" if form == "anthropic_messages" else "call_"
    call_id = f"{prefix}{time.monotonic_ns():x}"
    names = {(tool.get("function") or tool).get("name") for tool in body.get("tools") or []}
    if "Agent" in names and not results:
        arguments: JSON = {"description": "Say hello", "prompt": SUBTASK, "subagent_type": "general-purpose"}
        return Call(call_id, "Agent", json.dumps({**arguments, "run_in_background": False}))
    space = next((n for n in names if n and n.startswith("multi_agent")), "").partition("__")[0]
    if space and not results:
        return Call(call_id, "spawn_agent", json.dumps({"message": SUBTASK}), space)
    if space and len(results) == 1:
        targets = [json.loads(results[0])["agent_id"]]
        return Call(call_id, "wait_agent", json.dumps({"targets": targets, "timeout_ms": 60_000}), space)
    return None


def user_texts(form: str, body: JSON) -> list[str]:
    """What users said in a request of a format, part by part."""
    said = body["input"] if form == "openai_responses" else body["messages"]
    contents = [message.get("content") for message in said if message.get("role") == "user"]
    return [
        part if isinstance(part, str) else str(part.get("text", ""))
        for content in contents
        for part in ([content] if isinstance(content, str) else content or [])
    ]


def tool_results(form: str, body: JSON) -> list[str]:
    """The texts of all tool results in a request of a format."""
    if form == "openai_chat":
        return [_text(m["content"]) for m in body["messages"] if m["role"] == "tool"]
    if form == "openai_responses":
        items = body["input"] if isinstance(body["input"], list) else []
        return [_text(i["output"]) for i in items if str(i.get("type", "")).endswith("call_output")]
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [_text(b.get("content", "")) for b in blocks if b["type"] == "tool_result"]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content or [])


def shell_call(form: str, body: JSON) -> Call | None:
    """A call of the shell tool the client offers; None when it offers none."""
    for tool in body.get("tools") or []:
        name = (tool.get("function") or tool).get("name")
        arguments: JSON | None = {
            "Bash": {"command": SHELL_COMMAND, "description": "Say hello"},
            "exec_command": {"cmd": SHELL_COMMAND},
            "shell_command": {"command": SHELL_COMMAND},
            "shell": {"command": ["bash", "-lc", SHELL_COMMAND]},
        }.get(name)
        if arguments is not None:
            prefix = "toolu_" if form == "anthropic_messages" else "call_"
            return Call(f"{prefix}{time.monotonic_ns():x}", name, json.dumps(arguments))
    return None


def pieces(text: str) -> Iterator[str]:
    """`text` in small pieces, as models send it."""
    for at in range(0, len(text), 7):
        yield text[at : at + 7]


# OpenAI Chat Completions -----------------------------------------------------------------------------------------------

CHAT_FINISH = {"end": "stop", "stop_sequence": "stop", "length": "length", "tool_calls": "tool_calls"}


def chat_usage(play: Play) -> JSON:
    return {
        "prompt_tokens": play.prompt,
        "completion_tokens": play.output,
        "total_tokens": play.prompt + play.output,
        "prompt_tokens_details": {"cached_tokens": play.cached, "cache_write_tokens": play.written},
        "completion_tokens_details": {"reasoning_tokens": 5 if play.reasoning else 0},
    }


def chat_reply(play: Play, model: str) -> JSON:
    message: JSON = {"role": "assistant", "content": play.text or None}
    if play.stop == "refusal":
        message = {"role": "assistant", "content": None, "refusal": play.text}
    if play.reasoning:
        message["reasoning_content"] = play.reasoning
    if play.calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.flat, "arguments": c.arguments}} for c in play.calls
        ]
    finish = CHAT_FINISH.get(play.stop, "content_filter")
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {
        "id": "chatcmpl-v1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": model,
        "choices": [choice],
        "usage": chat_usage(play),
    }


def chat_events(play: Play, body: JSON) -> Iterator[JSON]:
    base = {"id": "chatcmpl-v1", "object": "chat.completion.chunk", "created": 1700000000, "model": body["model"]}

    def chunk(delta: JSON, finish: str | None = None) -> JSON:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(play.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(play.text):
        yield chunk({"refusal" if play.stop == "refusal" else "content": piece})
    if play.breaks:
        yield {"error": {"message": "the vendor broke", "type": "server_error", "code": "server_error"}}
        return
    for index, call in enumerate(play.calls):
        opening = {"index": index, "id": call.id, "type": "function", "function": {"name": call.flat, "arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for piece in pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, CHAT_FINISH.get(play.stop, "content_filter"))
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**base, "choices": [], "usage": chat_usage(play)}
    yield {"done": True}


# OpenAI Responses ------------------------------------------------------------------------------------------------------


def responses_usage(play: Play) -> JSON:
    return {
        "input_tokens": play.prompt,
        "input_tokens_details": {"cached_tokens": play.cached, "cache_write_tokens": play.written},
        "output_tokens": play.output,
        "output_tokens_details": {"reasoning_tokens": 5 if play.reasoning else 0},
        "total_tokens": play.prompt + play.output,
    }


def responses_items(play: Play) -> list[JSON]:
    items: list[JSON] = []
    if play.reasoning:
        summary = [{"type": "summary_text", "text": play.reasoning}]
        items.append({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": ENCRYPTED})
    if play.text:
        part: JSON = {"type": "output_text", "text": play.text, "annotations": [], "logprobs": []}
        if play.stop == "refusal":
            part = {"type": "refusal", "refusal": play.text}
        message: JSON = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
        items.append({**message, "status": "incomplete" if play.stop == "length" else "completed"})
    for n, c in enumerate(play.calls):
        call = {"id": f"fc_{n}", "type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        space = {"namespace": c.namespace} if c.namespace else {}
        items.append({**call, **space, "status": "completed"})
    if play.item is not None:
        items.append(play.item)
    return items


def responses_reply(play: Play, model: str, status: str = "") -> JSON:
    length = play.stop == "length"
    return {
        "id": f"resp_{time.monotonic_ns():x}",
        "object": "response",
        "created_at": 1700000000,
        "status": status or ("incomplete" if length else "completed"),
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if length and not status else None,
        "model": model,
        "output": [] if status else responses_items(play),
        "usage": None if status else responses_usage(play),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def responses_events(play: Play, body: JSON) -> Iterator[JSON]:
    done = responses_reply(play, body["model"])
    begun = {**responses_reply(play, body["model"], "in_progress"), "id": done["id"]}
    for number, event in enumerate(_responses_events(play, begun, done)):
        yield {"type": event.pop("type"), "sequence_number": number, **event}


def _responses_events(play: Play, begun: JSON, done: JSON) -> Iterator[JSON]:
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for at, item in enumerate(done["output"]):
        where = {"item_id": item["id"], "output_index": at}
        empty = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}
        opening = {**item, **empty.get(item["type"], {})}
        if item["type"] != "reasoning":
            opening["status"] = "in_progress"
        yield {"type": "response.output_item.added", "output_index": at, "item": opening}
        if item["type"] == "reasoning":
            yield from _summary(where, item)
        elif item["type"] == "function_call":
            for piece in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
            arguments = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **where, **arguments}
        elif item["type"] == "message":
            yield from _content(where, item)
            if play.breaks:
                error = {"code": "server_error", "message": "the vendor broke"}
                yield {"type": "response.failed", "response": {**begun, "status": "failed", "error": error}}
                return
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": f"response.{done['status']}", "response": done}


def _summary(where: JSON, item: JSON) -> Iterator[JSON]:
    (part,) = item["summary"]
    where = {**where, "summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _content(where: JSON, item: JSON) -> Iterator[JSON]:
    (part,) = item["content"]
    kind, key = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    where = {**where, "content_index": 0}
    yield {"type": "response.content_part.added", **where, "part": {**part, key: ""}}
    for piece in pieces(part[key]):
        yield {"type": f"response.{kind}.delta", **where, "delta": piece} | ({"logprobs": []} if key == "text" else {})
    yield {"type": f"response.{kind}.done", **where, key: part[key]} | ({"logprobs": []} if key == "text" else {})
    yield {"type": "response.content_part.done", **where, "part": part}


# Anthropic Messages ----------------------------------------------------------------------------------------------------

MESSAGES_STOP = {"end": "end_turn", "stop_sequence": "stop_sequence", "length": "max_tokens", "tool_calls": "tool_use"}


def messages_usage(play: Play) -> JSON:
    return {
        "input_tokens": play.prompt - play.cached - play.written,
        "cache_read_input_tokens": play.cached,
        "cache_creation_input_tokens": play.written,
        "output_tokens": play.output,
        "service_tier": "standard",
    }


def messages_blocks(play: Play) -> list[JSON]:
    blocks: list[JSON] = []
    if play.reasoning:
        blocks.append({"type": "thinking", "thinking": play.reasoning, "signature": SIGNATURE})
    if play.text:
        blocks.append({"type": "text", "text": play.text})
    for c in play.calls:
        blocks.append({"type": "tool_use", "id": c.id, "name": c.flat, "input": json.loads(c.arguments)})
    return blocks


def messages_reply(play: Play, model: str) -> JSON:
    return {
        "id": "msg_v1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": messages_blocks(play),
        "stop_reason": MESSAGES_STOP.get(play.stop, "refusal"),
        "stop_sequence": "three" if play.stop == "stop_sequence" else None,
        "usage": messages_usage(play),
    }


def messages_events(play: Play, body: JSON) -> Iterator[JSON]:
    whole = messages_reply(play, body["model"])
    start = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": {**start, "usage": {**whole["usage"], "output_tokens": 1}}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        opening = {
            "thinking": {"type": "thinking", "thinking": "", "signature": ""},
            "text": {"type": "text", "text": ""},
            "tool_use": {**block, "input": {}},
        }[block["type"]]
        yield {"type": "content_block_start", "index": index, "content_block": opening}
        for delta in _growth(block, play):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if play.breaks:
            yield {"type": "error", "error": {"type": "overloaded_error", "message": "the vendor broke"}}
            return
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": play.output}}
    yield {"type": "message_stop"}


def _growth(block: JSON, play: Play) -> Iterator[JSON]:
    if block["type"] == "thinking":
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    else:
        (arguments,) = [c.arguments for c in play.calls if c.id == block["id"]]
        for piece in pieces(arguments if arguments != "{}" else ""):
            yield {"type": "input_json_delta", "partial_json": piece}


REPLY = {"openai_chat": chat_reply, "openai_responses": responses_reply, "anthropic_messages": messages_reply}
EVENTS = {"openai_chat": chat_events, "openai_responses": responses_events, "anthropic_messages": messages_events}
