"""The versions of a configuration's routes, found and shown."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from turnout.cli import exits, output
from turnout.policies.file import read, text_of
from turnout.policies.history import Change
from turnout.policies.policy import Evidence, Figure, Policy
from turnout.policies.toml import written

if TYPE_CHECKING:
    from turnout.gateway.config import Config
    from turnout.gateway.routes import Route

OWN = "configuration"
"""How people name the configuration's own table."""


class Known(Struct, frozen=True):
    """A version. `file`: where it lies, "" = the configuration's own table. `served`: it decides new turns. `since`: from when
    on, Unix seconds, where that is known. `reason`: why."""

    policy: Policy
    file: str = ""
    served: bool = False
    since: float | None = None
    reason: str = ""


class Versions(Struct, frozen=True):
    """The versions of a route, newest first, its own table last. `served`: the digest that decides new turns."""

    route: str
    served: str
    versions: tuple[Known, ...]


class Shelf:
    """A configuration and the versions of its routes. Raises ConfigError where the configuration itself is wrong."""

    def __init__(self, config: Path) -> None:
        from turnout.gateway.config import load
        from turnout.gateway.versions import folder_of

        self.own = load(config, None, promoted=False)
        self.folder = folder_of(self.own)
        self.promoted = self.folder.promoted()

    def route(self, name: str) -> "Route":
        """A route by its table name. Raises CommandError."""
        if name not in self.own.routes:
            from turnout.gateway.tables import nearest

            hint = nearest(name, self.own.routes, "routes")
            raise exits.CommandError(f"{self.own.file} has no route `{name}`", exits.NOT_FOUND, hint)
        return self.own.routes[name]

    def versions(self, name: str) -> Versions:
        """All versions of a route."""
        own = self._own(name)
        known = [self._known(one.path, one.policy) for one in self.folder.policies(name) if one.policy is not None]
        change = self.promoted.get(name)
        return Versions(name, change.digest if change else own.policy.digest, (*reversed(known), own))

    def version(self, name: str, wanted: str = "") -> Known:
        """One version: by the beginning of its digest, by its file, or "" = what is served. Raises CommandError."""
        own = self._own(name)
        change = self.promoted.get(name)
        if wanted == OWN or (not wanted and change is None):
            return own
        if not wanted and change is not None:
            policy, _ = self.folder.served(change)
            return self._known(self.folder.path / change.file, policy)
        if wanted.endswith(".toml") or "/" in wanted:
            policy = read(Path(wanted))
            if policy.route != name:
                raise exits.CommandError(f"{wanted} is a version of route `{policy.route}`, not of `{name}`")
            return self._known(Path(wanted), policy)
        found = self.folder.find(name, wanted)
        if found is not None and found.policy is not None:
            return self._known(found.path, found.policy)
        if own.policy.digest.startswith(wanted):
            return own
        digests = [one.policy.digest for one in self.versions(name).versions[:-1]]
        there = (
            f"there are: {', '.join(dict.fromkeys(digests))}" if digests else "there is only the configuration's own"
        )
        raise exits.CommandError(f"route {name} has no version `{wanted}`", exits.NOT_FOUND, there)

    def filled(self, name: str, wanted: str = "") -> Known:
        """As `version`, with the defaults of a table that was written by hand."""
        from turnout.gateway.versions import complete

        known = self.version(name, wanted)
        if known.policy.digest:
            return known
        found, _ = complete(self.own, known.policy, "", known.file)
        return known if found is None else msgspec.structs.replace(known, policy=found)

    def _own(self, name: str) -> Known:
        from turnout.gateway.routes import models_behind, table_of

        route = self.route(name)
        models = models_behind(route, self.own.upstreams, self.own.targets)
        policy = Policy(name, table_of(route), digest=route.policy, made_by=OWN, models=models)
        since = None
        for change in self.folder.history():
            if change.route == name and not change.digest:
                since = change.at
        return Known(policy, served=name not in self.promoted, since=since if name not in self.promoted else None)

    def _known(self, path: Path, policy: Policy) -> Known:
        change = self.promoted.get(policy.route)
        if change is None or path.resolve() != (self.folder.path / change.file).resolve():
            return Known(policy, str(path))
        return Known(policy, str(path), True, change.at, change.reason)


def named(digest: str) -> str:
    """A version for people."""
    return digest or "the configuration's own table"


def print_versions(found: Sequence[Versions]) -> None:
    """A row for each version."""
    table = output.table("route", "version", "served", "made", "by", "from", "evidence")
    for one in found:
        for known in one.versions:
            policy = known.policy
            served = ("since " + _at(known.since) if known.since is not None else "yes") if known.served else ""
            made = "" if not known.file else f"{policy.made_at:%Y-%m-%d %H:%M}"
            speaks = summary(policy.evidence) if known.file else "the table in the file"
            table.row(
                one.route, policy.digest or "(no digest yet)", served, made, policy.made_by, policy.came_from, speaks
            )
    table.print()
    for one in found:
        if not any(known.served for known in one.versions):
            output.say(
                f"route {one.route}: {one.served} is promoted, and its file is gone or wrong: see `turnout check`"
            )


