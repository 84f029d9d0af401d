"""OpenTelemetry: only when asked for, with the names of the conventions, and with no content."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.ledger.records import turn

from turnout.conversation import Usage
from turnout.errors import ConfigError
from turnout.ledger import otel
from turnout.ledger.trace import Call

sdk = pytest.importorskip("opentelemetry.sdk.trace.export", reason="the otel extra is not installed")


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that keeps what is posted to it."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


def _record() -> Any:
    usage = Usage(100, 20, 300, 50, 0, 5)
    calls = (
        Call("judge", "vendor-judge", "judge", error="timeout", started_s=0.1, ended_s=0.2),
        Call(
            "small",
            "vendor-small",
            served=True,
            status=200,
            usage=usage,
            cost_usd=0.001,
            started_s=0.2,
            ended_s=0.9,
            reply="done",
        ),
    )
    return turn(
        calls=calls,
        usage=usage,
        asked_for="coder",
        format="openai_chat",
        upstream_format="anthropic_messages",
        stop="end",
    )


def _spans(record: Any) -> list[Any]:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from turnout.ledger.spans import SpanExporter

    memory = InMemorySpanExporter()
    exporter = SpanExporter(sdk.SimpleSpanProcessor(memory))
    exporter.export(record)
    exporter.close()
    return list(memory.get_finished_spans())


def test_a_turn_and_its_calls() -> None:
    record = _record()
    judge, answer, whole = _spans(record)
    assert whole.name == "chat vendor-small"
    assert (judge.parent.span_id, answer.parent.span_id) == (whole.context.span_id, whole.context.span_id)
    assert whole.attributes["gen_ai.request.model"] == "coder"
    assert whole.attributes["gen_ai.response.model"] == "vendor-small"
    assert whole.attributes["gen_ai.provider.name"] == "anthropic"
    assert whole.attributes["gen_ai.conversation.id"] == "s1"
    assert whole.attributes["gen_ai.usage.input_tokens"] == 450
    assert whole.attributes["gen_ai.usage.cache_read.input_tokens"] == 300
    assert whole.attributes["gen_ai.usage.cache_creation.input_tokens"] == 50
    assert whole.attributes["gen_ai.usage.cache_write.input_tokens"] == 50
    assert whole.attributes["turnout.route"] == "coder"
    assert whole.attributes["turnout.source"] == "signals"
    assert whole.attributes["turnout.signal.errors"] == 2
    assert judge.attributes["error.type"] == "timeout"
    assert not judge.status.is_ok
    assert answer.attributes["turnout.cost_usd"] == 0.001
    assert whole.end_time - whole.start_time == 10**9
    assert answer.start_time - whole.start_time == pytest.approx(0.2e9, abs=1000)


def test_unknown_numbers_are_absent_rather_than_zero() -> None:
    (whole,) = _spans(turn(calls=(), usage=None, cost_usd=None, cost_note="unknown: no usage"))
    assert "gen_ai.usage.input_tokens" not in whole.attributes
    assert "turnout.cost_usd" not in whole.attributes
    assert whole.attributes["turnout.cost_note"].startswith("unknown")


def test_spans_reach_a_collector(
    collector: tuple[str, list[tuple[str, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, got = collector
    exporter = otel.exporter(endpoint)
    assert exporter is not None
    exporter.export(_record())
    exporter.close()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    by_variable = otel.exporter()
    assert by_variable is not None
    by_variable.export(_record())
    by_variable.close()
    assert [path for path, _ in got] == ["/v1/traces", "/v1/traces"]
    assert all(b"vendor-small" in body and b"turnout.route" in body for _, body in got)


def test_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in otel.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert otel.exporter() is None


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install"):
        otel.exporter("http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert otel.exporter() is None
    assert "pip install" in caplog.text


def test_the_sdk_is_not_loaded_unless_asked() -> None:
    code = "import sys; from turnout.ledger import otel; otel.exporter(); sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "src"}, check=False).returncode == 0
