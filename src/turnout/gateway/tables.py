"""Decodes the tables of a configuration file into structs, and says of every mistake where it is and what was expected.

msgspec checks types but names neither the line nor the table; here each field is converted on its own, so that one pass
finds every mistake of a file.
"""

import difflib
import re
import types
import typing
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.gateway.lines import Path, dotted, line_index
from turnout.routing.core import Router

K = TypeVar("K", bound=Struct)

WRONG: Any = object()
"""Stands for a value that could not be decoded; its finding has been noted."""

_WHERE = re.compile(r" - at `(?:key` in `)?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class Finding(Struct, frozen=True):
    """Something wrong (`error`) or doubtful (`warning`) in a file. `key`: TOML path. `hint`: what to do about it."""

    severity: Literal["error", "warning"]
    file: str
    line: int | None
    key: str
    message: str
    hint: str = ""

    def error(self, checked: str, more: int = 0) -> ConfigError:
        """This finding as an exception; `more`: how many other errors there are, in the configuration file `checked` and what
        belongs to it."""
        text = f"{self.message}; {self.hint}" if self.hint else self.message
        if more:
            text += f" ({more} more: `turnout check {checked}` lists them)"
        return ConfigError(text, file=self.file, line=self.line, key=self.key)


def nearest(name: str, known: Iterable[str], noun: str = "known") -> str:
    """A hint: the nearest known name if one is near, and the known names if they are few."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    parts = [f"did you mean `{near[0]}`?"] if near else []
    if names and len(names) <= 24:
        parts.append(f"{noun}: {', '.join(names)}")
    return " ".join(parts)


class Tables:
    """Decodes tables of one file; `findings` collects what is wrong with them. `routers`: the structs a nested router may be.

    `folder`: where the paths of files begin that it names, its own by default. `moved`: the paths of tables for which those of
    another file stand, and where in that.
    """

    def __init__(
        self, text: str, file: str, routers: tuple[type[Struct], ...] = (), folder: FilePath | None = None
    ) -> None:
        self.file = file
        self.folder = FilePath(file).parent if folder is None else folder
        self.routers = routers
        self.findings: list[Finding] = []
        self.moved: dict[Path, tuple[Tables, Path]] = {}
        self.lines = line_index(text)

    def note(self, path: Path, message: str, hint: str = "", severity: Literal["error", "warning"] = "error") -> None:
        """Note a finding at `path`; its line is that of the nearest enclosing key that the file spells out."""
        for table, (other, instead) in self.moved.items():
            if path[: len(table)] == table:
                other.note((*instead, *path[len(table) :]), message, hint, severity)
                return
        self.findings.append(Finding(severity, self.file, self.line(path), dotted(path), message, hint))

    def line(self, path: Path) -> int | None:
        """The line of `path`, else of the nearest table around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None

    def named(self, document: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any], Path]]:
        """The tables `[name.*]` with their names and paths; what is not a table is noted and left out."""
        tables = document.get(name, {})
        if not isinstance(tables, dict):
            self.note((name,), f"expected tables [{name}.NAME], got {_described(tables)}")
            return
        for key, table in tables.items():
            if not isinstance(table, dict):
                self.note((name, key), f"expected a table [{name}.{key}], got {_described(table)}")
            elif not key.strip():
                self.note((name, key), "a name may not be blank")
            else:
                yield key, table, (name, key)

    def struct(self, kind: type[K], table: dict[str, Any], path: Path) -> K:
        """`table` as a `kind`; WRONG if any part of it is wrong. The tag of a tagged struct is passed over."""
        config = kind.__struct_config__
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        values: dict[str, Any] = {}
        for key, raw in table.items():
            if key in fields:
                values[fields[key].name] = self.value(fields[key].type, raw, (*path, key))
            elif not (key == config.tag_field and config.tag is not None):
                values[key] = WRONG
                self.note((*path, key), f"unknown key `{key}`", nearest(key, fields, "known keys"))
        for key, field in fields.items():
            if field.required and key not in table:
                values[field.name] = WRONG
                self.note(path, f"missing key `{key}`", f"expected {_type_name(field.type)}")
        if any(value is WRONG for value in values.values()):
            return typing.cast(K, WRONG)
        try:
            return kind(**values)
        except (ValueError, TypeError) as error:
            self.note(_blamed(str(error), table, path), str(error))
            return typing.cast(K, WRONG)

    def tagged(self, kinds: Iterable[type[Struct]], table: dict[str, Any], path: Path) -> Any:
        """`table` as the one of `kinds` that its tag names."""
        by_tag = {str(kind.__struct_config__.tag): kind for kind in kinds}
        field = next(iter(by_tag.values())).__struct_config__.tag_field or "type"
        tag = table.get(field)
        if tag is None:
            self.note(path, f"missing key `{field}`", f"one of: {', '.join(sorted(by_tag))}")
            return WRONG
        if not isinstance(tag, str) or tag not in by_tag:
            self.note((*path, field), f"unknown {field} {tag!r}", nearest(str(tag), by_tag, "one of"))
            return WRONG
        return self.struct(by_tag[tag], table, path)

    def router(self, raw: Any, path: Path) -> Any:
        """`raw` as a nested router: a table with a `type`, or the name of the target that it always chooses."""
        if isinstance(raw, dict):
            return self.tagged(self.routers, raw, path)
        if not isinstance(raw, str) or not raw.strip():
            self.note(path, f"expected a router's table or the name of a target, got {_described(raw)}")
            return WRONG
        fixed = next(kind for kind in self.routers if kind.__struct_config__.tag == "passthrough")
        return fixed(target=raw)

    def value(self, kind: Any, raw: Any, path: Path) -> Any:
        """`raw` as a `kind`, which may hold structs at any depth."""
        if _bare(kind) is Router:
            return self.router(raw, path)
        structs, others = _split(kind)
        if structs and isinstance(raw, dict):
            return self.tagged(structs, raw, path) if len(structs) > 1 else self.struct(structs[0], raw, path)
        if structs and not others:
            self.note(path, f"expected a table, got {_described(raw)}")
            return WRONG
        origin, args = typing.get_origin(_bare(kind)), typing.get_args(_bare(kind))
        if origin in (list, tuple, set, frozenset) and isinstance(raw, list) and _split(args[0])[0]:
            items = [self.value(args[0], item, (*path, i)) for i, item in enumerate(raw)]
            return WRONG if any(item is WRONG for item in items) else origin(items)
        if origin is dict and isinstance(raw, dict) and args[1] is not object:
            entries = {key: self.value(args[1], item, (*path, key)) for key, item in raw.items()}
            return WRONG if any(item is WRONG for item in entries.values()) else entries
        try:
            return msgspec.convert(raw, kind, strict=True)
        except msgspec.ValidationError as error:
            self._invalid(error, kind, raw, path)
            return WRONG

    def _invalid(self, error: msgspec.ValidationError, kind: Any, raw: Any, path: Path) -> None:
        message = str(error)
        inner = _WHERE.search(message)
        for key, index in _STEP.findall(inner[1] if inner else ""):
            step = int(index) if index else key
            path = (*path, step)
            with suppress(LookupError, TypeError):
                raw = raw[step]
        message = _WHERE.sub("", message).replace(" | null`", "`")
        allowed = [str(choice) for choice in _choices(kind)]
        hint = nearest(str(raw), allowed, "one of") if allowed else ""
        if message.startswith("Invalid enum value"):
            message = f"invalid value {message.removeprefix('Invalid enum value ')}"
        self.note(path, message[0].lower() + message[1:], hint)


