"""A finished turn as OpenTelemetry spans: one for the turn, one per model call. Needs the `otel` extra.

Names follow the GenAI conventions; routing, which they do not cover, has the namespace `turnout`. No span holds content.
"""

import time
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from turnout.conversation import Usage
from turnout.ledger.trace import Call, TurnRecord

PROVIDERS = {"openai_chat": "openai", "openai_responses": "openai", "anthropic_messages": "anthropic"}
WRITES = ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write.input_tokens")
"""Two families of the conventions name cache writes differently; both names are set."""

Attributes = dict[str, AttributeValue]


class SpanExporter:
    """Makes spans of turns and hands them to a processor."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "turnout"}), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("turnout")

    def export(self, record: TurnRecord) -> None:
        """Hand over a finished turn."""
        start = int(record.at * 1e9)
        name = f"chat {record.model or record.asked_for}".rstrip()
        turn = self._tracer.start_span(name, kind=SpanKind.SERVER, attributes=turn_attributes(record), start_time=start)
        if record.ended not in ("ok", "client_gone"):
            turn.set_status(Status(StatusCode.ERROR, record.error or record.ended))
        context = trace.set_span_in_context(turn)
        for call in record.calls:
            begun = start + int(call.started_s * 1e9)
            span = self._tracer.start_span(
                f"chat {call.model}",
                context,
                kind=SpanKind.CLIENT,
                attributes=call_attributes(call, record),
                start_time=begun,
            )
            if call.first_byte_s is not None:
                span.add_event("first byte", timestamp=start + int(call.first_byte_s * 1e9))
            if call.error:
                span.set_status(Status(StatusCode.ERROR, call.error))
            span.end(begun if call.ended_s is None else start + int(call.ended_s * 1e9))
        turn.end(start + int(record.total_s * 1e9) if record.total_s else time.time_ns())

    def close(self) -> None:
        """Send what waits."""
        self._provider.shutdown()


def open_exporter(endpoint: str) -> SpanExporter:
    """An exporter to a collector's base URL, over OTLP/HTTP; "" = as the standard variables say."""
    sender = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces") if endpoint else OTLPSpanExporter()
    return SpanExporter(BatchSpanProcessor(sender))


def turn_attributes(record: TurnRecord) -> Attributes:
    """What the span of a turn says."""
    why = record.why
    found: dict[str, AttributeValue | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(record.upstream_format or record.format),
        "gen_ai.request.model": record.asked_for or None,
        "gen_ai.response.model": record.model or None,
        "gen_ai.response.id": record.response_id or None,
        "gen_ai.response.finish_reasons": [record.stop] if record.stop else None,
        "gen_ai.conversation.id": record.session or None,
        "gen_ai.agent.id": record.agent or None,
        "gen_ai.agent.name": record.agent_program or None,
        "http.response.status_code": record.status,
        "error.type": record.error or (record.ended if record.ended in ("error", "cut") else None),
        "turnout.turn": record.id,
        "turnout.route": record.route,
        "turnout.router": record.router or None,
        "turnout.policy": record.policy or None,
        "turnout.target": record.target or None,
        "turnout.tenant": record.tenant or None,
        "turnout.lane.rung": record.rung,
        "turnout.agent.kind": record.agent_kind,
        "turnout.ended": record.ended,
        "turnout.propensity": record.propensity,
        "turnout.cost_usd": record.cost_usd,
        "turnout.cost_note": record.cost_note or None,
        "turnout.decision_s": record.decision_s,
        "turnout.first_byte_s": record.first_byte_s,
        "turnout.dropped_fields": record.drops or None,
    }
    if why is not None:
        found["turnout.source"] = why.source
        found["turnout.reason"] = why.sentence
        found["turnout.rule"] = why.rule or None
        found["turnout.place"] = why.place or None
        found["turnout.score"] = why.score
        found["turnout.confidence"] = why.confidence
        found["turnout.threshold"] = why.threshold
        for name, value in why.values.items():
            if isinstance(value, str | bool | int | float):
                found[f"turnout.signal.{name}"] = value
    return _present(found) | _usage(record.usage)


def call_attributes(call: Call, record: TurnRecord) -> Attributes:
    """What the span of a model call says."""
    found: dict[str, AttributeValue | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(record.upstream_format or record.format) if call.served else None,
        "gen_ai.request.model": call.model,
        "gen_ai.conversation.id": record.session or None,
        "http.response.status_code": call.status,
        "error.type": call.error or None,
        "turnout.target": call.target,
        "turnout.purpose": call.purpose,
        "turnout.served": call.served,
        "turnout.unheard": call.unheard or None,
        "turnout.retries": call.retries,
        "turnout.cost_usd": call.cost_usd,
        "turnout.cost_note": call.cost_note or None,
    }
    return _present(found) | _usage(call.usage)


def _usage(usage: Usage | None) -> Attributes:
    """Tokens. By the conventions, input counts the whole prompt, cached or not."""
    if usage is None:
        return {}
    found: dict[str, AttributeValue | None] = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        **dict.fromkeys(WRITES, usage.cache_write_tokens),
    }
    return _present(found)


def _present(found: Mapping[str, AttributeValue | None]) -> Attributes:
    return {name: value for name, value in found.items() if value is not None}
