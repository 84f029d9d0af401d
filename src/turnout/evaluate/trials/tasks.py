"""The tasks of a trial: from a JSON Lines file, a folder, or a number."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout.errors import ClientError

MOST = 100_000


class Task(Struct, frozen=True):
    """One task. `fields`: what its row holds beside the id; of a folder's entry `path`."""

    id: str
    fields: dict[str, Any] = {}

    @property
    def category(self) -> str:
        """Of what kind it is, "" where nobody says."""
        found = self.fields.get("category")
        return "" if found is None else str(found)

    def texts(self) -> dict[str, str]:
        """The fields as texts, everything but texts as JSON."""
        return {
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in self.fields.items()
        }


def tasks(source: str) -> tuple[Task, ...]:
    """The tasks that `source` names: a file of JSON objects with `id`, a folder (each entry a task), or how many.

    Raises ClientError.
    """
    path = Path(source)
    if source and path.is_dir():
        found = _of_folder(path)
    elif path.is_file():
        found = _of_file(path)
    elif source.isdecimal():
        if not 1 <= int(source) <= MOST:
            raise ClientError(f"--tasks {source}: expected a number from 1 to {MOST:,}")
        found = [Task(str(n)) for n in range(1, int(source) + 1)]
    else:
        raise ClientError(f"--tasks {source}: no such file or folder; expected a JSON Lines file, a folder or a number")
    if not found:
        raise ClientError(f"--tasks {source}: there are no tasks in it")
    _check_distinct(source, found)
    return tuple(found)


def _of_folder(path: Path) -> list[Task]:
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    return [Task(entry.name, {"path": str(entry.resolve())}) for entry in entries]


def _of_file(path: Path) -> list[Task]:
    found = []
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if line.strip():
            try:
                found.append(_of_row(msgspec.json.decode(line)))
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                raise ClientError(
                    f'{path}:{number}: {error}; expected an object such as {{"id": "t1", "prompt": "..."}}'
                ) from None
    return found


def _of_row(row: Any) -> Task:
    if not isinstance(row, dict):
        raise ValueError("not an object")
    id = next((row[name] for name in ("id", "task_id") if name in row), None)
    if not isinstance(id, str | int) or isinstance(id, bool) or id == "":
        raise ValueError("`id` is missing or neither a text nor a number")
    fields = {name: value for name, value in row.items() if name not in ("id", "task_id")}
    return Task(str(id), fields)


def _check_distinct(source: str, found: Sequence[Task]) -> None:
    seen: set[str] = set()
    for task in found:
        if task.id in seen:
            raise ClientError(f"--tasks {source}: the id {task.id} is there twice; results could not be told apart")
        seen.add(task.id)


def variable(field: str) -> str:
    """The environment variable that holds a task's field."""
    return "TURNOUT_TASK_" + re.sub(r"\W", "_", field).upper()
