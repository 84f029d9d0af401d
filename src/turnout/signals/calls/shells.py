"""What a shell command line does, and what its exit status can say."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from turnout.signals.calls.invocations import Program, base, expanded, inline, programs_of
from turnout.signals.calls.programs import (
    EXIT_CODES,
    FAMILIES,
    FETCHING_CODE,
    HOUSEKEEPING,
    INTERPRETERS,
    PROBES,
    RUNNERS,
    WRITING_CODE,
    Meaning,
    words,
)
from turnout.signals.calls.rollback import taken_back
from turnout.signals.calls.shell import Simple
from turnout.signals.observation import ToolKind

_PRECEDENCE: tuple[ToolKind, ...] = ("test", "execute", "edit", "write", "search", "read", "plan", "other")
_SILENT = HOUSEKEEPING | frozenset(
    words("cd pushd popd export set unset source . sleep echo printf true : alias umask ulimit wait")
)
_PIPED_VIEWERS = frozenset(words("head tail tee cat less more sort uniq wc cut tr column grep egrep rg sed awk"))
_CHECKS = re.compile(
    r"\bassert|unittest|pytest|\bPASS|\bFAIL|SUCCESS|[\u2713\u2705\u274c\u2717]|expected|sys\.exit\(1\)"
    r"|raise (?:Assertion|System)"
)
"""What in a script's text shows that it checks something and says so."""


class Echoes(Struct, frozen=True):
    """What a command line prints of its own status. `status`: a text that holds `$?`. `otherwise`: texts printed only where what
    stands before them failed."""

    status: str = ""
    otherwise: frozenset[str] = frozenset()


class ShellReading(Struct, frozen=True):
    """A command line as far as signals need it.

    `kind`: of its most telling program. `main`: that program's name, `target`: it with its first argument, short. `last`: the
    program whose status the shell returns. `masked`: a zero status does not say that `main` went well (pipes, `|| true`,
    `; echo`). `waits`: it sleeps or polls for something. `fetches`: it downloads. `size`: characters of here-documents written
    to files, None where nothing is known. `runs`: names of the scripts it runs. `downloads`, `writers`: names of scripts it
    writes that download, that write files. `written`: the first file it writes, `wrote`: names of those whose text it gives.
    `edits`: it changes files rather than looks at them. `reproduces`: what it runs is named a reproduction. `asks`: it only
    asks whether a program or a module is there, and which. `provokes`: a word in its arguments that asks for an error.
    """

    kind: ToolKind = "other"
    main: str = ""
    target: str = ""
    last: str = ""
    changes: bool = False
    masked: bool = False
    waits: bool = False
    fetches: bool = False
    probes: bool = False
    takes_back: str = ""
    echoes: Echoes | None = None
    size: int | None = None
    runs: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    written: str = ""
    wrote: tuple[str, ...] = ()
    edits: bool = False
    reproduces: bool = False
    asks: bool = False
    provokes: str = ""

    @property
    def checks(self) -> bool:
        """It asks for the checks of continuous integration."""
        return self.meaning(1) == ("capability", "ci_failure")

    def meaning(self, code: int) -> Meaning | None:
        """What the exit code of this line means where it is no plain failure, None elsewhere."""
        for name in (self.last, self.last.partition(" ")[0]):
            family = FAMILIES.get(name, name)
            meaning = EXIT_CODES.get(family, {}).get(code)
            if meaning is not None:
                return meaning
        return None


def read_shell(commands: Sequence[Simple], added: Mapping[str, ToolKind] | None = None) -> ShellReading:
    """What the simple commands of one line do together. `added`: kinds of an operator's own programs."""
    commands = expanded(commands)
    programs = [p for c in commands for p in programs_of(c)]
    if added:
        programs = [replace(p, kind=own) if (own := added.get(p.name) or added.get(p.path)) else p for p in programs]
    if not programs:
        return ShellReading("write", changes=True) if any(c.writes for c in commands) else ShellReading()
    telling = [p for p in programs if p.name.partition(" ")[0] not in _SILENT or _fed(p)] or programs
    kind = min((p.kind for p in telling), key=_PRECEDENCE.index)
    main = next(p for p in telling if p.kind == kind)
    # A viewer that reads a pipe searches or reads nothing of its own.
    if kind in ("read", "search"):
        fed = [p for p in telling if not (p.joined == "|" and p.name in _PIPED_VIEWERS)] or telling
        kind = min((p.kind for p in fed), key=_PRECEDENCE.index)
        main = next(p for p in fed if p.kind == kind)
    writes = any(c.writes for c in commands)
    here = any(c.writes and (c.reads_heredoc or _prints(c)) for c in commands)
    if here and (kind in ("read", "search", "other") or main.name in ("echo", "printf")):
        kind = "write"
    last = programs[-1]
    runs = tuple(name for p in programs if p.kind in ("execute", "test") for name in _scripts_of(p))
    scripts = [(base(c.writes[0]), c.heredoc) for c in commands if c.writes and c.heredoc]
    if kind == "test" and _only_probes(main, scripts):
        kind = "execute"
    downloads = tuple(name for name, text in scripts if any(mark in text for mark in FETCHING_CODE))
    return ShellReading(
        kind=kind,
        main=main.name,
        target=_target(main),
        last=last.name,
        changes=any(p.changes for p in programs) or writes,
        masked=_masked(programs, main),
        waits=any(p.name in ("sleep", "watch") or p.name.startswith("gh run watch") for p in programs),
        fetches=any(p.fetches for p in programs) or not set(downloads).isdisjoint(runs),
        takes_back=taken_back((p.name, p.args) for p in programs),
        probes=any(p.name.partition(" ")[0] in PROBES for p in programs),
        echoes=_echoes(commands),
        size=sum(len(c.heredoc) for c in commands if c.writes) or None,
        runs=runs,
        downloads=downloads,
        writers=tuple(name for name, text in scripts if any(mark in text for mark in WRITING_CODE)),
        wrote=tuple(name for name, _ in scripts),
        written=next((c.writes[0] for c in commands if c.writes), ""),
        edits=writes or any(p.changes and p.name not in HOUSEKEEPING for p in programs),
        reproduces=any(_REPRODUCTION.search(word) for p in programs for word in (p.path, *p.args[:6])),
        asks=all(_asks(p) for p in telling),
        provokes=_provoking(main) if kind == "execute" else "",
    )


