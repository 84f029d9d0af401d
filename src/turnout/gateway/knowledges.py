"""The knowledges that routes name: looked at when a configuration is read, opened when it is to serve."""

import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from turnout.errors import ConfigError
from turnout.gateway import lines
from turnout.gateway.library import Shelved
from turnout.gateway.nested import nested
from turnout.gateway.tables import Tables
from turnout.knowledge.manifest import FILE, read
from turnout.routing.retrieval.router import Retrieval

if TYPE_CHECKING:
    from turnout.gateway.config import Config

_EXTRA = "looking facts up in a folder needs an extra; run: pip install 'turnout[knowledge]'"
_BUILD = "`turnout knowledge build CORPUS --out FOLDER` makes one; the path starts at the configuration's folder"


def bind_knowledges(router: Any, path: lines.Path, tables: Tables) -> bool:
    """Look at the knowledge of every retrieval router in `router`. False where one is missing, which is noted."""
    bound = [_bind(one, where, tables) for where, one in _retrievals(router, path)]
    return all(bound)


def _retrievals(router: Any, path: lines.Path) -> Iterator[tuple[lines.Path, Retrieval]]:
    for where, one in nested(router, path):
        if isinstance(one, Retrieval):
            yield (*where, "knowledge"), one


def _bind(router: Retrieval, path: lines.Path, tables: Tables) -> bool:
    if remote(router.knowledge):
        if not _reachable(router.knowledge):
            hint = "expected http://HOST:PORT of a `turnout knowledge serve`, without a user, a password or a query"
            tables.note(path, "not the URL of a knowledge service", hint)
            return False
        router.bind(router.knowledge, "")
        return True
    folder = tables.folder / router.knowledge
    if not folder.is_dir():
        tables.note(path, f"no such folder: {folder}", _BUILD)
        return False
    if importlib.util.find_spec("numpy") is None:
        tables.note(path, _EXTRA)
        return False
    try:
        read(folder)
        router.bind(str(folder), hashlib.blake2b((folder / FILE).read_bytes(), digest_size=8).hexdigest())
    except ConfigError as error:
        tables.note(path, str(error))
        return False
    except OSError as error:
        tables.note(path, f"cannot be read: {error.strerror}: {folder}")
        return False
    return True


def remote(knowledge: str) -> bool:
    """Whether a knowledge is one that another process serves."""
    return knowledge.startswith(("http://", "https://"))


def _reachable(url: str) -> bool:
    """Whether a URL names a service. What it holds is never shown: it may be a secret."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0 and not (parts.username or parts.password or parts.query)
    except ValueError:
        return False


def shelves_of(config: "Config", before: Mapping[str, Shelved]) -> dict[str, Shelved]:
    """The knowledges that the routes of `config` look facts up in, open, by name. Blocks: a folder is read whole. Those that are
    open in `before` and are what they were stay so. Raises ConfigError."""
    shelves: dict[str, Shelved] = {}
    for route in config.routes.values():
        for path, router in _retrievals(route.router, ("routes", route.name)):
            name = router.knowledge
            if name in shelves:
                continue
            kept = before.get(name)
            if kept is None or (kept.place, kept.identity) != (router.place, router.rests_on):
                kept = _opened(router, path, config)
            shelves[name] = kept
    return shelves


def _opened(router: Retrieval, path: lines.Path, config: "Config") -> Shelved:
    try:
        from turnout.knowledge import open_knowledge

        return Shelved(router.place, router.rests_on, open_knowledge(router.place))
    except ModuleNotFoundError:
        problem = _EXTRA
    except ConfigError as error:
        problem = str(error)
    raise ConfigError(problem, file=config.file, line=_line(config.file, path), key=lines.dotted(path))


def _line(file: str, path: lines.Path) -> int | None:
    """The line of a key in a file that has been read before."""
    try:
        return Tables(Path(file).read_text("utf-8-sig"), file).line(path)
    except OSError:
        return None
