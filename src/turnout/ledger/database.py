"""The ledger's database: opened, tuned, and brought to the schema this code knows."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.engine.url import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from turnout.errors import ConfigError
from turnout.ledger.schema import REVISION, metadata, version

BUSY_S = 2.0
"""How long SQLite waits for another process's lock before the batch is put back and tried again."""


def parse(text: str) -> URL:
    """The address of a database. Raises ConfigError; no message holds the password."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise ConfigError(
            "this is no database address; expected sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME",
            key="ledger.url",
        ) from None
    if url.get_backend_name() == "postgresql" and url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(
            f"the ledger keeps to SQLite or PostgreSQL, not {url.get_backend_name()!r}; "
            "expected sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME",
            key="ledger.url",
        )
    return url


def in_memory(url: URL) -> bool:
    """Whether the database dies with the process."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def archived(url: URL) -> URL:
    """The address to read a database by: of an SQLite file that may not be written, and that no writer has open beside it, one
    that makes no files. Without it SQLite cannot open a file in WAL mode even to read it."""
    if url.get_backend_name() != "sqlite" or in_memory(url) or url.query:
        return url
    file = Path(str(url.database))
    if not file.is_file() or (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        return url
    if Path(f"{file}-wal").exists():
        return url
    return url.set(database=f"file:{quote(str(file.absolute()))}", query={"immutable": "1", "uri": "true"})


def connect(url: URL) -> Engine:
    """An engine for this address. Nothing is connected yet."""
    try:
        if url.get_backend_name() == "postgresql":
            return sa.create_engine(url, pool_size=3, max_overflow=5, pool_pre_ping=True)
        if in_memory(url):
            engine = sa.create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
        elif url.query.get("immutable"):
            return sa.create_engine(url)
        else:
            Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
            engine = sa.create_engine(url, pool_size=3, max_overflow=5, connect_args={"timeout": BUSY_S})
    except (ModuleNotFoundError, NoSuchModuleError):
        raise ConfigError(
            "the PostgreSQL driver is not installed; run: pip install 'turnout[postgres]'", key="ledger.url"
        ) from None
    except OSError as error:
        raise ConfigError(f"the folder of the ledger cannot be made: {error.strerror}", key="ledger.url") from None
    sa.event.listen(engine, "connect", _tune)
    return engine


def _tune(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    # WAL: readers and the writer do not wait for each other, and a killed process loses nothing that was committed.
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def prepare(engine: Engine) -> None:
    """Bring the database to this code's schema. A new one is made here; an old one is migrated by a child process, so that
    serving never loads the migration tool. Raises ConfigError."""
    where = engine.url.render_as_string(hide_password=True)
    try:
        with engine.connect() as connection:
            found = _revision(connection)
        if found is None:
            found = _create(engine)
    except DBAPIError as error:
        raise ConfigError(f"the ledger {where} cannot be opened: {reason(error)}", key="ledger.url") from None
    if found != REVISION:
        _migrate(engine.url, where, found)


def reason(error: BaseException) -> str:
    """What a database said, in one line, without the statement and its values."""
    original = getattr(error, "orig", None) or error
    return (str(original).strip().splitlines() or [type(original).__name__])[0]


def _revision(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table(version.name):
        return None
    found = connection.execute(sa.select(version.c.version_num)).scalar()
    return str(found) if found is not None else None


def _create(engine: Engine) -> str | None:
    """Make all tables, unless another process is doing so at this moment; then take what it made."""
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7236281)")
            found = _revision(connection)
            if found is None:
                version.create(connection, checkfirst=True)
                metadata.create_all(connection)
                connection.execute(sa.insert(version).values(version_num=REVISION))
                found = REVISION
            return found
    except DBAPIError:
        with engine.connect() as connection:
            found = _revision(connection)
        if found is None:
            raise
        return found


def _migrate(url: URL, where: str, found: str | None) -> None:
    """Run the migrations in a child. The address goes by standard input: a command line is visible to others."""
    done = subprocess.run(
        [sys.executable, "-m", "turnout.ledger.migrate", "-"],
        input=url.render_as_string(hide_password=False),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ConfigError(
            f"the ledger {where} has schema {found}, this version needs {REVISION}, and migrating failed: {said}",
            key="ledger.url",
        )
