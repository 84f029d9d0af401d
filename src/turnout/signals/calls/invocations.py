"""The programs that a shell line runs: wrappers taken off, lines given to shells taken apart, what each does."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from turnout.signals.calls.programs import (
    CHECK_FLAGS,
    FETCHERS,
    FETCHING,
    FETCHING_CODE,
    FORMATTERS,
    HOUSEKEEPING,
    INTERPRETERS,
    NOT_A_RUN,
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
)
from turnout.signals.calls.shell import Simple, parse
from turnout.signals.observation import ToolKind


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


def base(path: str) -> str:
    """The name of a file without its folders."""
    return path.rpartition("/")[2]


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
        code = command.heredoc or inline(args)
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


def inline(args: tuple[str, ...]) -> str:
    """The program text given to an interpreter on its command line, "" when there is none."""
    return next((args[i + 1] for i, a in enumerate(args[:-1]) if a in ("-c", "-e", "--eval")), "")
