"""A PostgreSQL server of the tests' own, reached by a Unix socket only."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path:
    """The folder of the server's programs; off Debian's PATH. Skips the test where there are none, fails it in CI."""
    for folder in [*sorted(DEBIAN.glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    message = "PostgreSQL's server programs are not installed (Debian: apt-get install postgresql)"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def serving(where: Path) -> Iterator[str]:
    """The address of a running server, `{name}` standing for a database's. `where`: of its programs."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    user = None
    if os.geteuid() == 0:  # the server refuses to run as root
        user = "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else "nobody"
        shutil.chown(folder, user)
    data = folder / "data"

    def run(*command: str | Path) -> None:
        subprocess.run([*map(str, command)], check=True, capture_output=True, user=user, cwd=folder)

    run(where / "initdb", "-D", data, "-U", "turnout", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    run(where / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        yield f"postgresql+psycopg://turnout@/{{name}}?host={quote(str(folder))}"
    finally:
        run(where / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def emptied(server: str) -> str:
    """The address of an empty database on a server."""
    admin = sa.create_engine(server.format(name="postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS ledger WITH (FORCE)"))
        connection.execute(sa.text("CREATE DATABASE ledger"))
    admin.dispose()
    return server.format(name="ledger")
