"""The ledger's writer: one thread that turns records into rows and rows into the database, in batches.

What may be lost: nothing on SIGTERM or a normal exit; on SIGKILL the records of the last flush interval. While the database
is locked, full or away, records wait in memory up to a bound and beyond it in an overflow file, which outlives the process.
Only when that file cannot be written either, or the database refuses a row for what it holds, is a turn dropped: it is
counted, logged, and said by `health`.
"""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import islice

from msgspec import Struct
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from turnout.ledger import bodies, database
from turnout.ledger.inserts import Inserts
from turnout.ledger.rows import Capture, Parts, Row, clean, row_of
from turnout.ledger.spill import Spill, SpillFile
from turnout.ledger.trace import TurnRecord

BATCH = 256
SLICE = 32
"""Rows made before the thread lets go of the interpreter lock: bounds what serving waits for it."""
QUEUED_AT_MOST = 10_000
HELD_AT_MOST = 64 * 2**20
"""Bytes of bodies that may wait in memory."""
SEEN_AT_MOST = 20_000
"""Digests of messages known to be stored, so that a session's history is not offered again each turn."""
RETRY_AT_MOST_S = 5.0

_log = logging.getLogger("turnout.ledger")
_Entry = tuple[Row, Parts]


class Health(Struct, frozen=True):
    """How the ledger is doing. `queued`: turns not yet in the database; `spilled`: those of them in an overflow file.
    `dropped`: lost, because neither the database nor the disk took them. `error`: what was said last, "" when all is well."""

    ok: bool
    queued: int
    written: int
    spilled: int
    dropped: int
    error: str


