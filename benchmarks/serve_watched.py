"""A gateway's serving process that tells on SIGUSR1 what lives in it: one JSON line appended to the file named first.

python benchmarks/serve_watched.py STATE_FILE turnout.toml 127.0.0.1 4000
"""

import asyncio
import gc
import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from turnout.gateway.__main__ import main


def watch(file: Path) -> None:
    """On SIGUSR1 append the number of tasks, and of the objects that turns and connections are made of."""

    def tell(*_: Any) -> None:
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        gc.collect()
        kinds = Counter(f"{type(o).__module__}.{type(o).__name__}" for o in gc.get_objects())
        ours = {kind.rpartition(".")[2]: count for kind, count in kinds.items() if kind.startswith("turnout.")}
        told = {name: ours.get(name, 0) for name in ("Serving", "Attended", "Opened", "Response", "Connection")}
        with file.open("a") as out:
            out.write(json.dumps({"tasks": len(tasks), "objects": sum(kinds.values()), **told, "kinds": kinds}) + "\n")

    signal.signal(signal.SIGUSR1, tell)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
