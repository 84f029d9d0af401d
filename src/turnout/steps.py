"""Run: drives a generator of calls, one step at a time, without doing any of the calls.

A router (or any other decision procedure) is a plain generator: it yields a tuple of calls it wants made, is sent the
tuple of their outcomes in the same order, and returns a result. Hosts differ only in how they perform calls: live,
from a tape, in lockstep with many others, or from literals in a test.
"""

from collections.abc import Generator, Iterable
from typing import Any, Generic, TypeVar

C = TypeVar("C")
O = TypeVar("O")  # noqa: E741 - the three type variables of a run: call, outcome, result
R = TypeVar("R")

Steps = Generator[tuple[C, ...], tuple[O, ...], R]
"""A generator that yields calls in batches, receives their outcomes in order, and returns a result."""


class Run(Generic[C, O, R]):
    """One decision procedure in flight.

    Look at `pending`, make those calls, `feed` their outcomes in order; once `done`, read `result`. `log` holds every
    batch of calls with its outcomes. `close` unwinds the procedure (its `finally` blocks run). An exception raised by
    the procedure propagates from the constructor or from `feed`; such a run, like a closed one, takes nothing more and has
    no result.
    """

    __slots__ = ("_over", "_result", "_steps", "done", "log", "pending")

    def __init__(self, work: Iterable[Any]) -> None:
        """`work`: a generator of steps, or finished work (a decision) whose iterator returns itself at once."""
        self._steps: Any = iter(work)
        self._result: Any = None
        self._over = False
        self.done = False
        self.pending: tuple[C, ...] = ()
        self.log: list[tuple[tuple[C, ...], tuple[O, ...]]] = []
        self._advance(self._steps.__next__)

    @property
    def result(self) -> R:
        """What the procedure returned. Raises RuntimeError while calls are pending, and when it was closed or failed."""
        if not self.done:
            if self._over:
                raise RuntimeError("the run was closed or failed; it has no result")
            raise RuntimeError("the run has pending calls; feed their outcomes first")
        result: R = self._result
        return result

    def feed(self, outcomes: Iterable[O]) -> None:
        """Give the outcomes of `pending`, in order, and advance to the next batch or to the result."""
        answered = tuple(outcomes)
        if self.done or self._over:
            raise RuntimeError("the run is done" if self.done else "the run was closed or failed")
        if len(answered) != len(self.pending):
            raise ValueError(f"{len(self.pending)} calls are pending, {len(answered)} outcomes were given")
        self.log.append((self.pending, answered))
        self._advance(lambda: self._steps.send(answered))

    def close(self) -> None:
        """Abandon the procedure; its `finally` blocks run. Closing a finished run does nothing."""
        if not (self.done or self._over):
            self.pending = ()
            self._over = True
            if hasattr(self._steps, "close"):
                self._steps.close()

    def _advance(self, step: Any) -> None:
        try:
            self.pending = step()
        except StopIteration as stop:
            self.done, self.pending, self._result = True, (), stop.value
        except BaseException:
            self._over, self.pending = True, ()
            raise
