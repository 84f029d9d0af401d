"""Routes as their promoted versions make them: the table of a policy file in place of the configuration's own."""

from pathlib import Path as FilePath
from typing import Any

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.gateway.lines import Path
from turnout.gateway.routes import Route, models_behind, policy_of, read_route
from turnout.gateway.tables import Finding, Tables
from turnout.policies.folder import Folder
from turnout.policies.history import Change
from turnout.policies.policy import Policy
from turnout.routing import TargetName
from turnout.signals import Additions
from turnout.upstream.target import Target, Upstream


class PoliciesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the versions of routes lie.

    `folder`: with one file for each version and the history of which was served; the path starts at this file's folder.
    """

    folder: str = "policies"


class Declared(Struct, frozen=True):
    """What a route's table may name, and what that stands for."""

    upstreams: dict[str, Upstream]
    targets: dict[TargetName, Target]
    signals: Additions


class Promoted:
    """The promoted versions in a folder, read into routes. What is wrong is noted in `tables`, with the file it stands in."""

    def __init__(self, folder: FilePath, declared: Declared, tables: Tables) -> None:
        self._folder = Folder(folder)
        self._declared = declared
        self._tables = tables
        self._standing: dict[str, Change] = {}
        self._read: dict[Path, tuple[Tables, Path]] = {}
        try:
            self._standing = self._folder.promoted()
        except ConfigError as error:
            self._wrong(error)

    def route(self, own: Route) -> Route:
        """The route that is served instead of `own`: its promoted version, or itself where none is promoted."""
        change = self._standing.pop(own.name, None)
        if change is None:
            return own
        try:
            policy, text = self._folder.served(change)
        except ConfigError as error:
            self._wrong(error)
            return own
        tables = Tables(text, str(self._folder.path / change.file), self._tables.routers, self._tables.folder)
        tables.findings = self._tables.findings
        route = read_version(policy, own, self._declared, tables)
        if route is None:
            return own
        self._read["routes", own.name] = (tables, ("router",))
        return msgspec.structs.replace(route, version=change.file)

    def finish(self) -> None:
        """All routes have been read: note the versions of those that are no more; what is found later in a promoted one is noted
        in its file."""
        self._tables.moved.update(self._read)
        for name in self._standing:
            message = f"a version is promoted for route `{name}`, which is not in the configuration"
            hint = f"turnout policy rollback {name} --to-configuration"
            self._tables.findings.append(Finding("warning", str(self._folder.history_file), None, "", message, hint))

    def _wrong(self, error: ConfigError) -> None:
        self._tables.findings.append(Finding("error", error.file, error.line, error.key, error.message))


def read_version(policy: Policy, own: Route, declared: Declared, tables: Tables) -> Route | None:
    """The route that `policy` makes of `own`; None when its table is wrong, which is noted in `tables`, those of its file.

    A version whose models are others by now, or that this release reads otherwise, is noted as doubtful.
    """
    table: dict[str, Any] = {**policy.router, "aliases": _own_aliases(own), "description": own.description}
    before = len(tables.findings)
    route = read_route(own.name, table, ("router",), tables, declared.targets)
    if route is None or any(finding.severity == "error" for finding in tables.findings[before:]):
        return None
    digest = policy_of(route, declared.upstreams, declared.targets, declared.signals)
    _doubts(policy, route, digest, declared, tables)
    return msgspec.structs.replace(route, policy=digest)


def _own_aliases(own: Route) -> list[str]:
    small = getattr(own.router, "small_models", ())
    return [name for name in own.aliases if name not in small]


def _doubts(policy: Policy, route: Route, digest: str, declared: Declared, tables: Tables) -> None:
    if not policy.digest or digest == policy.digest:
        return
    hint = "its evidence is about another version; measure again, and promote what comes of it"
    models = models_behind(route, declared.upstreams, declared.targets)
    changed = [name for name, model in policy.models.items() if name in models and models[name] != model]
    for name in changed:
        then, now = policy.models[name], models[name]
        told = (
            f"`{then.model}`, and is `{now.model}` now"
            if then.model != now.model
            else "something else than it does now"
        )
        tables.note(("models", name), f"target `{name}` stood for {told}; turns record {digest}", hint, "warning")
    if not changed:
        message = (
            f"this table is {digest} here: [signals] or this release of Turnout reads it otherwise, or it was edited"
        )
        tables.note(("digest",), message, hint, "warning")
