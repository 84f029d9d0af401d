"""What a shell command line does, and what its exit status can say."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from turnout.signals.observation import ToolKind
from turnout.signals.programs import (
    CHECK_FLAGS,
    EXIT_CODES,
    FAMILIES,
    FETCHERS,
    FETCHING,
    FETCHING_CODE,
    FORMATTERS,
    HOUSEKEEPING,
    INTERPRETERS,
    NOT_A_RUN,
    PROBES,
    PROGRAMS,
    RUNNERS,
    SCRIPT_TEST_WORDS,
    SHELLS,
    SUBCOMMANDS,
    TEST_FILE_WORDS,
    WRAPPER_PAIRS,
    WRAPPERS,
    WRITING_CODE,
    WRITING_FLAGS,
    Meaning,
    words,
)
from turnout.signals.rollback import taken_back
from turnout.signals.scripts import CHECKS
from turnout.signals.shell import Simple, parse

_PRECEDENCE: tuple[ToolKind, ...] = ("test", "execute", "edit", "write", "search", "read", "plan", "other")
_SILENT = HOUSEKEEPING | frozenset(
    words("cd pushd popd export set unset source . sleep echo printf true : alias umask ulimit wait")
)
_PIPED_VIEWERS = frozenset(words("head tail tee cat less more sort uniq wc cut tr column grep egrep rg sed awk"))


class Program(Struct, frozen=True):
    """One program of a command line, wrappers taken off. `name`: `pytest`, or with a sub-command `git merge`. `path`: as it
    was written, for interpreters the script."""

    name: str
    kind: ToolKind
    changes: bool
    args: tuple[str, ...]
    joined: str
    fetches: bool = False
    path: str = ""


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
    telling = [p for p in programs if p.name.partition(" ")[0] not in _SILENT] or programs
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
    scripts = [(_base(c.writes[0]), c.heredoc) for c in commands if c.writes and c.heredoc]
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


def _asks(program: Program) -> bool:
    """Whether a program is only asked for its version, or an interpreter for a module."""
    if program.name in ("which", "type", "command", "whereis"):
        return True
    if program.args[:1] and all(a in ("--version", "-V", "-v", "version", "--help") for a in program.args):
        return True
    code = _inline(program.args)
    return bool(code) and _ASKING_CODE.fullmatch(code) is not None


_PROVOKING = re.compile(r"non-?_?exist\w*|does[_-]not[_-]exist|\binvalid\w*|\bbogus\w*", re.IGNORECASE)


def _provoking(program: Program) -> str:
    found = _PROVOKING.search(" ".join(program.args[:8])[:600])
    return found.group() if found is not None else ""


def _scripts_of(program: Program) -> tuple[str, ...]:
    """Names of the scripts that a program runs: itself, or the files given to a test runner."""
    given = [a.partition("::")[0] for a in program.args[:8] if not a.startswith("-")] if program.kind == "test" else []
    return tuple(_base(path) for path in (program.path, *given) if path)


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _only_probes(main: Program, scripts: Sequence[tuple[str, str]]) -> bool:
    """Whether what is called a test by its name only is a script, written in the same line, that checks nothing."""
    if main.name.partition(" ")[0] not in INTERPRETERS:
        return False
    text = next((text for name, text in scripts if name == _base(main.path)), "")
    return bool(text) and CHECKS.search(text) is None


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


def expanded(commands: Sequence[Simple], depth: int = 3) -> Sequence[Simple]:
    """The commands with each line given to a shell (`bash -lc "..."`) taken apart in its place."""
    if depth == 0 or not any(_gives_line(c) for c in commands):
        return commands
    made: list[Simple] = []
    for command in commands:
        line = _shell_line(unwrapped(command.words)) if _gives_line(command) else None
        inner = list(expanded(parse(line), depth - 1)) if line is not None else []
        if not inner:
            made.append(command)
            continue
        inner[0] = replace(inner[0], joined=command.joined)
        if command.writes:
            inner[-1] = replace(inner[-1], writes=(*inner[-1].writes, *command.writes))
        made += inner
    return made


def _gives_line(command: Simple) -> bool:
    argv = unwrapped(command.words)
    return bool(argv) and argv[0].rpartition("/")[2] in SHELLS and _shell_line(argv) is not None


def programs_of(command: Simple) -> tuple[Program, ...]:
    """The program that a simple command runs, wrappers taken off; none for a command that only writes or assigns."""
    argv = unwrapped(command.words)
    return (_program(argv, command),) if argv else ()


def unwrapped(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The argv without `env A=1`, `sudo`, `timeout 60`, `uv run`, `python -m` and the like in front."""
    for _ in range(6):
        if not argv:
            return argv
        name = argv[0].rpartition("/")[2]
        if len(argv) > 2 and (name, argv[1]) in WRAPPER_PAIRS:
            argv = _after_options(argv[2:], 0)
        elif name in WRAPPERS and len(argv) > 1 and not (name == "command" and argv[1].startswith("-")):
            argv = _after_options(argv[1:], WRAPPERS[name]) or argv[:1]
            if len(argv) == 1 and argv[0].rpartition("/")[2] == name:
                return argv
        elif name.startswith("python") and "-m" in argv[1:4]:
            at = argv.index("-m")
            if at + 1 >= len(argv) or any(not w.startswith("-") for w in argv[1:at]):
                return argv
            argv = argv[at + 1 :]
        else:
            return argv
    return argv