def kept(config: "Config | None", route: str, digest: str) -> Policy | None:
    """The version of a route that turns recorded as `digest`, where its file is there."""
    from turnout.gateway.versions import folder_of

    if config is None or not digest:
        return None
    found = folder_of(config).find(route, digest)
    return None if found is None else found.policy


def summary(evidence: Evidence | None) -> str:
    """Evidence in a few words."""
    if evidence is None:
        return "none"
    holds = {True: "holds", False: "DOES NOT HOLD", None: ""}[evidence.holds]
    bound = f"{evidence.constraint}: {holds}" if evidence.constraint and holds else evidence.constraint
    rows = f"{evidence.rows} rows" if evidence.rows is not None else ""
    figures = [f"{name} {figure(value)}" for name, value in list(evidence.metrics.items())[:2]]
    parts = (evidence.data, rows, bound, *figures)
    return "; ".join(part for part in parts if part)


def figure(one: Figure | None) -> str:
    """A figure with its interval."""
    if one is None:
        return "-"
    between = f" [{_number(one.low)} {_number(one.high)}]" if one.low is not None and one.high is not None else ""
    return f"{_number(one.value)}{' ' + one.unit if one.unit else ''}{between}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _at(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def print_history(changes: Sequence[Change]) -> None:
    """A row for each change, oldest first."""
    table = output.table("at", "route", "what", "to", "before", "by", "why")
    for change in changes:
        why = f"{change.reason} (forced)" if change.forced else change.reason
        row = (_at(change.at), change.route, change.action, named(change.digest), named(change.before), change.by, why)
        table.row(*row)
    table.print()


def shown(known: Known) -> str:
    """A version in full: its file, and above it how it stands."""
    state = "served" if known.served else "not served"
    if known.since is not None:
        state += f" since {_at(known.since)}"
    why = f" ({known.reason})" if known.reason else ""
    head = f"# {known.file or 'the table in the configuration'}: {state}{why}\n"
    policy = known.policy
    if known.file:
        return head + text_of(policy).partition("\n")[2]
    return head + written({"route": policy.route, "digest": policy.digest, "router": policy.router})


class Changed(Struct, frozen=True):
    """A key with both values; None = it is not there."""

    key: str
    before: Any
    after: Any


class Compared(Struct, frozen=True):
    """Two figures of one name. `same_rows`: both were measured on the same rows."""

    name: str
    before: Figure | None
    after: Figure | None
    same_rows: bool


class Difference(Struct, frozen=True):
    """What one version changes of another."""

    route: str
    before: str
    after: str
    keys: tuple[Changed, ...]
    metrics: tuple[Compared, ...]
    evidence_before: Evidence | None
    evidence_after: Evidence | None


def compared(before: Known, after: Known) -> Difference:
    """What `after` changes of `before`."""
    old, new = dict(_leaves(_whole(before.policy))), dict(_leaves(_whole(after.policy)))
    keys = [
        Changed(key, old.get(key), new.get(key)) for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)
    ]
    evidence = after.policy.evidence
    same = evidence is not None and bool(evidence.before) and after.policy.came_from == before.policy.digest
    measured = before.policy.evidence.metrics if before.policy.evidence is not None else {}
    then: Mapping[str, Figure] = evidence.before if same and evidence is not None else measured
    now = evidence.metrics if evidence is not None else {}
    metrics = [Compared(name, then.get(name), now.get(name), same) for name in dict.fromkeys((*now, *then))]
    return Difference(
        after.policy.route,
        before.policy.digest,
        after.policy.digest,
        tuple(keys),
        tuple(metrics),
        before.policy.evidence,
        evidence,
    )


def _whole(policy: Policy) -> dict[str, Any]:
    return {"router": policy.router, "models": {name: msgspec.to_builtins(one) for name, one in policy.models.items()}}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, datetime):
        yield path, value.isoformat()
    elif value != "":
        yield path, value


def print_difference(found: Difference) -> None:
    """Keys and figures, one a line."""
    output.emit_text(f"route {found.route}: {found.before} -> {found.after}")
    if not found.keys:
        output.emit_text("  no key differs")
    for one in found.keys:
        output.emit_text(f"  {one.key}: {_value(one.before)} -> {_value(one.after)}")
    if found.metrics:
        same = found.metrics[0].same_rows
        output.emit_text(
            "on the same rows:" if same else "each on its own rows, not to be compared as if they were the same:"
        )
        table = output.table("figure", found.before or "before", found.after or "after")
        for metric in found.metrics:
            table.row(metric.name, figure(metric.before), figure(metric.after))
        table.print()
    for digest, evidence in ((found.before, found.evidence_before), (found.after, found.evidence_after)):
        output.emit_text(f"evidence of {digest}: {summary(evidence)}")
        for sentence in evidence.assumptions if evidence is not None else ():
            output.emit_text(f"  assumed: {sentence}")


def _value(value: Any) -> str:
    return "(not there)" if value is None else msgspec.json.encode(value).decode()
