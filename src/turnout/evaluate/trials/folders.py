"""A fresh copy of a folder for each run, and what was in it."""

import hashlib
import os
import shutil
from pathlib import Path

from turnout.errors import ClientError


def is_file(word: str) -> bool:
    """Whether a word of a command is the path of a file; one that cannot be a path is not."""
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


def copied(template: Path, to: Path) -> str:
    """Copy a folder, links as links; the digest of what the copy holds: paths, kinds, which files can be executed, contents.

    Raises ClientError when it cannot be copied."""
    try:
        shutil.copytree(template, to, symlinks=True)
    except (shutil.Error, OSError) as error:
        shutil.rmtree(to, ignore_errors=True)
        # shutil.Error lists every file that failed; one says enough.
        reason = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise ClientError(f"--workdir {template}: cannot be copied: {reason}") from None
    return digest(to)


def digest(folder: Path) -> str:
    """A digest of everything in a folder. Times do not count."""
    found = hashlib.blake2b(digest_size=12)
    for at, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted((*files, *(one for one in folders if Path(at, one).is_symlink()))):
            path = Path(at, name)
            kind, content = _content(path)
            found.update(f"{path.relative_to(folder)}\0{kind}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            found.update(content)
        found.update(f"{Path(at).relative_to(folder)}\0folder\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _content(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    if not path.is_file():
        return "other", b""
    with path.open("rb") as file:
        return ("program" if os.access(path, os.X_OK) else "file"), hashlib.file_digest(file, "blake2b").digest()
