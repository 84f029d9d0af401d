"""The live host of a run: makes the calls it asks for, all of a batch at once, and feeds their outcomes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from turnout.steps import Run

R = TypeVar("R")
Performer = Callable[[Any], Awaitable[Any]]
"""Makes one call and returns its outcome. Failures a router can act on are outcomes, not exceptions."""


async def drive(run: Run[Any, Any, R], perform: Mapping[type, Performer]) -> R:
    """The result of `run`, its calls performed by the one `perform` names for their type.

    Whatever interrupts it (cancellation, a performer's bug) unwinds the run first.
    """
    try:
        while not run.done:
            calls = run.pending
            if len(calls) == 1:
                outcomes = [await perform[type(calls[0])](calls[0])]
            else:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(_awaited(perform[type(call)](call))) for call in calls]
                outcomes = [task.result() for task in tasks]
            run.feed(outcomes)
        return run.result
    finally:
        run.close()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
