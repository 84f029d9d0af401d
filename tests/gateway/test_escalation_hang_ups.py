"""Clients that hang up on an escalation route, whatever is going on: the upstream is let go at once, nothing is remembered."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.vendors import EVENTS
from tests.gateway.escalating import FORMATS, STRONG, WEAK, Upstreams, begin, body_of, escalating, post, until, verdict
from tests.played import Step, event, stream

ASKED = {"weak": ["weak"], "judge": ["weak", "judge"], "strong": ["weak", "judge", "strong"]}


def endless(upstreams: Upstreams, name: str, form: str, body: dict[str, Any]) -> Iterator[Step]:
    """The beginning of a reply, then signs of life until the connection is closed."""
    play = {"weak": WEAK, "strong": STRONG, "judge": verdict(True)}[name]
    events = [
        event(b"[DONE]" if one.get("done") else one, "" if form == "openai_chat" else one["type"])
        for one in EVENTS[form](play, body)
    ]
    head, *frames = stream(*events[:5], end=False)
    try:
        yield head
        yield from frames
        while True:
            yield 0.02
            yield b"3\r\n:\n\n\r\n"
    finally:
        upstreams.closed[name] = time.monotonic()


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("phase", ["weak", "judge", "strong"])
@pytest.mark.parametrize("form", FORMATS)
def test_a_hang_up_lets_the_upstream_go_and_remembers_nothing(
    tmp_path: Path, form: str, phase: str, streamed: bool
) -> None:
    with escalating(tmp_path, form, form) as (gateway, upstreams):
        upstreams.votes = lambda number: True
        post(gateway, form, body_of(form, 0, stream=streamed))  # the first vote of two
        whole = getattr(upstreams, phase)
        waits = lambda body: endless(upstreams, phase, form, body)  # noqa: E731
        if phase != "judge" and not streamed:
            waits = lambda body: never(upstreams, phase)  # noqa: E731
        setattr(upstreams, phase, waits)
        before = len(upstreams.calls)
        connection = begin(gateway, form, body_of(form, 1, stream=streamed))
        until(lambda: phase in upstreams.asked()[before:])
        if phase == "strong" and streamed:
            response = connection.getresponse()
            while b"The" not in response.readline():
                pass
        connection.close()
        went = time.monotonic()
        until(lambda: phase in upstreams.closed)
        assert upstreams.closed[phase] - went < 1.0
        until(lambda: len(gateway.turns()) == 2)
        turn, first = gateway.turns()
        assert (turn.ended, turn.status, turn.remembered) == ("client_gone", 499, ())
        assert [call.target for call in turn.calls] == ASKED[phase]
        assert not any(call.served for call in turn.calls)
        broken = turn.calls[-1]
        assert broken.error == "cancelled"
        assert broken.ended_s is not None
        assert all(call.cost_usd is not None and call.usage is not None for call in turn.calls[:-1])
        if form == "anthropic_messages" and streamed:
            # What Messages says of the prompt at the beginning is known, though the reply broke off.
            assert broken.usage is not None
            assert broken.usage.prompt_tokens == {"weak": 100, "judge": 900, "strong": 200}[phase]
        # The same turn again is the second vote, as if it had not been asked before; the draft before it stays.
        setattr(upstreams, phase, whole)
        _, headers, _ = post(gateway, form, body_of(form, 1, stream=streamed))
        assert headers["x-turnout-target"] == "strong"
        again = gateway.settled()[0]
        assert again.why is not None
        assert (again.why.rule, again.why.values["streak"]) == ("latched", 2)
        assert gateway.gateway.metrics.in_flight == 0
        assert json.loads(json.dumps(first.why.values if first.why else {}))["streak"] == 1


def never(upstreams: Upstreams, name: str) -> Iterator[Step]:
    """A whole reply that never ends: its body grows by white space until the connection is closed."""
    try:
        yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        while True:
            yield 0.02
            yield b"1\r\n \r\n"
    finally:
        upstreams.closed[name] = time.monotonic()
