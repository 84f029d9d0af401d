"""Turns that spent money in every way, and what they spent, added up a second time from the ledger's file alone."""

import json
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

from turnout.conversation import Usage
from turnout.ledger.store import Ledger
from turnout.ledger.trace import Call, TurnRecord
from turnout.pricing.rates import Rates
from turnout.routing.warmth import CacheUse

LARGE = Rates(input=5.0, output=25.0, cache_read=0.5, cache_write_5m=6.25, cache_write_1h=10.0)
SMALL = Rates(input=1.0, output=5.0, cache_read=0.1, cache_write_5m=1.25)

CONFIG = """
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
[targets.small]
upstream = "main"
model = "m-small"
price = { input = 1.0, output = 5.0, cache_read = 0.1, cache_write = 1.25 }
[targets.large]
upstream = "main"
model = "m-large"
price = { input = 5.0, output = 25.0, cache_read = 0.5, cache_write = 6.25, cache_write_1h = 10.0 }
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
"""


def rates_of(target: str, model: str) -> Rates | None:
    return {"small": SMALL, "large": LARGE}.get(target)


def call(target: str, usd: float | None, purpose: str = "answer", **more: Any) -> Call:
    return Call(target, f"m-{target}", purpose, cost_usd=usd, **more)


def answer(target: str, usage: Usage) -> Call:
    """A served call, at the target's price."""
    rates = SMALL if target == "small" else LARGE
    kinds = (
        (usage.input_tokens, rates.input),
        (usage.output_tokens, rates.output),
        (usage.cache_read_tokens, rates.cache_read),
        (usage.cache_write_tokens, rates.cache_write_5m),
    )
    usd = sum((tokens or 0) * (rate or 0.0) for tokens, rate in kinds) / 1e6
    return call(target, usd, served=True, usage=usage)


def turn(n: int, target: str, *calls: Call, session: str = "s1", **more: Any) -> TurnRecord:
    costs = [one.cost_usd for one in calls]
    known = None if None in costs else sum(one or 0.0 for one in costs)
    served = next((one for one in calls if one.served), None)
    fields = {"agent": "main", "cost_usd": known, "usage": served.usage if served is not None else None, **more}
    return TurnRecord(
        id=f"t{n}",
        at=1.7e9 + n,
        route="coder",
        session=session,
        target=target,
        model=f"m-{target}",
        calls=calls,
        **fields,
    )


WARM = Usage(100, 50, 8_000, 0)
COLD = Usage(100, 50, 0, 10_000)


def turns() -> list[TurnRecord]:
    """One session with a switch up and down, a judge, a discarded draft, a failed attempt, an expiry; and one whose client hung
    up, with a turn of unknown cost."""
    switched = CacheUse("large", 10_100, lost_tokens=9_000, cause="switch")
    expired = CacheUse("small", 10_100, lost_tokens=8_000, cause="expiry")
    return [
        turn(0, "small", answer("small", COLD), cache=CacheUse("small", 10_100, cause="first")),
        turn(1, "small", answer("small", WARM), call("judge", 0.002, "judge", usage=Usage(500, 5))),
        turn(
            2,
            "large",
            call("small", 0.004, "draft", usage=WARM),
            call("judge", 0.003, "judge"),
            answer("large", COLD),
            cache=switched,
        ),
        turn(3, "small", call("small", 0.001, error="overloaded"), answer("small", COLD), cache=expired),
        turn(4, "large", answer("large", WARM), session="s2", ended="client_gone"),
        turn(5, "large", call("large", None, served=True), session="s2", cost_note="unpriced"),
        turn(6, "large", call("large", 0.0, error="timeout"), session="s2", ended="error"),
        turn(7, "small", answer("small", WARM), session=""),
    ]


def written(path: Path, records: list[TurnRecord] | None = None) -> str:
    """A ledger with these turns; its URL."""
    url = f"sqlite:///{path}"
    ledger = Ledger.open(url)
    for record in turns() if records is None else records:
        ledger.append(record)
    ledger.close()
    return url


def plain(path: Path) -> dict[str, Any]:
    """The spend by kind, from the JSON in the file and with none of the package's code."""
    found: dict[str, float] = defaultdict(float)
    alone = paid = 0.0
    for (text,) in sqlite3.connect(path).execute("select record from turns"):
        record = json.loads(text)
        cache = record.get("cache") or {}
        for one in record.get("calls", ()):
            usd = one.get("cost_usd")
            if usd is None:
                continue
            if one.get("purpose", "answer") not in ("answer", "draft"):
                found["judges"] += usd
            elif not one.get("served"):
                found["failed" if one.get("error") else "discarded"] += usd
            elif record.get("ended") == "client_gone":
                found["hung up"] += usd
            else:
                lost = cache.get("lost_tokens", 0) if cache.get("cause") in ("switch", "expiry") else 0
                # All that was lost was written anew: at 1.25 times the input price instead of a tenth.
                extra = lost * {"small": 1.15, "large": 5.75}[one["target"]] / 1e6
                found["cold after a switch" if cache.get("cause") == "switch" else "cold otherwise"] += extra
                found[f"answers {one['target']}"] += usd - extra
            if one.get("served") and record.get("cost_usd") is not None:
                usage = one["usage"]
                lost = cache.get("lost_tokens", 0) if cache.get("cause") == "switch" else 0
                alone += (
                    5 * usage["input_tokens"]
                    + 25 * usage["output_tokens"]
                    + 0.5 * (usage["cache_read_tokens"] + lost)
                    + 6.25 * (usage["cache_write_tokens"] - lost)
                ) / 1e6
                paid += record["cost_usd"]
    return {"parts": {name: usd for name, usd in found.items() if usd}, "alone": alone, "paid": paid}
