"""Whether the files of a configuration have changed: their digests, or where they are many their times and sizes."""

import hashlib
import os
from pathlib import Path
from typing import TypeAlias

from turnout.gateway.config import Config
from turnout.policies.folder import HISTORY

Stamp: TypeAlias = tuple[tuple[str, str], ...]
"""Names of files and what stands for their content; equal while nothing has changed."""


def stamp(config: Config) -> Stamp:
    """The stamp of the file of `config` and of its policies as they are now. Blocks."""
    file = Path(config.file)
    folder = file.parent / config.policies.folder
    return (_content(file), _content(folder / HISTORY), *_versions(folder))


def _content(path: Path) -> tuple[str, str]:
    try:
        return str(path), hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        return str(path), type(error).__name__


def _versions(folder: Path) -> list[tuple[str, str]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".toml"):
                    about = entry.stat()
                    found.append((entry.name, f"{about.st_mtime_ns} {about.st_size} {about.st_ino}"))
    except OSError:
        pass
    return sorted(found)
