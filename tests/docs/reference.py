"""The configuration reference, generated from the structs that are the file's schema."""

import re
import types
import typing
from typing import Any, Literal

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from turnout.gateway.config import LedgerConfig, Server, SessionsConfig, Tenant
from turnout.gateway.promoted import PoliciesConfig
from turnout.gateway.routes import RouteKeys
from turnout.gateway.shadow.tables import ShadowKeys
from turnout.routing import Router, RouterConfig
from turnout.routing.canary.watching import Watching
from turnout.routing.composite import Member
from turnout.routing.judging import Excerpt, Judging
from turnout.routing.stage.router import SwitchCosts, Weights
from turnout.signals import Additions
from turnout.signals.vocabulary import Pattern, Runner
from turnout.upstream.target import Price, Target, Upstream

TABLES: tuple[tuple[str, type[Struct]], ...] = (
    ("[upstreams.NAME]", Upstream),
    ("[targets.NAME]", Target),
    ("price = { ... }", Price),
    ("[routes.NAME], every type", RouteKeys),
    *((f'[routes.NAME], type = "{kind.__struct_config__.tag}"', kind) for kind in typing.get_args(RouterConfig)),
    ("[routes.NAME.weights], stage", Weights),
    ("[routes.NAME.switch_price], stage", SwitchCosts),
    ("[[routes.NAME.routers]]", Member),
    ("[routes.NAME.watching], canary", Watching),
    ("[routes.NAME.judging]", Judging),
    ("[routes.NAME.transcript]", Excerpt),
    ("[shadows.NAME]", ShadowKeys),
    ("[server]", Server),
    ("[server.tenants.NAME]", Tenant),
    ("[ledger]", LedgerConfig),
    ("[sessions]", SessionsConfig),
    ("[policies]", PoliciesConfig),
    ("[signals]", Additions),
    ("[[signals.patterns]]", Pattern),
    ("[signals.runners.NAME]", Runner),
)


def reference() -> str:
    """All tables as Markdown."""
    return "\n".join(_section(title, kind) for title, kind in TABLES)


def _section(title: str, kind: type[Struct]) -> str:
    paragraphs = [" ".join(part.split()) for part in (kind.__doc__ or "").split("\n\n")]
    prose = [part for part in (_MARK.split(paragraph)[0].strip() for paragraph in paragraphs) if part]
    meanings = {name: meaning for paragraph in paragraphs for name, meaning in _meanings(paragraph)}
    lines = [f"### `{title}`", "", prose[0], "", "| key | type | default | meaning |", "|---|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        meaning = meanings.get(field.encode_name) or meanings.get(field.name, "")
        lines.append(f"| `{field.encode_name}` | {_type(field.type)} | {_default(field)} | {meaning} |")
    return "\n".join([*lines, "", *(f"{more}\n" for more in prose[1:])])


_MARK = re.compile(r"(?:(?<=\. )|(?<=; )|^)((?:`\w+`(?: and |, )?)+)(?: [\d.]+)?(?: \([^)]*\))?: ")
"""Where a docstring begins to speak of fields: "`a`, `b`: meaning." """


def _meanings(paragraph: str) -> list[tuple[str, str]]:
    """What a paragraph says of each field."""
    marks = list(_MARK.finditer(paragraph))
    ends = [*(mark.start() for mark in marks[1:]), len(paragraph)] if marks else []
    return [
        (name, paragraph[mark.end() : end].strip().rstrip(";").replace(" (default none)", "").replace("|", "\\|"))
        for mark, end in zip(marks, ends, strict=True)
        for name in re.findall(r"`(\w+)`", mark[1])
    ]


def _default(field: Any) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not NODEFAULT else field.default_factory()
    if value is None:
        return "none"
    if isinstance(value, Struct):
        return "see below"
    return f"`{msgspec.json.encode(value).decode()}`" if value not in ("", (), {}, []) else "empty"


def _type(kind: Any) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        limits = [f"{sign} {bound:g}" for meta in args[1:] if isinstance(meta, Meta) for sign, bound in _bounds(meta)]
        return " ".join([_type(args[0]), *limits])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(arg) for arg in args if arg is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{arg}`" for arg in args)
    if origin in (tuple, list, set, frozenset):
        return f"array of {_type(args[0])}"
    if origin is dict:
        return f"table of {_type(args[1])}"
    if kind is Router:
        return "router"
    if hasattr(kind, "__supertype__"):
        return "target" if kind.__name__ == "TargetName" else _type(kind.__supertype__)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "table"
    names = {str: "string", int: "integer", float: "number", bool: "boolean", object: "value"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def _bounds(meta: Meta) -> list[tuple[str, float]]:
    signs = (("≥", meta.ge), (">", meta.gt), ("≤", meta.le), ("<", meta.lt))
    return [(sign, bound) for sign, bound in signs if bound is not None]
