"""Which results try again what failed before."""

from msgspec.structs import replace

from turnout.signals.observation import Observation

AGAIN = 12
"""Results after which doing the same thing is a new attempt at something else rather than a retry."""


class Retries:
    """What failed lately, by call and by what it was done to."""

    __slots__ = ("_count", "_failed")

    def __init__(self) -> None:
        self._count = 0
        self._failed: dict[object, int] = {}

    def add(self, o: Observation) -> Observation:
        """`o` with `retry_of` set: the same call, or the same kind of thing done to the same target, after it failed and
        before it went well."""
        at = self._count
        self._count += 1
        if o.status != "failed" and not self._failed:
            return o
        keys: tuple[object, ...] = (o.call, (o.kind, o.target)) if o.target else (o.call,)
        before = [self._failed[key] for key in keys if key and key in self._failed]
        if before and at - max(before) <= AGAIN:
            o = replace(o, retry_of=at - max(before))
        for key in keys:
            if o.status == "failed":
                self._failed[key] = at
            else:
                self._failed.pop(key, None)
        if len(self._failed) > 4 * AGAIN:
            self._failed = {key: i for key, i in self._failed.items() if at - i < AGAIN}
        return o
