"""A turn as a row of the ledger, and back. Runs in the writer's thread; what a row costs here, serving pays in CPU."""

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import asdict, replace

from turnout.conversation import Usage
from turnout.ledger import bodies
from turnout.ledger.outcome import Outcome
from turnout.ledger.schema import outcomes, turns
from turnout.ledger.trace import Call, TurnRecord

Capture: TypeAlias = Literal["none", "signals", "full"]
"""What is kept beside the numbers: nothing the client or a tool said; the signals; the bodies too."""

COLUMNS = tuple(column.name for column in turns.columns if column.name != "seq")
OUTCOME_COLUMNS = tuple(column.name for column in outcomes.columns if column.name != "seq")
Row: TypeAlias = tuple[Any, ...]
"""Values in the order of `COLUMNS`, or of `OUTCOME_COLUMNS`."""
Parts: TypeAlias = list[tuple[bytes, str, bytes]]
"""Rows for `messages`: digest, session, packed body."""

_NO_USAGE = Usage()
_LARGEST = 2**62
_decoder = msgspec.json.Decoder(TurnRecord)


def _plain(value: object) -> object:
    """What the encoder does not know, by its type's name, so that no turn is lost over it."""
    return f"<{type(value).__name__}>"


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def bare(record: TurnRecord, capture: Capture) -> TurnRecord:
    """The record without what `capture` does not keep. Bodies always go: they are stored apart."""
    changes: dict[str, Any] = {}
    if record.request is not None or record.response is not None:
        changes["request"] = changes["response"] = None
    if capture != "full" and any(call.reply for call in record.calls):
        changes["calls"] = tuple(replace(call, reply="") if call.reply else call for call in record.calls)
    if capture != "full" and record.lookups:
        changes["lookups"] = tuple(
            one.without_facts() if capture == "signals" else one.without_words() for one in record.lookups
        )
    if capture == "none":
        changes["signals"] = None
        if record.why is not None:
            changes["why"] = record.why.without_words()
    if capture != "full" and record.handover is not None:
        changes["handover"] = record.handover.without_words() if capture == "signals" else None
    return replace(record, **changes) if changes else record


def row_of(record: TurnRecord, capture: Capture) -> tuple[Row, Parts]:
    """The row of a turn, and the parts of its request that the row refers to."""
    skeleton = digests = response = None
    parts: Parts = []
    if capture == "full":
        if record.request is not None:
            skeleton, digests, parts = _request(record, record.request)
        if record.response is not None:
            response = bodies.pack(record.response)
    kept = bare(record, capture)
    try:
        text = _encoder.encode(kept).decode()
    except (ValueError, TypeError, OverflowError, RecursionError):
        text = _salvage(kept)
    why = record.why
    known, aside, tokens = _sums(record)
    row = (
        record.id,
        record.at,
        record.route,
        record.tenant,
        record.session,
        record.agent,
        record.target,
        why.source if why is not None else "",
        record.ended,
        record.cost_usd,
        gap(record),
        known,
        aside,
        *tokens,
        record.first_byte_s,
        record.total_s,
        text,
        skeleton,
        digests,
        response,
    )
    return row, parts


def outcome_row(outcome: Outcome, at: float, source: str, key: str | None = None) -> Row:
    """The row of an outcome. `key`: names one that is stored once, None for one that is always added."""
    texts = {name: clean_text(value) for name, value in asdict(outcome).items() if isinstance(value, str)}
    outcome = replace(outcome, **texts, metrics={clean_text(name): value for name, value in outcome.metrics.items()})
    names = (outcome.turn, outcome.session, outcome.tenant)
    counts = tuple(
        None if n is None else min(max(n, 0), _LARGEST)
        for n in (outcome.steps, outcome.input_tokens, outcome.output_tokens)
    )
    return (
        at,
        *names,
        _encoder.encode(outcome).decode(),
        key,
        source,
        outcome.task,
        outcome.model,
        outcome.harness,
        outcome.trial,
        outcome.success,
        outcome.cost_usd,
        *counts,
    )


def gap(record: TurnRecord) -> str:
    """Why the cost is not known: `unpriced` or `unknown`; "" when it is known or nothing was called."""
    if record.cost_usd is not None or not (record.calls or record.cost_note):
        return ""
    return "unpriced" if record.cost_note.startswith("unpriced") else "unknown"


def record_of(text: str) -> TurnRecord:
    """The record a row holds, without bodies."""
    return _decoder.decode(text)


def _request(record: TurnRecord, body: bytes) -> tuple[bytes, bytes, Parts]:
    lane = bodies.lane_key(record.tenant, record.session, record.agent)
    skeleton, pieces = bodies.split(body)
    names = [bodies.digest(piece, lane) for piece in pieces]
    parts = [(name, record.session, piece) for name, piece in zip(names, pieces, strict=True)]
    return bodies.pack(skeleton), b"".join(names), parts


def _sums(record: TurnRecord) -> tuple[float, float, tuple[int, int, int, int]]:
    """Known USD, USD of calls that were not served, and tokens by kind, over all calls."""
    calls = record.calls
    if not calls:
        return record.cost_usd or 0.0, 0.0, _tokens(record.usage or _NO_USAGE)
    if len(calls) == 1:
        (call,) = calls
        spent = call.cost_usd or 0.0
        return spent, 0.0 if call.served else spent, _tokens(call.usage or _NO_USAGE)
    known = sum(call.cost_usd or 0.0 for call in calls)
    aside = sum(call.cost_usd or 0.0 for call in calls if not call.served)
    each = [_tokens(call.usage) for call in calls if call.usage is not None]
    summed = tuple(map(sum, zip(*each, strict=True))) if each else (0, 0, 0, 0)
    return known, aside, (summed[0], summed[1], summed[2], summed[3])


def _tokens(usage: Usage) -> tuple[int, int, int, int]:
    counts = (
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_tokens or 0,
        usage.cache_write_tokens or 0,
    )
    if max(counts) > _LARGEST or min(counts) < 0:  # an upstream may claim anything; a column holds 64 bits
        a, b, c, d = (min(max(n, 0), _LARGEST) for n in counts)
        return a, b, c, d
    return counts


def _salvage(record: TurnRecord) -> str:
    """The record of a turn that holds something no encoder takes, without the free-form parts."""
    calls = tuple(
        Call(c.target, c.model, c.purpose, c.served, c.status, c.error, cost_usd=c.cost_usd) for c in record.calls
    )
    slim = replace(record, memory={}, remembered=(), drop_report=(), signals=None, why=None, usage=None, calls=calls)
    clean = {
        name: value.encode(errors="replace").decode() if isinstance(value, str) else value
        for name in slim.__struct_fields__
        if (value := getattr(slim, name)) is not None
    }
    clean["cost_note"] = clean.get("cost_note") or "parts of this record could not be encoded"
    return _encoder.encode(clean).decode()


def clean(row: Row, parts: Parts) -> tuple[Row, Parts]:
    """A row and its parts without what databases refuse in text: NUL and lone surrogates."""
    return clean_row(row), [(name, clean_text(session), body) for name, session, body in parts]


def clean_row(row: Row) -> Row:
    """A row without what databases refuse in text."""
    return tuple(clean_text(value) if isinstance(value, str) else value for value in row)


def clean_text(text: str) -> str:
    """A text without NUL, and with lone surrogates replaced."""
    return text.replace("\0", "").encode(errors="replace").decode()
