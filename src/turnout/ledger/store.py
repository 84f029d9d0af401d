"""The ledger: every turn, written off the hot path, read back for people, replay and evaluation."""

import atexit
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import DBAPIError

from turnout.errors import ConfigError
from turnout.ledger import canaries, database, reading, shadows
from turnout.ledger.canaries import Batch, Checkpoint, Place, Stop
from turnout.ledger.importing import Importing
from turnout.ledger.outcome import Outcome, Reported
from turnout.ledger.reading import By, Page, Stats, TurnFilter
from turnout.ledger.rows import Capture
from turnout.ledger.shadows import ShadowFigures, ShadowTurn
from turnout.ledger.spill import Spill
from turnout.ledger.trace import TurnRecord
from turnout.ledger.writer import Health, Writer
from turnout.routing.beside import Flip

FRESH_WITHIN_S = 2.0
"""How long a read waits for turns that are on their way to the database."""


class Ledger:
    """The record of all turns, in SQLite or PostgreSQL.

    `append` takes microseconds and never waits; everything else does I/O and belongs in a thread. Reads see what was appended
    before. Writers in several processes may share a database.
    """

    def __init__(self, engine: Engine, writer: Writer | None, lock: AbstractContextManager[object]) -> None:
        self._engine = engine
        self._writer = writer
        self._lock = lock
        # The writer's own method, for it is called per request.
        self.append: Callable[[TurnRecord], None] = writer.append if writer is not None else _closed
        """Record a turn. To be called from one thread; never waits, never raises for the database's sake."""
        if writer is not None:
            atexit.register(self.close)

    @classmethod
    def open(
        cls, url: str, capture: Capture = "signals", flush_interval_s: float = 0.25, *, spill: Path | None = None
    ) -> "Ledger":
        """Open the ledger for writing, making or migrating its tables as needed. Raises ConfigError.

        `spill`: path that overflow files begin with; by default beside the SQLite file, else in the user's state folder.
        """
        engine, lock = _engine(url)
        writer = Writer(engine, capture, flush_interval_s, Spill(spill or _spill_stem(engine.url)), lock)
        writer.start()
        return cls(engine, writer, lock)

    @classmethod
    def read(cls, url: str) -> "Ledger":
        """Open the ledger to read it and to add outcomes, beside the process that writes it. Raises ConfigError."""
        engine, lock = _engine(url, reading=True)
        return cls(engine, None, lock)

    def flush(self, within_s: float = FRESH_WITHIN_S) -> bool:
        """Wait until all that was appended is in the database; False when it did not take it in time."""
        return self._writer is None or self._writer.flush(within_s)

    def close(self, within_s: float = 10.0) -> None:
        """Write what is left and let go of the database. Also done when the process exits."""
        if self._writer is not None:
            self._writer.close(within_s)
            atexit.unregister(self.close)
        self._engine.dispose()

    def health(self) -> Health:
        """How writing goes."""
        return self._writer.health() if self._writer is not None else Health(True, 0, 0, 0, 0, "")

    def turn(self, id: str) -> TurnRecord | None:
        """A turn, with its bodies where they were captured."""
        with self._reading() as connection:
            return reading.one(connection, id)

    def turns(self, which: TurnFilter | None = None, *, limit: int = 50, before: str = "") -> Page:
        """A page of turns, newest first, without bodies. Raises ClientError for a bad cursor."""
        with self._reading() as connection:
            return reading.page(connection, which or TurnFilter(), limit, before)

    def stats(
        self,
        since: float | None = None,
        *,
        by: Sequence[By] = ("route", "target", "source"),
        which: TurnFilter | None = None,
    ) -> Stats:
        """Figures over the turns since a moment (Unix seconds), in all and by group."""
        which = which or TurnFilter(since=since)
        with self._reading() as connection:
            return reading.stats(connection, which, by)

    def add_outcome(self, outcome: Outcome) -> None:
        """Store an outcome; it is durable on return. Raises ClientError when it names nothing."""
        with self._lock, self._engine.begin() as connection:
            reading.report(connection, outcome, time.time())

    def outcomes(self, *, turn: str = "", session: str = "") -> tuple[Reported, ...]:
        """The outcomes of a turn or of a session, oldest first."""
        with self._reading() as connection:
            return reading.reported(connection, turn, session)

    def outcomes_of(self, turns: Sequence[str], sessions: Sequence[str]) -> tuple[Reported, ...]:
        """The outcomes that name any of these turns or sessions."""
        with self._reading() as connection:
            return reading.reported_of(connection, turns, sessions)

    @contextmanager
    def task_outcomes(self, source: str = "") -> Iterator[Iterator[Reported]]:
        """The outcomes that name a task, in the order they were stored; one after another, never all in memory.

        `source`: only those imported from this format, or `reported`.
        """
        with self._reading() as connection:
            yield reading.of_tasks(connection, source)

    @contextmanager
    def lanes(self, which: TurnFilter | None = None) -> Iterator[Iterator[TurnRecord]]:
        """Turns without bodies, lane after lane and each in the order it went; never all in memory."""
        with self._reading() as connection:
            yield reading.lanes(connection, which or TurnFilter())

    def count(self, which: TurnFilter | None = None) -> int:
        """How many turns."""
        with self._reading() as connection:
            return reading.count(connection, which or TurnFilter())

    @contextmanager
    def whole_lanes(self, which: TurnFilter | None = None) -> Iterator[Iterator[tuple[TurnRecord, bool]]]:
        """Turns without bodies, lane after lane and each in the order it went; never all in memory. Of each lane with turns that
        are wanted all that came before them too, each with whether it is wanted."""
        with self._reading() as connection:
            yield reading.whole_lanes(connection, which or TurnFilter())

    def request(self, id: str) -> bytes | None:
        """The body of a turn's request; None where it was not captured."""
        with self._lock, self._engine.connect() as connection:
            return reading.request(connection, id)

    def stop_canary(self, stop: Stop) -> None:
        """Keep that a canary was stopped; durable on return. The first stop of a canary stays."""
        with self._lock, self._engine.begin() as connection:
            canaries.stop(connection, stop)

    def stopped_canaries(self) -> tuple[Stop, ...]:
        """All canaries that were stopped, oldest first."""
        with self._lock, self._engine.connect() as connection:
            return canaries.stops(connection)

    def add_shadows(self, found: Sequence[ShadowTurn]) -> None:
        """Keep what shadows decided; durable on return, and once for each turn and shadow. Raises what the database does."""
        with self._lock, self._engine.begin() as connection:
            shadows.add(connection, found)

    def shadow_figures(self, since: float | None = None) -> tuple[ShadowFigures, ...]:
        """How each shadow did by each of its policies, the newest first. `since`: Unix seconds, only turns from then on."""
        with self._reading() as connection:
            return shadows.figures(connection, since)

    def shadow_flips(self, shadow: str, limit: int = 20, since: float | None = None) -> tuple[Flip, ...]:
        """The newest turns that a shadow would have given to another target."""
        with self._reading() as connection:
            return tuple(shadows.flips(connection, shadow, limit, since))

    def shadow_turns(self, shadow: str) -> tuple[tuple[str, str, str], ...]:
        """For each turn that a shadow saw: the turn, the target it chose, and why there is none."""
        with self._reading() as connection:
            return tuple(shadows.decided(connection, shadow))

    def keep_watch(self, found: Checkpoint) -> None:
        """Keep what the watch of a canary knows; durable on return."""
        with self._lock, self._engine.begin() as connection:
            canaries.keep(connection, found)

    def kept_watch(self, route: str, name: str) -> Checkpoint | None:
        """What the watch of a canary knew last."""
        with self._lock, self._engine.connect() as connection:
            return canaries.checkpoint(connection, route, name)

    @property
    def stores_in_order(self) -> bool:
        """Whether what is stored later always has the higher `seq`. Where several write at once, a number may be given out
        before another and be seen after it."""
        return self._engine.url.get_backend_name() == "sqlite"

    def newest(self) -> Place:
        """The last turn and the last outcome that can be seen; every turn of that outcome is among those up to the last one."""
        with self._lock, self._engine.connect() as connection:
            outcome = canaries.last_outcome(connection)
        with self._reading() as connection:
            return Place(canaries.last_turn(connection), outcome)

    def turns_after(self, seq: int, route: str, until: int) -> Batch:
        """The turns of a route stored after `seq` (0 = all) and up to `until`, some at a time."""
        with self._lock, self._engine.connect() as connection:
            return canaries.turns_after(connection, seq, route, until)

    def outcomes_after(self, seq: int, until: int) -> Batch:
        """The outcomes stored after `seq` (0 = all) and up to `until`, some at a time."""
        with self._lock, self._engine.connect() as connection:
            return canaries.outcomes_after(connection, seq, until)

    def importing(self, capture: Capture = "signals") -> Importing:
        """What files are imported with, beside the process that serves."""
        return Importing(self._engine, self._lock, capture)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self.flush()
        try:
            with self._lock, self._engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            if self._writer is not None:
                raise
            where = self._engine.url.render_as_string(hide_password=True)
            raise ConfigError(
                f"the ledger {where} cannot be read: {database.reason(error)}", key="ledger.url"
            ) from None


def _closed(record: TurnRecord) -> None:
    raise RuntimeError("this ledger was opened for reading")


def _engine(url: str, reading: bool = False) -> tuple[Engine, AbstractContextManager[object]]:
    parsed = database.parse(url)
    engine = database.connect(database.archived(parsed) if reading else parsed)
    try:
        database.prepare(engine)
    except BaseException:
        engine.dispose()
        raise
    # An in-memory database is one connection, so its users take turns.
    return engine, threading.RLock() if database.in_memory(parsed) else nullcontext()


def _spill_stem(url: URL) -> Path:
    if database.in_memory(url):
        return Path(tempfile.gettempdir()) / f"turnout-{os.getpid()}-memory"
    if url.get_backend_name() == "sqlite":
        return Path(str(url.database)).absolute()
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "turnout" / f"{url.host or 'local'}-{url.database}"
