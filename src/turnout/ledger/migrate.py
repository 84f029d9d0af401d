"""Bring a ledger's database to the newest schema: `python -m turnout.ledger.migrate URL` (`-`: read it from standard input).

The only module that loads Alembic, besides the migrations themselves.
"""

import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy.exc import SQLAlchemyError

from turnout.errors import ConfigError
from turnout.ledger import database


def config() -> Config:
    """Alembic's settings for the ledger's migrations."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    settings.set_main_option("path_separator", "os")
    return settings


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at this address. Raises ConfigError, CommandError, SQLAlchemyError."""
    settings = config()
    engine = database.connect(database.parse(url))
    try:
        with engine.connect() as connection:
            settings.attributes["connection"] = connection
            command.upgrade(settings, revision)
            connection.commit()
    finally:
        engine.dispose()


def main(arguments: list[str]) -> int:
    """Exit code 0, or 1 with one line on standard error."""
    if len(arguments) != 1:
        print("usage: python -m turnout.ledger.migrate URL", file=sys.stderr)
        return 2
    try:
        upgrade(sys.stdin.read().strip() if arguments[0] == "-" else arguments[0])
    except CommandError as error:
        print(f"{error} (was the ledger written by a newer version of turnout?)", file=sys.stderr)
        return 1
    except (ConfigError, SQLAlchemyError) as error:
        print(database.reason(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