class Writer:
    """Takes records without waiting; its thread writes them. `lock`: held around every use of the database."""

    def __init__(
        self,
        engine: Engine,
        capture: Capture,
        flush_interval_s: float,
        spill: Spill,
        lock: AbstractContextManager[object],
    ) -> None:
        self._engine = engine
        self._capture: Capture = capture
        self._interval_s = flush_interval_s
        self._lock = lock
        self._inserts = Inserts(engine)
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._queue: deque[TurnRecord] = deque()
        self._pending: list[_Entry] = []
        self._taking = threading.Lock()
        self._spill = spill
        self._spilling: SpillFile | None = None
        self._spilled: list[SpillFile] = []
        self._spill_lock = threading.Lock()
        self._bytes_in = self._bytes_out = 0
        self.appended = self.written = self.dropped = 0
        self._error = ""
        self._wake = threading.Event()
        self._progress = threading.Condition()
        self._closing = self._abandoned = False
        self._thread = threading.Thread(target=self._run, name="turnout-ledger", daemon=True)

    def start(self) -> None:
        """Adopt what dead processes left behind and begin to write."""
        self._spilled.extend(self._spill.orphans())
        self._thread.start()

    def append(self, record: TurnRecord) -> None:
        """Take a record. Never waits for the database. To be called from one thread."""
        self.appended += 1
        if record.request is not None or record.response is not None:
            self._bytes_in += _size(record)
        queue = self._queue
        if len(queue) >= QUEUED_AT_MOST or self._bytes_in - self._bytes_out > HELD_AT_MOST or self._closing:
            self._bytes_out += _size(record)
            made: list[_Entry] = []
            self._make(record, made)
            for entry in made:
                self._keep(entry)
            return
        queue.append(record)
        if len(queue) == BATCH:
            self._wake.set()

    def flush(self, within_s: float) -> bool:
        """Wait until all that was appended before is settled; False when the database did not take it in time."""
        goal = self.appended
        if self.written + self.dropped >= goal:
            return True
        self._wake.set()
        with self._progress:
            return self._progress.wait_for(lambda: self.written + self.dropped >= goal, within_s)

    def close(self, within_s: float) -> None:
        """Write what is left. What the database does not take within the time goes to the overflow file."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        self._thread.join(within_s)
        with self._taking:
            self._abandoned = True
            left = self._pending[:]
            while self._queue:
                self._make(self._queue.popleft(), left)
        for entry in left:
            self._keep(entry)
        with self._spill_lock:
            for file in [*self._spilled, *([self._spilling] if self._spilling is not None else [])]:
                file.close(done=False)
            self._spilled, self._spilling = [], None

    def health(self) -> Health:
        """The state of the ledger now."""
        files = [*self._spilled, self._spilling]
        spilled = sum(file.rows for file in files if file is not None)
        queued = max(0, self.appended - self.written - self.dropped)
        return Health(not self._error and not self.dropped, queued, self.written, spilled, self.dropped, self._error)

    def _run(self) -> None:
        wait_s = self._interval_s
        while True:
            closing = self._closing
            if not closing:
                self._wake.wait(wait_s)
                self._wake.clear()
            try:
                self._drain()
                wait_s = self._interval_s
            except (SQLAlchemyError, OSError) as error:
                self._failed(database.reason(error))
                wait_s = min(wait_s * 2, RETRY_AT_MOST_S)
            except Exception as error:  # the writer lives as long as the process, whatever a record holds
                self._failed(f"{type(error).__name__} while writing")
                wait_s = RETRY_AT_MOST_S
            if closing or self._abandoned:
                return

    def _failed(self, why: str) -> None:
        if why != self._error:
            _log.error("the ledger cannot be written; turns are kept and tried again: %s", why)
        self._error = why

    def _drain(self) -> None:
        """Write everything that waits."""
        while self._take():
            refused = self._store(self._pending)
            with self._taking:
                stored, self._pending = len(self._pending) - refused, []
            self._settled(stored, refused)
        self._drain_spill()
        if self._error:
            _log.warning("the ledger is being written again")
            self._error = ""

    def _take(self) -> bool:
        """Turn waiting records into rows, letting serving run every few. Whether there is something to write."""
        for _ in range(BATCH // SLICE):
            with self._taking:
                if self._abandoned:
                    return False
                if len(self._pending) >= BATCH or not self._queue:
                    break
                for _ in range(min(SLICE, len(self._queue))):
                    record = self._queue.popleft()
                    self._bytes_out += _size(record)
                    self._make(record, self._pending)
            time.sleep(0)
        return bool(self._pending)

    def _make(self, record: TurnRecord, into: list[_Entry]) -> None:
        """Add a record's row. One that cannot be made into a row is dropped, counted, and does not stop the others."""
        try:
            into.append(row_of(record, self._capture))
        except Exception as error:  # a record may hold anything a router put there
            self.dropped += 1
            _log.error("a turn could not be made into a row: %s", type(error).__name__)

    def _drain_spill(self) -> None:
        with self._spill_lock:
            if self._spilling is not None:
                self._spilled.append(self._spilling)
                self._spilling = None
        while self._spilled and not self._abandoned:
            file = self._spilled[0]
            rows, stored, refused = file.read(), 0, 0
            while batch := list(islice(rows, BATCH)):
                bad = self._store(batch)
                stored, refused = stored + len(batch) - bad, refused + bad
            file.close(done=True)
            del self._spilled[0]
            # Rows of a dead process were never appended here.
            mine = file.rows > 0
            self._settled(stored if mine else 0, refused)

    def _settled(self, stored: int, refused: int) -> None:
        with self._progress:
            self.written += stored
            self.dropped += refused
            self._progress.notify_all()

    def _store(self, entries: list[_Entry]) -> int:
        """Write rows in one transaction; how many the database refused. Raises what says that the database is away."""
        parts = self._unseen(entries)
        refused = 0
        try:
            with self._lock, self._engine.begin() as connection:
                self._inserts.run(connection, [row for row, _ in entries], parts)
        except (DBAPIError, ValueError, OverflowError) as error:
            if _away(error):
                raise
            refused = sum(not self._store_one(entry) for entry in entries)
        for name, _, _ in parts:
            self._seen[name] = None
        while len(self._seen) > SEEN_AT_MOST:
            self._seen.popitem(last=False)
        return refused

    def _store_one(self, entry: _Entry) -> bool:
        """Write a row of a batch that was refused, without what databases do not take in text. Whether it was taken."""
        row, parts = clean(*entry)
        packed = [(name, session, bodies.pack(body)) for name, session, body in parts]
        try:
            with self._lock, self._engine.begin() as connection:
                self._inserts.run(connection, [row], packed)
        except (DBAPIError, ValueError, OverflowError) as error:
            if _away(error):
                raise
            _log.error("the ledger refused a turn: %s", database.reason(error))
            return False
        return True

    def _unseen(self, entries: Iterable[_Entry]) -> Parts:
        """The request parts of a batch that are not known to be stored, packed."""
        fresh: dict[bytes, tuple[bytes, str, bytes]] = {}
        for _, parts in entries:
            for name, session, body in parts:
                if name in self._seen:
                    self._seen.move_to_end(name)
                elif name not in fresh:
                    fresh[name] = (name, session, bodies.pack(body))
        return list(fresh.values())

    def _keep(self, entry: _Entry) -> None:
        """Put a row into the overflow file."""
        with self._spill_lock:
            try:
                if self._spilling is None:
                    self._spilling = self._spill.new()
                self._spilling.write(*clean(*entry))
            except OSError as error:
                self.dropped += 1
                self._failed(f"a turn was dropped, the overflow file cannot be written: {error.strerror}")


def _size(record: TurnRecord) -> int:
    return len(record.request or b"") + len(record.response or b"")


def _away(error: Exception) -> bool:
    """Whether the database cannot be written at all now, rather than refusing this row."""
    if not isinstance(error, DBAPIError):
        return False
    return isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated
