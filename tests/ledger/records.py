"""Records for tests of the ledger."""

from typing import Any

from turnout.conversation import Usage
from turnout.ledger.trace import Call, TurnRecord
from turnout.routing.core import Why
from turnout.signals import Observation, Signals


def turn(n: int = 0, **changes: Any) -> TurnRecord:
    """A finished turn of session s1, route coder, target small."""
    usage = Usage(input_tokens=100, output_tokens=20, cache_read_tokens=300, cache_write_tokens=0)
    fields: dict[str, Any] = {
        "id": f"turn-{n:06d}",
        "at": 1_000_000.0 + n,
        "route": "coder",
        "session": "s1",
        "agent": "main",
        "target": "small",
        "model": "vendor-small",
        "why": Why("signals", "two failed commands in a row", rule="errors", score=0.4, values={"errors": 2}),
        "signals": Signals(
            observations=(Observation(tool="Bash", kind="execute", status="failed", exit_code=1),), depth=3
        ),
        "calls": (Call("small", "vendor-small", served=True, status=200, usage=usage, cost_usd=0.001, reply="done"),),
        "usage": usage,
        "cost_usd": 0.001,
        "total_s": 1.0,
        "first_byte_s": 0.25,
    }
    return TurnRecord(**{**fields, **changes})
