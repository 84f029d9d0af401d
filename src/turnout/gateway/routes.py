"""Routes: their tables in a file, and the digest of what they decide by."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from turnout.gateway import lines
from turnout.gateway.graphs import bind_graphs
from turnout.gateway.knowledges import bind_knowledges
from turnout.gateway.nested import nested
from turnout.gateway.references import targets_of
from turnout.gateway.tables import WRONG, Tables, nearest
from turnout.policies.identity import identity
from turnout.policies.policy import ModelBehind
from turnout.routing import Router, TargetName
from turnout.routing.core import Forward, Why
from turnout.routing.stacks import refusals, tag_of
from turnout.routing.subagents import ByAgent
from turnout.signals import Additions
from turnout.upstream.target import Target, Upstream


class Route(Struct, frozen=True):
    """A model name that clients may send, and the router that decides its turns.

    `strict`: refuse a request that a translation would lose part of. `aliases`: further model names. `otherwise`: where a
    turn goes when the router raises; None = the router's own choice. `handover_note`: see `RouteKeys`. `policy`: digest of
    everything that shapes a decision. `targets`: all that its routers name; `answering`: those of them that are not only judges.
    `judge_budget`, `judge_usd_per_day`: the most that judges may cost, as a share of the spend and in USD; None = no limit.
    `version`: the file of the promoted version that it is made of; "" = the configuration's own table.
    """

    name: str
    router: Router
    strict: bool = False
    aliases: tuple[str, ...] = ()
    otherwise: TargetName | None = None
    description: str = ""
    handover_note: bool = False
    policy: str = ""
    targets: tuple[TargetName, ...] = ()
    answering: tuple[TargetName, ...] = ()
    judge_budget: float | None = None
    judge_usd_per_day: float | None = None
    version: str = ""

    @property
    def kind(self) -> str:
        """The `type` of the router that decides the agent's own work."""
        router = self.router.main if isinstance(self.router, ByAgent) else self.router
        return tag_of(router)

    @property
    def falls_to(self) -> TargetName:
        """The target of a turn whose router raised."""
        return self.otherwise or self.router.otherwise

    def fault(self, error: Exception) -> Forward:
        """The decision for a turn whose router raised `error`."""
        kind = type(error).__name__
        sentence = f"The router failed ({kind}), so the turn went to {self.falls_to}."
        return Forward(self.falls_to, Why("fault", sentence, rule=kind))


class RouteKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys every route may have beside those of its router.

    `strict`: refuse a request that a translation to another format would lose part of. `aliases`: further model names for the
    route. `otherwise`: the target of a turn whose router raised. `description`: for people. `handover_note`: put a short note
    of what the conversation shows at the end of a turn that another model serves than the one before. `subagents`: who decides
    delegated work, a table with a `type` of its own or a target's name (default: the route itself, with a memory apart for each
    child).
    `background`: who decides titles, summaries and the like (default: the route itself). `small_models`: further model names for
    the route, by which an agent asks for its small model; such turns are `background`'s. `judge_budget`: the most of the
    route's spend that may go to judges, such as 0.1 (default none: no limit); a turn whose judge would exceed it goes on without.
    `judge_usd_per_day`: the most that judges may cost a day (UTC), USD (default none: no limit). Both are counted by each process
    for itself, from midnight or its start.
    """

    strict: bool = False
    aliases: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    otherwise: TargetName | None = None
    description: str = ""
    handover_note: bool = False
    subagents: Router | None = None
    background: Router | None = None
    small_models: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    judge_budget: Annotated[float, Meta(gt=0, lt=1)] | None = None
    judge_usd_per_day: Annotated[float, Meta(gt=0)] | None = None

    def __post_init__(self) -> None:
        if self.small_models and self.background is None:
            raise ValueError("small_models: name the target for them as `background`")


def read_route(
    name: str, table: dict[str, Any], path: lines.Path, tables: Tables, declared: Collection[str]
) -> Route | None:
    """The route in a table at `path`; None when it is wrong, which is noted in `tables`. `declared`: the targets there are.

    Its digest is still to be computed.
    """
    kinds = tables.routers
    kind = next((k for k in kinds if k.__struct_config__.tag == table.get("type")), None)
    own = {field.encode_name for field in msgspec.structs.fields(kind)} if kind else set()
    shared = {field.name for field in msgspec.structs.fields(RouteKeys)}
    common = tables.struct(RouteKeys, {k: v for k, v in table.items() if k in shared}, path)
    rest = {k: v for k, v in table.items() if k not in shared or k in own}
    if kind is not None:
        rest = _known_keys(kind, own | shared | {kind.__struct_config__.tag_field or "type"}, rest, path, tables)
    router = tables.tagged(kinds, rest, path)
    if router is WRONG or common is WRONG:
        return None
    named = [*targets_of(router), *targets_of(common)]
    if common.subagents is not None or common.background is not None:
        router = ByAgent(router, common.subagents, common.background, common.small_models)
    if not (bind_graphs(router, path, tables) and bind_knowledges(router, path, tables)):
        return None
    for where, reason in refusals(router):
        tables.note((*path, *where), reason)
    for where, target in named:
        if target not in declared:
            hint = nearest(target, declared, "targets") or "there is no [targets.NAME] yet"
            tables.note((*path, *where), f"unknown target `{target}`", hint)
    return Route(
        name=name,
        router=router,
        strict=common.strict,
        aliases=tuple(dict.fromkeys((*common.aliases, *common.small_models))),
        otherwise=common.otherwise,
        description=common.description,
        handover_note=common.handover_note,
        targets=tuple(dict.fromkeys(target for _, target in named)),
        answering=tuple(dict.fromkeys(target for where, target in named if where[-1] != "judge")),
        judge_budget=common.judge_budget,
        judge_usd_per_day=common.judge_usd_per_day,
    )


def _known_keys(
    kind: type[Struct], known: set[str], table: dict[str, Any], path: lines.Path, tables: Tables
) -> dict[str, Any]:
    """`table` without the keys that neither a route nor its router has; they are noted with the nearest of both."""
    for key in set(table) - known:
        hint = nearest(key, known, f"keys of a {kind.__struct_config__.tag} route")
        tables.note((*path, key), f"unknown key `{key}`", hint)
    return {key: raw for key, raw in table.items() if key in known}


def canonical(route: Route) -> dict[str, Any]:
    """The effective table of a route: every default filled in."""
    tree: dict[str, Any] = msgspec.to_builtins(route.router, order="deterministic")
    limits = {"judge_budget": route.judge_budget, "judge_usd_per_day": route.judge_usd_per_day}
    return {
        **tree,
        **{key: limit for key, limit in limits.items() if limit is not None},
        "strict": route.strict,
        "aliases": list(route.aliases),
        "otherwise": route.falls_to,
        "description": route.description,
        **({"handover_note": True} if route.handover_note else {}),
    }


def models_behind(
    route: Route, upstreams: Mapping[str, Upstream], targets: Mapping[TargetName, Target]
) -> dict[str, ModelBehind]:
    """What the targets of a route stand for."""
    models: dict[str, ModelBehind] = {}
    for name in sorted({*route.targets, route.falls_to}):
        target = targets.get(name)
        if target is not None:
            upstream = upstreams.get(target.upstream)
            form = upstream.format if upstream else ""
            models[name] = ModelBehind(target.model, form, target.prompt, target.effort)
    return models


def policy_of(
    route: Route, upstreams: Mapping[str, Upstream], targets: Mapping[TargetName, Target], signals: Additions
) -> str:
    """Digest of what shapes the route's decisions and the models behind them."""
    added = [msgspec.to_builtins(signals)] if signals != Additions() else []
    added += [found for _, router in nested(route.router, ()) if (found := getattr(router, "rests_on", ""))]
    return identity(canonical(route), models_behind(route, upstreams, targets), *added)


def table_of(route: Route) -> dict[str, Any]:
    """The table that makes a route what it is, every default filled in, in the shape of a file. Names for clients and people are
    left out."""
    router = route.router
    tree: dict[str, Any] = _said(_built(router.main if isinstance(router, ByAgent) else router))
    tree["strict"], tree["otherwise"] = route.strict, str(route.falls_to)
    if route.handover_note:
        tree["handover_note"] = True
    for key in ("judge_budget", "judge_usd_per_day"):
        if (limit := getattr(route, key)) is not None:
            tree[key] = limit
    if isinstance(router, ByAgent):
        for key in ("subagents", "background"):
            if (inner := getattr(router, key)) is not None:
                tree[key] = _said(_built(inner))
        if router.small_models:
            tree["small_models"] = list(router.small_models)
    return tree


def _built(router: Router | Struct) -> Any:
    return msgspec.to_builtins(router, order="deterministic")


def _said(value: Any) -> Any:
    """`value` without what is None: a file has no such value, and its absence means the same."""
    if isinstance(value, dict):
        return {key: _said(item) for key, item in value.items() if item is not None}
    return [_said(item) for item in value] if isinstance(value, (list, tuple)) else value
