"""Placeholders in a command: `{id}`, `{arm}`, a task's fields."""

import re
from collections.abc import Iterable, Mapping, Sequence

from turnout.errors import ClientError
from turnout.evaluate.trials.tasks import Task

_NAMED = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")

OWN = ("id", "arm", "trial", "seed", "session", "url", "workdir", "here")
"""What every run fills in, whatever its task holds."""


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that is known replaced; other braces, and `${name}`, stay."""
    return _NAMED.sub(lambda found: values.get(found[1], found[0]), text)


def named(texts: Iterable[str]) -> set[str]:
    """The names that stand in braces."""
    return {name for text in texts for name in _NAMED.findall(text)}


def check(texts: Sequence[str], tasks: Sequence[Task]) -> list[str]:
    """Names in braces that no task knows, and which therefore stay as they are.

    Raises ClientError for a name that only some tasks know."""
    unknown = []
    for name in sorted(named(texts) - set(OWN)):
        without = [task.id for task in tasks if name not in task.fields]
        if len(without) == len(tasks):
            unknown.append(name)
        elif without:
            raise ClientError(
                f"the command has {{{name}}}, but {len(without)} of {len(tasks)} tasks have no such field, "
                f"as {without[0]}; give it to all of them"
            )
    return unknown
