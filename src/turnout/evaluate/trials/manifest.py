"""Under which conditions a run took place, and in what two runs differ.

Runs of different arms are to differ in the arm and in nothing else. No value that may be a secret is kept, and no digest of one:
of such a variable it is only kept that it was set.
"""

import contextlib
import hashlib
import os
import platform
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout import __version__
from turnout.evaluate.importers.scrub import scrub
from turnout.evaluate.trials.filling import fill
from turnout.evaluate.trials.folders import is_file

_PASSING = re.compile(
    r"_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|TERM\w*|COLORTERM|WINDOWID|DISPLAY|WAYLAND_DISPLAY|STY|TMUX\w*|SSH_\w*|DBUS_\w*|XDG_SESSION\w*|"
    r"XDG_VTNR|XDG_SEAT|INVOCATION_ID|JOURNAL_STREAM|HISTFILE|HISTSIZE|PS1|LESS\w*|LS_COLORS|EDITOR|VISUAL|PAGER|MAIL|"
    r"PYTEST_\w*|VSCODE_\w*|ITERM_\w*|SECURITYSESSIONID|WT_\w*"
)
"""Variables that belong to a terminal or a login and say nothing on how a command works."""
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE|SIGNATURE|DSN|JWT|CERT|_PAT\b", re.IGNORECASE
)
_NAME = r"[\w-]*(?<![^\W_])(?:key|token|secret|pass(?:word|wd|phrase)?|credentials?|auth|authorization|bearer|cookie|jwt|dsn|pat)"
_OPTION = re.compile(rf"-{{1,2}}{_NAME}", re.IGNORECASE)
_GIVEN = re.compile(
    rf"((?:^|[\s;&|(])(?:{_NAME}=|-{{1,2}}{_NAME}(?:=|\s+(?!-))))(\"[^\"$]*\"|'[^']*'|[^\s;&|)$\"'{{]+)", re.IGNORECASE
)
"""A variable or an option that may hold a secret, in a line for a shell. What is referred to (`$NAME`, `{field}`) is none."""
HIDDEN = "[redacted]"
"""What is kept of an argument that may be a secret."""
SET = "set"
"""What is kept of a variable that may hold a secret."""


class Conditions(Struct, frozen=True):
    """What the runs of one start of a trial have in common.

    `files`: digests of the program and of arguments that are files. `environment`: digests of the values by name, or `set`.
    `machine`: system, processors, and versions of what runs the trial.
    """

    command: tuple[str, ...]
    check: str
    success: str
    timeout_s: float
    seed: int
    workdir: str
    gateway: str
    jobs: int
    files: dict[str, str]
    environment: dict[str, str]
    machine: dict[str, str]

    @property
    def digest(self) -> str:
        """Of everything in it."""
        return digest(self)


class Manifest(Struct, frozen=True):
    """One run and its conditions. `policy`: digest of the arm's route ("" where a running gateway knows it). `category`: of the
    task, `fields`: digest of its row. `folder`: digest of its work folder at the start, "" without one. `conditions`: digest of
    those."""

    arm: str
    task: str
    trial: int
    seed: int
    session: str
    policy: str
    category: str
    fields: str
    folder: str
    conditions: str


def digest(value: Any) -> str:
    """A short digest of anything that can be written as JSON."""
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=8).hexdigest()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What is kept of an environment."""
    return {
        name: SET if _SECRET.search(name) or "[redacted]" in scrub(value) else digest(value)
        for name, value in sorted(variables.items())
        if not _PASSING.fullmatch(name)
    }


def line(text: str) -> str:
    """What is kept of a line for a shell, a path or a URL: no secret, and no name of a home folder."""
    return scrub(_GIVEN.sub(rf"\1{HIDDEN}", text))


def words(command: Sequence[str]) -> tuple[str, ...]:
    """What is kept of a command: its words without secrets, whether they stand behind an option or in one word with it."""
    kept: list[str] = []
    for before, word in zip(("", *command), command, strict=False):
        given = _OPTION.fullmatch(before) and not word.startswith(("-", "{"))
        kept.append(HIDDEN if given else line(word))
    return tuple(kept)


def files(command: Sequence[str], check: str) -> dict[str, str]:
    """Digests of the programs and of those arguments that are files, seen from here."""
    try:
        checks = shlex.split(check)
    except ValueError:
        checks = []
    found = {}
    for parts in (list(command), checks):
        for position, word in enumerate(parts):
            place = (shutil.which(word) if position == 0 else None) or word
            path = fill(place, {"here": str(Path.cwd())})
            # One that may not be read is left out: there is nothing to compare.
            with contextlib.suppress(OSError):
                if is_file(path):
                    with Path(path).open("rb") as file:
                        found[scrub(word)] = hashlib.file_digest(file, "blake2b").hexdigest()[:16]
    return found


def machine() -> dict[str, str]:
    """This machine and what runs on it."""
    return {
        "system": platform.platform(),
        "processors": str(os.cpu_count()),
        "python": platform.python_version(),
        "turnout": __version__,
    }


def differences(one: Conditions, other: Conditions) -> list[str]:
    """In what two conditions differ, in words."""
    found = []
    for name in Conditions.__struct_fields__:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, dict):
            found += [f"{name} {key}: {_change(a.get(key), b.get(key))}" for key in _changed(a, b)]
        elif a != b:
            found.append(f"{name}: {_shown(a)} became {_shown(b)}")
    return found


def unequal(runs: Iterable[Manifest], conditions: Mapping[str, Conditions]) -> list[str]:
    """In what runs of one task and trial differ besides the arm. `conditions`: by digest."""
    manifests = list(runs)
    found: dict[str, None] = {}
    for one in manifests[1:]:
        first = manifests[0]
        for name in ("seed", "fields", "folder"):
            if getattr(one, name) != getattr(first, name):
                found[f"{_NAMES[name]} of {first.arm} and {one.arm}"] = None
        if one.conditions != first.conditions:
            found |= dict.fromkeys(differences(conditions[first.conditions], conditions[one.conditions]))
    return list(found)


_NAMES = {"seed": "seed", "fields": "task", "folder": "work folder"}


def _changed(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def _change(one: str | None, other: str | None) -> str:
    if one is None:
        return "is new"
    return "is gone" if other is None else f"{one} became {other}"


def _shown(value: Any) -> str:
    return shlex.join(value) if isinstance(value, tuple) else str(value) or "nothing"
