"""Which results try again what failed before."""

from msgspec.structs import replace

from turnout.signals.observation import Observation

AGAIN = 12
"""Results after which doing the same thing is a new attempt at something else rather than a retry."""


def with_retries(seen: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """`seen` with `retry_of` set: the same call, or the same kind of thing done to the same target, after it failed and
    before it went well."""
    first = next((i for i, o in enumerate(seen) if o.status == "failed"), -1)
    if first < 0 or first == len(seen) - 1:
        return seen
    made = list(seen)
    failed: dict[object, int] = {}
    for i in range(first, len(seen)):
        o = seen[i]
        keys: tuple[object, ...] = (o.call, (o.kind, o.target)) if o.target else (o.call,)
        before = [failed[key] for key in keys if key and key in failed]
        if before and i - max(before) <= AGAIN:
            made[i] = replace(o, retry_of=i - max(before))
        for key in keys:
            if o.status == "failed":
                failed[key] = i
            else:
                failed.pop(key, None)
    return tuple(made)