_REPRODUCTION = re.compile(r"repro|(?:^|[_/.-])(?:issue|bug)(?:[_/.-]|\d|$)", re.IGNORECASE)


_ASKING_CODE = re.compile(
    r"\s*import [\w., ]+;?\s*(?:(?:import [\w., ]+|print\([^;\n]*\))[;\n]?\s*)*|\s*from [\w.]+ import [\w, ]+;?\s*"
)


def _fed(program: Program) -> bool:
    """Whether a program that says little otherwise does what the line is for to what it is given through a pipe."""
    return program.joined == "|" and program.name in HOUSEKEEPING


def _asks(program: Program) -> bool:
    """Whether a program is only asked for its version, or an interpreter for a module."""
    if program.name in ("which", "type", "command", "whereis"):
        return True
    if program.args[:1] and all(a in ("--version", "-V", "-v", "version", "--help") for a in program.args):
        return True
    code = inline(program.args)
    return bool(code) and _ASKING_CODE.fullmatch(code) is not None


_PROVOKING = re.compile(r"non-?_?exist\w*|does[_-]not[_-]exist|\binvalid\w*|\bbogus\w*", re.IGNORECASE)


def _provoking(program: Program) -> str:
    found = _PROVOKING.search(" ".join(program.args[:8])[:600])
    return found.group() if found is not None else ""


def _scripts_of(program: Program) -> tuple[str, ...]:
    """Names of the scripts that a program runs: itself, or the files given to a test runner."""
    given = [a.partition("::")[0] for a in program.args[:8] if not a.startswith("-")] if program.kind == "test" else []
    return tuple(base(path) for path in (program.path, *given) if path)


def _only_probes(main: Program, scripts: Sequence[tuple[str, str]]) -> bool:
    """Whether what is called a test by its name only is a script, written in the same line, that checks nothing."""
    if main.name.partition(" ")[0] not in INTERPRETERS:
        return False
    text = next((text for name, text in scripts if name == base(main.path)), "")
    return bool(text) and _CHECKS.search(text) is None


def _echoes(commands: Sequence[Simple]) -> Echoes | None:
    status = ""
    otherwise = set()
    for at, command in enumerate(commands):
        if not command.words or command.words[0] not in ("echo", "printf") or command.writes:
            continue
        text = " ".join(w for w in command.words[1:] if w not in ("-e", "-n")).replace("\\n", "").strip()
        text = text.replace("${?}", "$?").replace("${PIPESTATUS[0]}", "$?")
        if at and text.count("$?") == 1 and command.joined == ";":
            status = text
        elif command.joined == "||" and len(text) >= 3 and "$" not in text:
            otherwise.add(text)
    return Echoes(status, frozenset(otherwise)) if status or otherwise else None


def _prints(command: Simple) -> bool:
    return bool(command.words) and command.words[0].rpartition("/")[2] in ("echo", "printf", "cat")


def _masked(programs: Sequence[Program], main: Program) -> bool:
    after = programs[programs.index(main) + 1 :]
    return any(p.joined in ("|", "||", ";", "&") for p in after)


def _target(program: Program) -> str:
    verb = program.name.partition(" ")[2]
    plain = [a for a in program.args if not a.startswith("-") and a != verb]
    # What is searched for is no target; where, is.
    first = next(iter(plain[1:] if program.kind == "search" and verb == "" else plain), "")
    # Only names and paths: other arguments may hold anything, secrets among them.
    named = program.name.partition(" ")[0] in RUNNERS or program.name.startswith("gh ")
    if (
        program.kind in ("execute", "other")
        and not named
        and not first.endswith((".py", ".js", ".ts", ".sh", ".rb", ".go", ".mjs"))
    ):
        first = ""
    if program.fetches or "=" in first or "://" in first:
        first = ""
    return f"{program.name} {first}".strip()[:120]