def _bare(kind: Any) -> Any:
    """`kind` without constraints, aliases and the None of an optional."""
    if typing.get_origin(kind) is typing.Annotated:
        return _bare(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        rest = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else kind
    return kind


def _split(kind: Any) -> tuple[list[type[Struct]], list[Any]]:
    """The struct types a value of `kind` may be, and the other types."""
    bare = _bare(kind)
    members = typing.get_args(bare) if typing.get_origin(bare) in (typing.Union, types.UnionType) else (bare,)
    structs: list[type[Struct]] = []
    others: list[Any] = []
    for member in members:
        member = _bare(member)
        if isinstance(member, type) and issubclass(member, Struct):
            structs.append(member)
        elif member is not type(None):
            others.append(member)
    return structs, others


def _choices(kind: Any) -> tuple[Any, ...]:
    """The literals a value of `kind` (or an element of it) may be."""
    bare = _bare(kind)
    if typing.get_origin(bare) is Literal:
        return typing.get_args(bare)
    return tuple(choice for arg in typing.get_args(bare) for choice in _choices(arg))


def _type_name(kind: Any) -> str:
    choices = _choices(kind)
    if choices:
        return "one of: " + ", ".join(str(choice) for choice in choices)
    bare = _bare(kind)
    if bare is Router:
        return "a router's table or the name of a target"
    bare = getattr(bare, "__supertype__", bare)
    names = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
    origin = typing.get_origin(bare) or bare
    if origin in (list, tuple, set, frozenset):
        return "an array"
    if origin is dict or (isinstance(bare, type) and issubclass(bare, Struct)):
        return "a table"
    return names.get(bare, "a value")


def _described(raw: Any) -> str:
    names = {
        bool: "a boolean",
        str: "a string",
        int: "an integer",
        float: "a number",
        list: "an array",
        dict: "a table",
    }
    return names.get(type(raw), f"a {type(raw).__name__}")


def _blamed(message: str, table: dict[str, Any], path: Path) -> Path:
    """The key that a struct's own complaint speaks of, else the table."""
    for word in re.findall(r"\w+", message):
        if word in table:
            return (*path, word)
    return path
