"""Attends to turns that take their time: notices clients that hang up, keeps silent streams alive, ends turns at their deadline.

One task ticks for the whole process; a turn that is over within the first tick costs two dictionary operations. Only a turn
older than that gets a watcher of its client's connection.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

TICK_S = 0.25


class Attended:
    """One turn under attendance. The turn's task is cancelled when the client is `gone` or the turn `expired`.

    `reading`: the turn itself still receives its request, so that nobody else may.
    `silent_since`: monotonic time of the last bytes sent. `pulse`: sends a sign of life; None = the client gets none.
    """

    __slots__ = (
        "began",
        "deadline",
        "expired",
        "gone",
        "pulse",
        "pulsing",
        "reading",
        "receive",
        "silent_since",
        "task",
        "watcher",
    )

    def __init__(
        self,
        receive: Callable[[], Awaitable[Any]],
        deadline_s: float | None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.receive = receive
        self.began = self.silent_since = time.monotonic()
        self.deadline = None if deadline_s is None else self.began + deadline_s
        self.task: asyncio.Task[Any] | None = asyncio.current_task(loop)
        self.reading = True
        self.gone = False
        self.expired = False
        self.pulse: Callable[[], Awaitable[None]] | None = None
        self.pulsing: asyncio.Task[None] | None = None
        self.watcher: asyncio.Task[None] | None = None

    def spoke(self) -> None:
        """Bytes went out to the client."""
        self.silent_since = time.monotonic()

    def answered(self) -> None:
        """The client has got everything: what it does from now on no longer matters to the turn."""
        self.task = None


class Attendant:
    """Ticks over all attended turns. `keepalive_after_s`: silence after which a turn's pulse is sent."""

    def __init__(self, keepalive_after_s: float = 10.0) -> None:
        self.keepalive_after_s = keepalive_after_s
        self._turns: dict[Attended, None] = {}
        self._ticking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._turns)

    def start(self) -> None:
        """Begin to tick; needs a running loop."""
        self._ticking = asyncio.create_task(self._tick(), name="attendant")

    async def stop(self) -> None:
        """Stop ticking."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)

    def enter(self, turn: Attended) -> None:
        """Attend to `turn` from now on."""
        self._turns[turn] = None

    def leave(self, turn: Attended) -> None:
        """The turn is over. What it held on to here would keep all of it alive until a collection finds the circle."""
        self._turns.pop(turn, None)
        if turn.watcher is not None:
            turn.watcher.cancel()
        if turn.pulsing is not None and not turn.pulsing.done():
            turn.pulsing.cancel()
        turn.task = turn.watcher = turn.pulsing = turn.pulse = None

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._look_at_all(time.monotonic())

    def _look_at_all(self, now: float) -> None:
        for turn in tuple(self._turns):
            self._look(turn, now)

    def _look(self, turn: Attended, now: float) -> None:
        task = turn.task
        if task is None or task.done():
            self.leave(turn)
        elif turn.deadline is not None and now >= turn.deadline and not turn.expired and not turn.gone:
            turn.expired = True
            task.cancel()
        else:
            if turn.watcher is None and not turn.reading and now - turn.began >= TICK_S:
                turn.watcher = asyncio.create_task(_watch(turn))
            if turn.pulse is not None and now - turn.silent_since >= self.keepalive_after_s:
                turn.silent_since = now
                if turn.pulsing is None or turn.pulsing.done():
                    turn.pulsing = asyncio.create_task(_pulse(turn.pulse))


async def _watch(turn: Attended) -> None:
    """Waits for the client to hang up, then cancels the turn."""
    while True:
        message = await turn.receive()
        if message["type"] == "http.disconnect":
            break
    if turn.task is not None and not turn.task.done() and not turn.expired:
        turn.gone = True
        turn.task.cancel()


async def _pulse(pulse: Callable[[], Awaitable[None]]) -> None:
    await pulse()
