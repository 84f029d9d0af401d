"""What an operator adds to the built-in knowledge: kinds of tools and programs, patterns of failures, test runners."""

import re
from collections.abc import Mapping
from fnmatch import translate
from typing import Annotated, Any

from msgspec import Meta, Struct

from turnout.signals.memo import Memo
from turnout.signals.observation import ErrorClass, Observation, ToolKind
from turnout.signals.patterns import regex

REMEMBERED_AT_MOST = 4096
"""Messages, and results, whose reading is kept."""

HISTORIES_AT_MOST = 1024
"""Turns whose history is kept for the next turn of the same agent."""

_SNAKE = re.compile(r"[a-z][a-z0-9_]{0,39}")
_COUNTED = ("passed", "failed", "errors", "skipped", "total")

Regex = Annotated[str, Meta(min_length=1, max_length=1000)]


def _compiled(key: str, pattern: str) -> re.Pattern[str]:
    """Raises ValueError that names the key for what `regex` refuses, or one that every text matches."""
    compiled = regex(key, pattern, re.MULTILINE)
    if compiled.search("") is not None:
        raise ValueError(f"{key}: matches every text, the empty one too")
    return compiled


class Pattern(Struct, frozen=True, forbid_unknown_fields=True, rename={"error_class": "class"}):
    """Results that mean something of their own.

    `match`: regular expression looked for in a result's output, `^` and `$` at its lines; what files hold that were read
    or searched is left out unless `tools` names the tool. `class`: what a match means. `kind`: its short name in
    observations, lower case. `tools`: only results of these tools or programs, `*` stands for anything.
    """

    match: Regex
    error_class: ErrorClass
    kind: str
    tools: tuple[Annotated[str, Meta(min_length=1)], ...] = ()

    def __post_init__(self) -> None:
        _compiled("match", self.match)
        if not _SNAKE.fullmatch(self.kind):
            raise ValueError("kind: expected a lower-case name such as quota_exceeded")


class Runner(Struct, frozen=True, forbid_unknown_fields=True):
    """How a test runner says how its tests went.

    `match`: regular expression of its summary with named groups that hold numbers: `passed` or `total`, and where there
    are any `failed`, `errors`, `skipped`. `every`: add all matches of an output up; otherwise the last one counts.
    """

    match: Regex
    every: bool = False

    def __post_init__(self) -> None:
        groups = _compiled("match", self.match).groupindex
        if not {"passed", "total"} & set(groups):
            raise ValueError("match: expected a named group (?P<passed>...) or (?P<total>...)")
        if unknown := [name for name in groups if name not in _COUNTED]:
            raise ValueError(f"match: unknown group `{unknown[0]}`; known groups: {', '.join(_COUNTED)}")


class Additions(Struct, frozen=True, forbid_unknown_fields=True):
    """What signals know beside the built-in tools, programs and messages.

    `tools`: kinds of tools by name, upper and lower case alike, `*` stands for anything; for MCP tools the whole name or the
    last part of it. `programs`: kinds of programs that shells run. `patterns`: results that mean something of their own, the
    first match counts. `runners`: summaries of test runners by name.
    """

    tools: dict[str, ToolKind] = {}
    programs: dict[str, ToolKind] = {}
    patterns: tuple[Pattern, ...] = ()
    runners: dict[str, Runner] = {}

    def __post_init__(self) -> None:
        for key in ("tools", "programs"):
            if any(not name.strip() for name in getattr(self, key)):
                raise ValueError(f"{key}: a name may not be blank")
        known: dict[str, str] = {}
        for name in self.tools:
            if (same := known.setdefault(name.lower(), name)) != name:
                raise ValueError(
                    f"tools: `{same}` and `{name}` are one name, as upper and lower case are alike; keep one"
                )


class Matcher(Struct, frozen=True):
    """A pattern ready for use. `tools`: matches names it is for; None = anything but content that was read."""

    match: re.Pattern[str]
    error_class: ErrorClass
    kind: str
    tools: re.Pattern[str] | None


class Vocabulary:
    """The additions ready for use, with what was read by them before; make one per configuration and keep it.

    The same bytes read by another vocabulary may mean something else, so the memory of readings is here.
    """

    __slots__ = ("_globs", "_names", "additions", "histories", "judged", "patterns", "programs", "read", "runners")

    def __init__(self, additions: Additions | None = None) -> None:
        self.additions = additions or Additions()
        tools = {name.lower(): kind for name, kind in self.additions.tools.items()}
        self._names: Mapping[str, ToolKind] = {name: kind for name, kind in tools.items() if "*" not in name}
        self._globs = tuple((re.compile(translate(name)), kind) for name, kind in tools.items() if "*" in name)
        self.programs: Mapping[str, ToolKind] = self.additions.programs
        self.patterns = tuple(_matcher(pattern) for pattern in self.additions.patterns)
        self.runners = tuple((r.every, re.compile(r.match, re.MULTILINE)) for r in self.additions.runners.values())
        self.read: Memo[Any] = Memo(REMEMBERED_AT_MOST)
        self.judged: Memo[Observation] = Memo(REMEMBERED_AT_MOST)
        self.histories: Memo[Any] = Memo(HISTORIES_AT_MOST)

    def kind(self, shown: str, last: str) -> ToolKind | None:
        """The operator's kind of the tool called `shown` (lower case), whose last part is `last`; None when there is none."""
        if not self._names and not self._globs:
            return None
        kind = self._names.get(shown) or self._names.get(last)
        if kind is not None:
            return kind
        return next((kind for glob, kind in self._globs if glob.match(shown) or glob.match(last)), None)


def _matcher(pattern: Pattern) -> Matcher:
    names = "|".join(translate(name.lower()) for name in pattern.tools)
    return Matcher(
        re.compile(pattern.match, re.MULTILINE), pattern.error_class, pattern.kind, re.compile(names) if names else None
    )


BUILT_IN = Vocabulary()
"""The built-in knowledge alone."""
