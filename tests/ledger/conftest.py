"""Databases to run the ledger's tests on: SQLite files, and a PostgreSQL server of the tests' own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

DEBIAN = Path("/usr/lib/postgresql")


def _programs() -> Path | None:
    """The folder of PostgreSQL's server programs; Debian keeps them off the PATH."""
    for folder in [*sorted(DEBIAN.glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a running PostgreSQL server, reached by a Unix socket only."""
    programs = _programs()
    if programs is None:
        message = "PostgreSQL's server programs are not installed (Debian: apt-get install postgresql)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = None
    if os.geteuid() == 0:  # the server refuses to run as root
        user = "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else "nobody"
        shutil.chown(folder, user)
    data = folder / "data"

    def run(*command: str | Path) -> None:
        subprocess.run([*map(str, command)], check=True, capture_output=True, user=user, cwd=folder)

    run(programs / "initdb", "-D", data, "-U", "turnout", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield f"postgresql+psycopg://turnout@/{{name}}?host={quote(str(folder))}"
    finally:
        run(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ledger.db"
        return
    server: str = request.getfixturevalue("postgres")
    admin = sa.create_engine(server.format(name="postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS ledger WITH (FORCE)"))
        connection.execute(sa.text("CREATE DATABASE ledger"))
    admin.dispose()
    yield server.format(name="ledger")
