"""`python -m turnout.gateway FILE HOST PORT [LOG_LEVEL [LEDGER]]`: what `turnout serve` becomes, without the command line.

What a command line needs stays in memory for as long as the process lives, so the command replaces itself by this.
"""

import sys
from functools import partial

import msgspec

from turnout.errors import ConfigError
from turnout.gateway.config import Config, load
from turnout.gateway.serve import run


def main(arguments: list[str]) -> int:
    """Serve until told to stop; the exit code."""
    file, host, port, level, ledger = (*arguments, "", "")[:5]
    try:
        run(partial(loaded, file, ledger), host, int(port), log_level=level)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def loaded(file: str, ledger: str) -> Config:
    """The configuration in a file, with `ledger` as the URL of where turns are recorded; "" = as the file says."""
    config = load(file)
    if ledger:
        config = msgspec.structs.replace(config, ledger=msgspec.structs.replace(config.ledger, url=ledger))
    return config


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
