"""Importing into a ledger of the test's own, and looking at all it holds."""

import sqlite3
from pathlib import Path
from typing import Any

from turnout.evaluate.importers.run import FileReport, Options, import_file
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.pricing import Prices

PRICES = Prices.load()


def imported(path: Path, ledger: Path, **options: Any) -> FileReport:
    """Import a file into the ledger at this path."""
    store = Ledger.read(f"sqlite:///{ledger}")
    try:
        return import_file(path, store.importing(options.get("capture", "signals")), Options(**options), PRICES)
    finally:
        store.close()


def turns(ledger: Path) -> list[TurnRecord]:
    """All turns, lane after lane."""
    store = Ledger.read(f"sqlite:///{ledger}")
    with store.lanes() as found:
        records = list(found)
    store.close()
    return records


def content(ledger: Path) -> list[list[Any]]:
    """Every row of turns, outcomes and messages, as it stands in the database."""
    with sqlite3.connect(ledger) as connection:
        return [list(connection.execute(f"SELECT * FROM {t} ORDER BY 1")) for t in ("turns", "outcomes", "messages")]
