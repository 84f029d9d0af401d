"""Whether finished turns go to an OpenTelemetry collector. Light: the SDK is loaded only when they do."""

import importlib
import importlib.util
import logging
import os
from typing import Protocol

from turnout.errors import ConfigError
from turnout.ledger.trace import TurnRecord

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Exporter(Protocol):
    """Takes finished turns; sends them in the background."""

    def export(self, record: TurnRecord) -> None: ...

    def close(self) -> None: ...


def exporter(endpoint: str = "") -> Exporter | None:
    """The exporter asked for by the configuration (`endpoint`: a collector's base URL) or by the standard variables; None when
    neither asks. Raises ConfigError when the configuration asks and the extra is not installed; the variables, which may be
    set for other programs, only lead to a warning then."""
    if not endpoint and not any(os.environ.get(name) for name in VARIABLES):
        return None
    if importlib.util.find_spec("opentelemetry") is None or importlib.util.find_spec("opentelemetry.exporter") is None:
        message = "OpenTelemetry is not installed; run: pip install 'turnout[otel]'"
        if endpoint:
            raise ConfigError(message, key="otel.endpoint")
        logging.getLogger("turnout.ledger").warning("%s (%s is set)", message, " or ".join(VARIABLES))
        return None
    made: Exporter = importlib.import_module("turnout.ledger.spans").open_exporter(endpoint)
    return made
