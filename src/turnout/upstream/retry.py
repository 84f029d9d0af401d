"""When to try the same target again, and after how long."""

import random

from turnout.errors import UpstreamError

FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 4.0
LONGEST_WAIT_S = 10.0
"""A stated Retry-After above this is not waited out here: the next target, or the client, is better off."""

_RETRIED = frozenset({"unavailable", "rate_limit"})
_NEVER = frozenset({501, 505})


def delay_s(
    error: UpstreamError,
    attempt: int,
    left_s: float | None = None,
    longest_delay_s: float = LONGEST_DELAY_S,
    longest_wait_s: float = LONGEST_WAIT_S,
) -> float | None:
    """Seconds to wait before attempt `attempt` + 1 (attempts count from 0); None = do not try this target again.

    Exponential with full jitter; a Retry-After is honoured to the second plus jitter. Deterministic faults (other 4xx, content
    policy, overflow) and time-outs are not retried: a model that did not answer in minutes will not in the next ones.
    `left_s`: time left for the whole turn. `longest_delay_s`, `longest_wait_s`: for work that has more patience than a client.
    """
    if error.kind not in _RETRIED or error.status in _NEVER:
        return None
    ceiling: float = min(longest_delay_s, FIRST_DELAY_S * 2**attempt)
    wait = ceiling * (0.5 + 0.5 * random.random())
    if error.retry_after_s is not None:
        if error.retry_after_s > longest_wait_s:
            return None
        wait = error.retry_after_s + ceiling * 0.25 * random.random()
    if left_s is not None and wait >= left_s:
        return None
    return wait
