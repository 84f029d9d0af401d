"""A target's breaker and its retries together: whatever a call comes to, the next one can still reach the target."""

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from turnout.errors import UpstreamError
from turnout.upstream import health, models
from turnout.upstream.credentials import Redactor
from turnout.upstream.http import Timeouts, Url
from turnout.upstream.models import Model
from turnout.upstream.target import Target, Upstream


class Transport:
    """Plays outcomes in order; the last one repeats."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.calls = 0

    async def send(
        self, method: str, url: Url, headers: Sequence[tuple[bytes, bytes]], body: bytes, timeouts: Timeouts
    ) -> Any:
        self.calls += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self) -> None: ...


class Answer:
    status = 200
    headers: list[tuple[bytes, bytes]] = []  # noqa: RUF012 - nobody changes it

    async def next(self) -> bytes | None:
        return None

    def header(self, name: bytes) -> bytes | None:
        return None

    async def read(self, limit: int) -> bytes:
        return b""

    def abort(self) -> None: ...


def down() -> UpstreamError:
    return UpstreamError("unavailable", "no connection")


def model(transport: Transport, retries: int) -> Model:
    upstream = Upstream("openai_chat", base_url="http://127.0.0.1:9", max_retries=retries)
    return Model("t", Target("u", "m"), upstream, None, transport)


async def call(target: Model) -> None:
    opened = await target.open(b"{}", "openai_chat", [], Redactor([]))
    opened.succeeded()


def test_a_probe_that_fails_is_not_retried_and_the_next_may_probe_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(models, "time", SimpleNamespace(monotonic=lambda: clock[0], time=time.time))
    monkeypatch.setattr(models, "delay_s", lambda *_: 0.0)
    transport = Transport(*[down() for _ in range(20)], Answer())
    target = model(transport, retries=2)

    async def run() -> None:
        for _ in range(health.TRIP_AFTER):
            with pytest.raises(UpstreamError, match="no connection"):
                await call(target)
        with pytest.raises(UpstreamError, match="cooling down"):
            await call(target)
        for _ in range(3):
            clock[0] += health.LONGEST_COOLING_S + 1
            before = transport.calls
            with pytest.raises(UpstreamError, match="no connection"):
                await call(target)
            assert transport.calls == before + 1
        transport.outcomes = [Answer()]
        clock[0] += health.LONGEST_COOLING_S + 1
        await call(target)
        await call(target)
        assert target.health.cooling_until == 0.0

    asyncio.run(run())


def test_a_call_cancelled_while_it_waits_to_retry_leaves_the_target_reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(models, "time", SimpleNamespace(monotonic=lambda: clock[0], time=time.time))
    monkeypatch.setattr(models, "delay_s", lambda *_: 30.0)
    target = model(Transport(down(), Answer()), retries=1)
    target.health.cooling_until = 1.0  # cooled down long ago: the next call is a probe

    async def run() -> None:
        task = asyncio.create_task(call(target))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        clock[0] += health.LONGEST_COOLING_S
        await call(target)

    asyncio.run(run())
