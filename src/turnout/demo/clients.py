"""The official clients, each carrying a session's conversation in its own format."""

import json
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from turnout.demo.session import Result, Session, ToolSpec

TURN = "x-turnout-turn"
_CACHED = {"type": "ephemeral"}


class Call(Struct, frozen=True):
    """A tool call as the client received it."""

    id: str
    name: str
    arguments: dict[str, Any]


class Answered(Struct, frozen=True):
    """What came back: the turn's id in the ledger, the text, the calls."""

    turn: str
    text: str
    calls: tuple[Call, ...]


class Talk(Protocol):
    """One conversation with the gateway."""

    def say(self, text: str) -> None:
        """Add what the user says."""
        ...

    def answer(self) -> Answered:
        """Send the conversation so far, and add what comes back to it."""
        ...

    def results(self, calls: Sequence[Call], results: Sequence[Result]) -> None:
        """Add what the tools returned."""
        ...


class AnthropicTalk:
    """Messages, streamed, with cache marks as coding agents set them: on the instructions and on the newest message."""

    def __init__(self, session: Session, url: str, route: str, lane: str) -> None:
        import anthropic

        self._client = anthropic.Anthropic(
            base_url=url, api_key="demo", max_retries=0, default_headers={"x-turnout-session": lane}
        )
        self._model = route
        self._system = [{"type": "text", "text": session.system, "cache_control": _CACHED}]
        self._tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in session.tools
        ]
        self._messages: list[dict[str, Any]] = []

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def answer(self) -> Answered:
        last = self._messages[-1]
        marked = [*last["content"][:-1], {**last["content"][-1], "cache_control": _CACHED}]
        stream: Any = self._client.messages.stream(
            model=self._model,
            max_tokens=8192,
            system=self._system,  # type: ignore[arg-type]  # plain dictionaries of the documented shape
            tools=self._tools,  # type: ignore[arg-type]
            messages=[*self._messages[:-1], {**last, "content": marked}],  # type: ignore[list-item]
        )
        with stream as events:
            message = events.get_final_message()
            turn = events.response.headers[TURN]
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = tuple(
            Call(block.id, block.name, dict(block.input)) for block in message.content if block.type == "tool_use"
        )
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in calls]
        self._messages.append({"role": "assistant", "content": content})
        return Answered(turn, text, calls)

    def results(self, calls: Sequence[Call], results: Sequence[Result]) -> None:
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result.text, "is_error": result.error}
            for call, result in zip(calls, results, strict=True)
        ]
        self._messages.append({"role": "user", "content": blocks})


class ChatTalk:
    """Chat Completions, not streamed."""

    def __init__(self, session: Session, url: str, route: str, lane: str) -> None:
        self._client = _openai(url, lane)
        self._model = route
        self._tools = [{"type": "function", "function": _function(tool)} for tool in session.tools]
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": session.system}]

    def say(self, text: str) -> None:
        self._messages.append({"role": "user", "content": text})

    def answer(self) -> Answered:
        raw = self._client.chat.completions.with_raw_response.create(
            model=self._model, messages=self._messages, tools=self._tools
        )
        message = raw.parse().choices[0].message
        calls = tuple(Call(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ())
        self._messages.append(message.model_dump(exclude_none=True))
        return Answered(raw.headers[TURN], message.content or "", calls)

    def results(self, calls: Sequence[Call], results: Sequence[Result]) -> None:
        self._messages += [
            {"role": "tool", "tool_call_id": call.id, "content": result.text}
            for call, result in zip(calls, results, strict=True)
        ]


class ResponsesTalk:
    """Responses, streamed, nothing stored: the whole conversation goes along each time."""

    def __init__(self, session: Session, url: str, route: str, lane: str) -> None:
        self._client = _openai(url, lane)
        self._model = route
        self._system = session.system
        self._tools = [{"type": "function", "strict": False, **_function(tool)} for tool in session.tools]
        self._input: list[dict[str, Any]] = []

    def say(self, text: str) -> None:
        self._input.append({"role": "user", "content": text})

    def answer(self) -> Answered:
        stream = self._client.responses.create(
            model=self._model,
            instructions=self._system,
            tools=self._tools,
            input=self._input,
            store=False,
            stream=True,
        )
        with stream:
            response = next(event.response for event in stream if event.type == "response.completed")
        calls = tuple(
            Call(item.call_id, item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        )
        text = response.output_text
        if text:
            self._input.append({"role": "assistant", "content": text})
        self._input += [
            {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": json.dumps(c.arguments)}
            for c in calls
        ]
        return Answered(stream.response.headers[TURN], text, calls)

    def results(self, calls: Sequence[Call], results: Sequence[Result]) -> None:
        self._input += [
            {"type": "function_call_output", "call_id": call.id, "output": result.text}
            for call, result in zip(calls, results, strict=True)
        ]


def _openai(url: str, lane: str) -> Any:
    import openai

    return openai.OpenAI(
        base_url=f"{url}/v1", api_key="demo", max_retries=0, default_headers={"x-turnout-session": lane}
    )


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


_KINDS: dict[str, type[AnthropicTalk] | type[ChatTalk] | type[ResponsesTalk]] = {
    "anthropic": AnthropicTalk,
    "openai_chat": ChatTalk,
    "openai_responses": ResponsesTalk,
}


def talk(session: Session, url: str, route: str, lane: str) -> Talk:
    """A conversation by the session's own client. `lane`: names the session to the gateway."""
    return _KINDS[session.client](session, url, route, lane)
