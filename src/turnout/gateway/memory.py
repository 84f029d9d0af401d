"""Keeps the serving process small and its pauses short."""

import asyncio
import ctypes
import gc

TRIM_EVERY_S = 15.0


def spare_the_collector() -> None:
    """Take what start-up made out of the garbage collector's sight, and let it look less often.

    A turn leaves its record behind for the ledger's writer, so young objects pile up fast without any of them being garbage;
    reference counts free nearly all the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


async def trim_for_ever() -> None:
    """Give freed memory back to the system from time to time: the allocator keeps what bursts of large bodies took."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(TRIM_EVERY_S)
        trim(0)
