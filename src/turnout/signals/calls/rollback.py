"""What takes changes back: rollbacks of version control, backups put back, undo tools, rejected reviews."""

import re
from collections.abc import Iterable, Sequence

BACKUPS = (".bak", ".orig", ".backup", ".old", ".save", "~")
"""What names of backup files end in."""

UNDO_WORDS = frozenset({"undo", "revert", "rollback", "discard"})
"""First words of tools that take changes back."""

SCOPED_AT_MOST = 4
"""Paths kept of a rollback; one of more is taken for one of everything."""

_SWITCHES = frozenset({"-b", "-B", "--orphan", "-t", "--track", "--detach", "-d"})
_BACK = frozenset({"stash pop", "stash apply"})
_KEPT = frozenset({"stash list", "stash show", "stash drop", "stash clear", "stash branch"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_REJECTED = re.compile(
    r"\A\W{0,4}(?:(?:verdict|decision|result|status|review|outcome)\W{1,6})?"
    r"(?:changes[ _]requested|request[ _]changes|reject(?:ed)?|not[ _]approved|needs[ _](?:changes|work)|denied)\b"
    r"|\"(?:verdict|decision|status|state|result|outcome|reviewDecision)\"\s*:\s*"
    r"\"(?:changes[ _]requested|request[ _]changes|reject(?:ed)?|not[ _]approved|needs[ _](?:changes|work)|denied)\""
    r"|\"(?:approved|accepted|lgtm|passes_review)\"\s*:\s*false\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(r"\"?(?:reviewDecision|review decision)\"?\s*[:\t]\s*\"?CHANGES_REQUESTED\b", re.IGNORECASE)


def taken_back(programs: Iterable[tuple[str, Sequence[str]]]) -> str:
    """What the programs of a command line take back, as (name, arguments) pairs: "" nothing, "stash", "unstash", or "rollback"
    with the paths after it where it is of some only."""
    found = [back for name, args in programs if (back := _of(name, args))]
    if not found or ("stash" in found and "unstash" in found):
        return ""
    if "rollback" in found or len(found) == 1:
        return "rollback" if "rollback" in found else found[0]
    paths = [p for back in found for p in back.split(" ")[1:]]
    return " ".join(["rollback", *paths]) if paths and len(paths) <= SCOPED_AT_MOST else found[0].split(" ")[0]


def undoes(tool: str) -> bool:
    """Whether the name of an unlisted tool says that it takes changes back."""
    found = _WORD.search(tool.replace("__", ".").rpartition(".")[2])
    return found is not None and found.group().lower() in UNDO_WORDS


def rejects(tool: str, target: str, body: str) -> bool:
    """Whether a result is a review that rejects the work: by its verdict, not by what it talks about."""
    if "review" in tool.lower():
        return _REJECTED.search(body[:4_000]) is not None
    return target.startswith("gh pr") and _DECIDED.search(body[:4_000]) is not None


def _of(name: str, args: Sequence[str]) -> str:
    program = name.partition(" ")[0]
    if program in ("git", "hg", "svn", "jj"):
        return _version_control(program, args)
    plain = [a for a in args if not a.startswith("-")]
    if program in ("cp", "mv") and len(plain) == 2 and any(plain[0] == plain[1] + end for end in BACKUPS):
        return f"rollback {plain[1]}"
    if program == "patch" and {"-R", "--reverse"} & set(args):
        return "rollback"
    return ""


def _version_control(program: str, args: Sequence[str]) -> str:
    at = _verb_at(args)
    verb = args[at] if at < len(args) else ""
    rest = list(args[at + 1 :])
    if program != "git":
        return _scoped(rest) if verb in ("revert", "undo", "restore", "abandon") else ""
    if verb == "stash":
        does = f"stash {rest[0]}" if rest and not rest[0].startswith("-") else "stash"
        return "unstash" if does in _BACK else "" if does in _KEPT else "stash"
    if verb == "reset":
        return "rollback" if {"--hard", "--merge", "--keep"} & set(rest) else ""
    if verb == "revert":
        return "" if {"--abort", "--continue", "--skip"} & set(rest) else "rollback"
    if verb == "apply":
        return "rollback" if {"-R", "--reverse"} & set(rest) else ""
    if verb == "restore":
        staged = {"--staged", "-S"} & set(rest) and not {"--worktree", "-W"} & set(rest)
        return "" if staged else _scoped(rest)
    if verb == "checkout" and not _SWITCHES & set(rest):
        if "--" in rest:
            return _scoped(rest[rest.index("--") + 1 :])
        if {"-f", "--force"} & set(rest):
            return "rollback"
        # A word with a dot or a slash and an ending is a path; a bare word is a branch.
        paths = [a for a in rest if not a.startswith("-") and (a == "." or "." in a.rpartition("/")[2].strip("."))]
        return _scoped(paths) if paths else ""
    return ""


def _verb_at(args: Sequence[str]) -> int:
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in ("-C", "-c", "-R", "--cwd") else 1
    return at


def _scoped(paths: Sequence[str]) -> str:
    named = [p for p in paths if not p.startswith("-")]
    if not named or len(named) > SCOPED_AT_MOST or any(p.strip("./") == "" or "*" in p or " " in p for p in named):
        return "rollback"
    return " ".join(["rollback", *named])
