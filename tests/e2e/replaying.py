"""Recorded exchanges played again: a server that answers with the recorded bytes, and what a recorded reply holds, read by
hand (not by the codecs under test)."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = dict[str, Any]
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


class Replay:
    """Answers every request with the record put `on`; keeps the bodies it was sent."""

    def __init__(self) -> None:
        self.on: Any = None
        self.bodies: list[bytes] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": self}))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> "Replay":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: Replay
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None: ...

    def do_POST(self) -> None:
        self.owner.bodies.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
        row = self.owner.on
        data = reply_bytes(row)
        self.send_response(row.get("status") or 200)
        kind = "text/event-stream" if is_stream(row) else "application/json"
        recorded = row.get("response_headers") or {}
        self.send_header("content-type", recorded.get("content-type") or kind)
        if "retry-after" in recorded:
            self.send_header("retry-after", recorded["retry-after"])
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def is_stream(row: Any) -> bool:
    """Whether the record is of a streamed reply."""
    return bool(row.get("response_sse") or row.get("response_chunks"))


def reply_bytes(row: Any) -> bytes:
    """The recorded reply, as bytes of a response body."""
    if row.get("response_sse"):
        return str(row["response_sse"]).encode()
    if row.get("response_chunks"):
        chunks = [c if isinstance(c, str) else json.dumps(c) for c in row["response_chunks"]]
        return b"".join(framed(chunk, row["protocol"]) for chunk in chunks)
    return json.dumps(row["response"]).encode()


def framed(chunk: str, protocol: str) -> bytes:
    """One data line as a server-sent event; the two newer formats name their events."""
    if protocol == "openai_chat":
        return f"data: {chunk}\n\n".encode()
    return f"event: {json.loads(chunk)['type']}\ndata: {chunk}\n\n".encode()


def data_lines(stream: bytes) -> list[JSON]:
    """The JSON events of a stream of server-sent events."""
    lines = stream.decode().replace("\r\n", "\n").split("\n")
    found = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
    return [json.loads(line) for line in found if line and line != "[DONE]"]


def said(row: Any) -> tuple[str, list[tuple[str, Any]]]:
    """The visible text and the client's tool calls (name, arguments) of a recorded success."""
    return READ[row["protocol"]](first_reply(row) if is_stream(row) else row["response"])


def first_reply(row: Any) -> list[JSON]:
    """The events of a recorded stream up to its first terminal: some fixtures hold the replies of several turns in a row."""
    events = data_lines(reply_bytes(row))
    for number, event in enumerate(events):
        if event.get("type") in ("response.completed", "response.incomplete", "message_stop"):
            return events[: number + 1]
    return events


def failed(row: Any) -> bool:
    """Whether the record is of a failure, told by a status or inside the reply."""
    if (row.get("status") or 200) >= 400:
        return True
    events = first_reply(row) if is_stream(row) else [row["response"]]
    return any(
        event.get("type") in ("error", "response.failed") or event.get("error") or event.get("status") == "failed"
        for event in events
    )


def arguments_of(text: str) -> Any:
    """A call's arguments: the JSON they are, else the text."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _chat(body: Any) -> tuple[str, list[tuple[str, Any]]]:
    if not isinstance(body, list):
        message = body["choices"][0]["message"]
        calls = message.get("tool_calls") or []
        return message.get("content") or "", [_chat_call(call) for call in calls]
    text, calls_by_index = "", {}
    for chunk in body:
        for choice in chunk.get("choices") or []:
            if choice.get("index", 0):
                continue
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            for part in delta.get("tool_calls") or []:
                call = calls_by_index.setdefault(part.get("index", 0), {"name": "", "arguments": ""})
                function = part.get("function") or {}
                call["name"] = call["name"] or function.get("name") or ""
                call["arguments"] += function.get("arguments") or ""
    return text, [(c["name"], arguments_of(c["arguments"])) for c in calls_by_index.values()]


def _chat_call(call: JSON) -> tuple[str, Any]:
    if call.get("type") == "custom":
        return call["custom"]["name"], call["custom"]["input"]
    return call["function"]["name"], arguments_of(call["function"]["arguments"])


def _responses(body: Any) -> tuple[str, list[tuple[str, Any]]]:
    if isinstance(body, list):
        done = [event["item"] for event in body if event["type"] == "response.output_item.done"]
        body = {"output": done}
    text = "".join(
        part.get("text", "")
        for item in body["output"]
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
    return text, [_responses_call(i) for i in body["output"] if i["type"] in ("function_call", "custom_tool_call")]


def _responses_call(item: JSON) -> tuple[str, Any]:
    """A call as another format shows it: namespaces in the name, free text as the argument `input`."""
    space = item.get("namespace")
    name = f"{space}__{item['name']}" if space else item["name"]
    if item["type"] == "custom_tool_call":
        return name, {"input": item["input"]}
    return name, arguments_of(item["arguments"])


def _messages(body: Any) -> tuple[str, list[tuple[str, Any]]]:
    if not isinstance(body, list):
        text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
        return text, [(b["name"], b["input"]) for b in body["content"] if b["type"] == "tool_use"]
    text, calls = "", {}
    for event in body:
        if event["type"] == "content_block_start":
            block = event["content_block"]
            text += block.get("text") or "" if block["type"] == "text" else ""
            if block["type"] == "tool_use":
                calls[event["index"]] = [block["name"], "", block.get("input") or {}]
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                text += delta["text"]
            elif delta["type"] == "input_json_delta" and event["index"] in calls:
                calls[event["index"]][1] += delta["partial_json"]
    return text, [(name, arguments_of(raw) if raw else given) for name, raw, given in calls.values()]


READ: dict[str, Any] = {"openai_chat": _chat, "openai_responses": _responses, "anthropic_messages": _messages}
