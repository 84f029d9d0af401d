"""Makes versions of routes: a table checked against a configuration, with its digest and the models it is about."""

import typing
from pathlib import Path
from typing import Any

import msgspec

from turnout.errors import ConfigError
from turnout.gateway.config import Config
from turnout.gateway.promoted import Declared, read_version
from turnout.gateway.routes import Route, models_behind, table_of
from turnout.gateway.tables import Finding, Tables, nearest
from turnout.policies.file import parse, text_of
from turnout.policies.folder import Folder
from turnout.policies.policy import Evidence, Policy
from turnout.routing import RouterConfig


def folder_of(config: Config) -> Folder:
    """The policies beside a configuration."""
    return Folder(Path(config.file).parent / config.policies.folder)


def version(
    config: Config,
    route: str,
    table: dict[str, Any],
    *,
    evidence: Evidence | None = None,
    made_by: str = "hand",
    came_from: str = "",
    note: str = "",
) -> Policy:
    """The version of `route` that decides by `table`, such as a changed `table_of` the route: complete, ready to be kept.

    Raises ConfigError where the table is wrong, or the configuration has no such route.
    """
    draft = Policy(route=route, router=table, made_by=made_by, came_from=came_from, note=note, evidence=evidence)
    text = text_of(draft)
    policy, findings = complete(config, parse(text, f"version of {route}"), text, f"version of {route}")
    if policy is None:
        first = next(finding for finding in findings if finding.severity == "error")
        message = f"{first.message}; {first.hint}" if first.hint else first.message
        raise ConfigError(message, file=first.file, key=first.key.removeprefix("router."))
    return policy


def complete(config: Config, policy: Policy, text: str, file: str) -> tuple[Policy | None, list[Finding]]:
    """`policy`, read from `text`, with what its configuration adds: its digest, its models, its defaults. None when it is wrong;
    and what is wrong or doubtful, with the lines of `file`."""
    tables = Tables(text, file, typing.get_args(RouterConfig), Path(config.file).parent)
    own = config.routes.get(policy.route)
    if own is None:
        hint = nearest(policy.route, config.routes, "routes")
        tables.note(("route",), f"the configuration has no route `{policy.route}`", hint)
        return None, tables.findings
    route = read_version(policy, own, Declared(config.upstreams, config.targets, config.signals), tables)
    if route is None:
        return None, tables.findings
    taken = {name: other.name for other in config.routes.values() for name in (other.name, *other.aliases)}
    for name in route.aliases:
        if taken.get(name, policy.route) != policy.route:
            message = f"the model name `{name}` already belongs to route `{taken[name]}`"
            tables.note(("router", "small_models"), message)
            return None, tables.findings
    return _completed(config, policy, route), tables.findings


def _completed(config: Config, policy: Policy, route: Route) -> Policy:
    return msgspec.structs.replace(
        policy,
        digest=route.policy,
        router=table_of(route),
        models=models_behind(route, config.upstreams, config.targets),
    )