def _after_options(argv: tuple[str, ...], skip: int) -> tuple[str, ...]:
    at = 0
    while at < len(argv):
        word = argv[at]
        if word.startswith("-") and len(word) > 1:
            # `-n 10`, `-u user`: an option's value is a word that is no program.
            at += 2 if len(word) == 2 and at + 1 < len(argv) and (argv[at + 1].isdigit() or word in ("-u", "-k")) else 1
        elif "=" in word and word.partition("=")[0].isidentifier():
            at += 1
        elif skip:
            skip -= 1
            at += 1
        else:
            break
    return argv[at:]


def _shell_line(argv: tuple[str, ...]) -> str | None:
    for at, word in enumerate(argv[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return argv[at + 1] if at + 1 < len(argv) else None
        if not word.startswith("-"):
            return None
    return None


def _program(argv: tuple[str, ...], command: Simple) -> Program:
    name = argv[0].rpartition("/")[2]
    args = argv[1:]
    if name in INTERPRETERS or name.startswith("python"):
        kind, shown = _script(name, args, command)
        if name in ("perl", "ruby") and any(
            a.startswith("-") and not a.startswith("--") and "i" in a for a in args[:2]
        ):
            return Program(shown, "edit", True, args, command.joined)
        script = next((a for a in args if not a.startswith("-")), "")
        code = command.heredoc or _inline(args)
        return Program(
            shown,
            kind,
            any(mark in code for mark in WRITING_CODE),
            args,
            command.joined,
            any(mark in code for mark in FETCHING_CODE),
            script,
        )
    table = SUBCOMMANDS.get(name)
    kind = PROGRAMS.get(name, "execute")
    shown = name
    if table is not None or name == "gh":
        plain = [a for a in args if not a.startswith("-")][:2]
        if plain:
            shown = f"{name} {plain[0]}"
        for arg in args[:6]:
            if table is not None and arg in table:
                kind = table[arg]
                shown = f"{name} {arg}"
                break
    if name == "tee" and all(a.startswith(("-", "/dev/")) for a in args):
        kind = "read"
    if name == "gh":
        kind = _gh_kind(args)
    if name == "test" and "/" in argv[0] and not argv[0].startswith(("/bin/", "/usr/")):
        kind, shown = "test", argv[0]
    if (name in FORMATTERS or shown in FORMATTERS) and any(a in CHECK_FLAGS for a in args):
        kind = "test"
    if kind == "execute" and name in RUNNERS and _names_test(args):
        kind = "test"
    if kind == "execute" and _names_test((name.rpartition(".")[0] or name,)) and argv[0].startswith((".", "/")):
        kind = "test"
    if kind == "test" and not NOT_A_RUN.isdisjoint(args):
        kind = "execute"
    changes = _changes(name, shown, kind, args)
    if changes and kind in ("read", "test", "search") and (kind != "test" or shown in FORMATTERS):
        kind = "edit" if kind != "read" or name in ("sed", "perl", "awk", "gawk", "yq", "sort") else kind
    plain_args = [a for a in args[:4] if not a.startswith("-")]
    fetches = name in FETCHERS and (name in ("wget", "curl", "aria2c") or any(a in FETCHING for a in plain_args))
    return Program(shown, kind, changes, args, command.joined, fetches, argv[0])


def _gh_kind(args: tuple[str, ...]) -> ToolKind:
    plain = {a for a in args[:4] if not a.startswith("-")}
    if plain & {"view", "list", "checks", "status", "diff", "watch", "download"}:
        return "read"
    if "search" in plain:
        return "search"
    if plain & {"edit", "close", "comment", "ready"}:
        return "edit"
    return "read" if "api" in plain and not {"-X", "--method", "-f", "-F"} & set(args) else "execute"


def _changes(name: str, shown: str, kind: ToolKind, args: tuple[str, ...]) -> bool:
    if (name in FORMATTERS or shown in FORMATTERS) and name != "prettier":
        return not any(a in CHECK_FLAGS for a in args)
    flags = WRITING_FLAGS.get(name)
    if flags and any(a in flags or (a.startswith(("-i", "-pi")) and name in ("sed", "perl")) for a in args):
        return True
    return kind in ("write", "edit") or name in HOUSEKEEPING


def _script(name: str, args: tuple[str, ...], command: Simple) -> tuple[ToolKind, str]:
    script = next((a for a in args if not a.startswith("-")), "")
    if any(a in ("-c", "-e", "--eval", "-p") for a in args[:3]) or command.reads_heredoc or script == "-":
        return "execute", name
    if name in ("node", "deno", "bun") and (table := SUBCOMMANDS.get(name)) is not None:
        for arg in args[:2]:
            if arg in table:
                return table[arg], f"{name} {arg}"
    base = script.rpartition("/")[2]
    if base in SUBCOMMANDS:
        plain = [a for a in args if not a.startswith("-")]
        verb = plain[1] if len(plain) > 1 else ""
        return SUBCOMMANDS[base].get(verb, "execute"), f"{base} {verb}".strip()
    if base in PROGRAMS and PROGRAMS[base] == "test":
        return "test", base
    if base and _names_test((base.rpartition(".")[0] or base,), TEST_FILE_WORDS):
        return "test", name
    if name in SHELLS and "-n" in args:
        return "test", name
    return "execute", name


def _names_test(names: Sequence[str], telling: Sequence[str] = SCRIPT_TEST_WORDS) -> bool:
    for word in names[:4]:
        lowered = word.lower().lstrip("-:")
        pieces = lowered.replace("-", "_").replace(":", "_").replace(".", "_").split("_")
        if any(p in telling for p in pieces):
            return True
    return False


def _inline(args: tuple[str, ...]) -> str:
    """The program text given to an interpreter on its command line, "" when there is none."""
    return next((args[i + 1] for i, a in enumerate(args[:-1]) if a in ("-c", "-e", "--eval")), "")
