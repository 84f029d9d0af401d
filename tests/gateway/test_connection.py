"""A response's head and body leave together, and neither ever waits for the other in vain."""

import asyncio
from typing import Any

from turnout.gateway.connection import Joining


class Wire:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def played(steps: list[Any]) -> list[bytes]:
    wire = Wire()

    async def play() -> None:
        joining = Joining(wire, asyncio.get_running_loop())  # type: ignore[arg-type]
        for step in steps:
            if step is None:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            elif step == "close":
                joining.close()
            else:
                joining.write(step)
        await asyncio.sleep(0)

    asyncio.run(play())
    return wire.written


def test_head_and_body_are_one_write():
    assert played([b"head", b"body"]) == [b"headbody"]


def test_a_head_without_a_body_goes_out_by_itself():
    assert played([b"head"]) == [b"head"]


def test_a_late_body_follows_its_head():
    assert played([b"head", None, b"body", b"more"]) == [b"head", b"body", b"more"]


def test_nothing_is_lost_on_closing():
    assert played([b"head", "close"]) == [b"head"]
    assert played([b"head", b"body", b"more", "close"]) == [b"headbody", b"more"]
