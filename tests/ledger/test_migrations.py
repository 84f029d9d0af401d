"""Migrations: they give the tables the code describes, and a ledger brings its database up by itself."""

import subprocess
import sys

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from tests.ledger.records import turn

from turnout.errors import ConfigError
from turnout.ledger import database, migrate
from turnout.ledger.schema import REVISION, metadata
from turnout.ledger.store import Ledger


def test_the_code_knows_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(migrate.config()).get_current_head() == REVISION


def test_migrations_give_the_described_tables(url: str) -> None:
    migrate.upgrade(url)
    engine = database.connect(database.parse(url))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == REVISION
    engine.dispose()


def test_a_migrated_database_equals_a_new_one(tmp_path: object) -> None:
    schemas = []
    for name in ("migrated", "new"):
        url = f"sqlite:///{tmp_path}/{name}.db"
        if name == "migrated":
            migrate.upgrade(url)
        else:
            Ledger.open(url).close()
        engine = database.connect(database.parse(url))
        inspector = sa.inspect(engine)
        schemas.append(
            {
                table: (
                    [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)],
                    sorted(((i["name"], i["column_names"]) for i in inspector.get_indexes(table)), key=str),
                    inspector.get_unique_constraints(table)[0]["column_names"] if table == "turns" else None,
                )
                for table in ("turns", "messages", "outcomes", "imports", "canaries", "canary_watches", "shadows")
            }
        )
        engine.dispose()
    assert schemas[0] == schemas[1]


def test_an_old_schema_is_migrated_on_opening(url: str) -> None:
    migrate.upgrade(url)
    engine = database.connect(database.parse(url))
    with engine.begin() as connection:  # a database whose migrations never ran
        for table in ("turns", "messages", "outcomes", "imports", "canaries", "canary_watches", "shadows"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'before'"))
        connection.execute(sa.text("DELETE FROM alembic_version"))
        connection.execute(sa.text("CREATE TABLE keep (x INTEGER)"))
    engine.dispose()
    ledger = Ledger.open(url)
    ledger.append(turn())
    assert ledger.stats().total.turns == 1
    ledger.close()


def test_a_newer_schema_is_refused(url: str) -> None:
    Ledger.open(url).close()
    engine = database.connect(database.parse(url))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConfigError, match="newer version of turnout"):
        Ledger.open(url)


def test_serving_does_not_load_the_migration_tool(tmp_path: object) -> None:
    code = (
        "import sys; from turnout.ledger.store import Ledger; "
        f"Ledger.open('sqlite:///{tmp_path}/a.db').close(); Ledger.open('sqlite:///{tmp_path}/a.db').close(); "
        "sys.exit(any(m in sys.modules for m in ('alembic', 'genai_prices', 'sqlalchemy.orm')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_says_what_is_wrong() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "turnout.ledger.migrate", "mysql://u:s3cret@h/d"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "SQLite or PostgreSQL" in done.stderr
    assert "s3cret" not in done.stderr
