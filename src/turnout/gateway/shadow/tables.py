"""The tables of shadows in a configuration: whose turns they see, and what decides beside them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from turnout.errors import ConfigError
from turnout.gateway.lines import Path as Where
from turnout.gateway.promoted import Declared, read_version
from turnout.gateway.routes import Route, canonical, policy_of, read_route
from turnout.gateway.tables import WRONG, Tables, nearest
from turnout.policies.folder import Folder


class ShadowKeys(Struct, frozen=True, forbid_unknown_fields=True, rename={"as_": "as"}):
    """A router that decides beside a route, without a call and without touching a turn. Beside these keys the table has those of
    a route, `type` first, or one of `as` and `policy` in their place.

    `route`: the route whose turns it sees. `as`: decide as this route of the file does. `policy`: decide by this version of the
    route, named by the beginning of its digest.
    """

    route: Annotated[str, Meta(min_length=1)]
    as_: str = ""
    policy: str = ""


class Shadow(Struct, frozen=True):
    """A shadow: whose turns it sees, and what it decides by."""

    name: str
    route: str
    by: Route


class ShadowTables:
    """Reads the shadows of one configuration. `folder`: where versions of routes lie."""

    def __init__(self, tables: Tables, routes: Mapping[str, Route], declared: Declared, folder: Path) -> None:
        self._tables = tables
        self._routes = routes
        self._declared = declared
        self._folder = folder

    def read(self, document: dict[str, Any]) -> dict[str, Shadow]:
        """The shadows of a document; what is wrong with them is noted."""
        found = {}
        for name, table, path in self._tables.named(document, "shadows"):
            shadow = self._shadow(name, table, path)
            if shadow is not None:
                found[name] = shadow
        return found

    def _shadow(self, name: str, table: dict[str, Any], path: Where) -> Shadow | None:
        kind = next((k for k in self._tables.routers if k.__struct_config__.tag == table.get("type")), None)
        of_router = {field.encode_name for field in msgspec.structs.fields(kind)} if kind is not None else set()
        # A router's own key goes first: the `policy` of a retrieval is its model.
        own = {field.encode_name for field in msgspec.structs.fields(ShadowKeys)} - of_router
        keys = self._tables.struct(ShadowKeys, {key: raw for key, raw in table.items() if key in own}, path)
        rest = {key: raw for key, raw in table.items() if key not in own}
        if keys is WRONG or not self._known(keys.route, (*path, "route")):
            return None
        if sum((bool(rest), bool(keys.as_), bool(keys.policy))) != 1:
            message = "expected one router: a `type` with its keys, or `as`, or `policy`"
            self._tables.note(path, message, "`as` names a route of this file, `policy` a version of the route")
            return None
        by = self._by(name, keys, rest, path)
        return None if by is None else Shadow(name, keys.route, by)

    def _by(self, name: str, keys: ShadowKeys, rest: dict[str, Any], path: Where) -> Route | None:
        if keys.as_:
            return self._routes[keys.as_] if self._known(keys.as_, (*path, "as")) else None
        if keys.policy:
            return self._version(keys, path)
        declared = self._declared
        route = read_route(name, rest, path, self._tables, declared.targets)
        if route is None:
            return None
        return msgspec.structs.replace(
            route, policy=policy_of(route, declared.upstreams, declared.targets, declared.signals)
        )

    def _version(self, keys: ShadowKeys, path: Where) -> Route | None:
        where = (*path, "policy")
        return kept_version(self._routes[keys.route], keys.policy, self._folder, self._declared, self._tables, where)

    def _known(self, route: str, path: Where) -> bool:
        if route in self._routes:
            return True
        self._tables.note(path, f"unknown route `{route}`", nearest(route, self._routes, "routes"))
        return False


def kept_version(
    own: Route, digest: str, folder: Path, declared: Declared, tables: Tables, where: Where
) -> Route | None:
    """The route that a version of `own` makes of it, found in `folder` by the beginning of its digest; None when there is none or
    it is wrong, which is noted in `tables`, at `where` in their file or in that of the version."""
    try:
        stored = Folder(folder).find(own.name, digest)
    except ConfigError as error:
        tables.note(where, error.message)
        return None
    if stored is None or stored.policy is None:
        tables.note(
            where, f"route `{own.name}` has no version `{digest}` in {folder}", f"turnout policy list {own.name}"
        )
        return None
    found = Tables(stored.path.read_text("utf-8-sig"), str(stored.path), tables.routers, tables.folder)
    found.findings = tables.findings
    return read_version(stored.policy, own, declared, found)


def shown(shadow: Shadow) -> dict[str, Any]:
    """A shadow as the effective configuration shows it."""
    return {"route": shadow.route, "policy": shadow.by.policy, "router": canonical(shadow.by)}
