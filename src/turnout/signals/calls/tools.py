"""What a tool call does: the tools of the known harnesses, verbs in names for the rest, shell lines taken apart."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from turnout.signals.calls.harnesses import EDITORS, SHELL_TOOLS, TOOLS
from turnout.signals.calls.programs import FETCHING_CODE, WRITING_CODE, kinds
from turnout.signals.calls.shell import Simple, parse
from turnout.signals.calls.shells import ShellReading, read_shell
from turnout.signals.observation import ToolKind
from turnout.signals.vocabulary import BUILT_IN, Vocabulary

EDITOR_COMMANDS: dict[str, ToolKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
    "delete": "edit",
    "rename": "edit",
}
"""Tools that read or edit by their `command` argument."""

VERBS: dict[str, ToolKind] = kinds(
    {
        "read": "read get fetch view show describe cat open load download list status inspect retrieve count tail head peek",
        "search": "search find query grep lookup browse locate match resolve discover",
        "write": "write create save new upload generate export",
        "edit": """update edit modify set patch replace delete remove rename move insert append cancel book apply change exchange
            return send transfer put merge commit push assign close enable disable format fix refactor""",
        "execute": "run exec execute eval invoke shell bash terminal python command compile build deploy start stop restart",
        "test": "test tests lint typecheck verify",
        "plan": "plan todo think thought reason",
    }
)
"""Kind by the first verb among the words of an unlisted tool's name."""

PLANNERS = ("task-master", "taskmaster", "todo", "sequential-thinking", "planner")
KNOWLEDGE = ("memory", "calculator")
"""Words in a server's name that decide for all its tools: plan, other."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PATHS = (
    "file_path",
    "path",
    "filepath",
    "filePath",
    "notebook_path",
    "target_file",
    "absolute_path",
    "file",
    "filename",
    "url",
)
_SEPARATOR = re.compile(r"__|\.|/|:")
CHANGED = (
    "old_string", "new_string", "old_str", "new_str", "oldString", "newString", "content", "file_text", "contents", "text",
    "new_source", "code_edit", "CodeContent", "ReplacementContent", "TargetContent", "insert_text",
)  # fmt: skip
"""Arguments of editing tools that hold what is put in or taken out."""
_PATCHES = ("patch", "input", "diff", "patch_text", "patchText", "edit")
_COMMANDS = ("command", "cmd", "script", "input", "code", "commands")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


class Action(Struct, frozen=True):
    """What a tool call asks for.

    `tool`: the name as called. `listed`: the kind comes from a table rather than from verbs. `target`: the path or program
    it acts on, short. `changes`: it asks to change the workspace. `size`: characters it puts in and takes out, None where the
    call does not tell. `call`: digest of the tool and its arguments. `shell`: the command line read, None for other tools.
    `downloads`, `writers`: names of scripts it writes that download, that write files. `wrote`: names of files it writes.
    """

    tool: str
    kind: ToolKind = "other"
    listed: bool = False
    target: str = ""
    changes: bool = False
    call: str = ""
    shell: ShellReading | None = None
    size: int | None = None
    downloads: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()


UNKNOWN = Action("?")
"""The action behind a result without a call."""


def read_call(name: str, arguments: str, namespace: str | None = None, vocabulary: Vocabulary = BUILT_IN) -> Action:
    """The action a call asks for. `arguments`: JSON text, or raw text of a free-form tool; anything unreadable is text."""
    decoded = _arguments(arguments)
    shown = f"{namespace}__{name}" if namespace else name
    # A free-form input and the function form that other formats give it are the same call.
    asked = decoded["input"] if isinstance(decoded, dict) and len(decoded) == 1 and "input" in decoded else arguments
    spelled = asked if isinstance(asked, str) else arguments
    call = _digest(shown, spelled)
    bare = name.lower()
    kind = vocabulary.kind(shown.lower(), _SEPARATOR.split(bare)[-1])
    if kind is not None:
        return _on_file(shown, kind, True, _path(decoded), decoded, call)
    if bare in SHELL_TOOLS or (bare not in TOOLS and _looks_like_shell(bare, decoded)):
        return _of_shell(shown, bare, decoded, call, vocabulary)
    if bare in EDITORS:
        wanted = decoded.get("command") if isinstance(decoded, dict) else None
        asked_words = wanted.split() if isinstance(wanted, str) else []
        verb = next((w for w in asked_words[:2] if w in EDITOR_COMMANDS), "view")
        path = _path(decoded) or next((w for w in asked_words if w.startswith("/")), "")
        return _on_file(shown, EDITOR_COMMANDS[verb], True, path, decoded, call)
    kind, listed = tool_kind(bare, shown, name)
    path = _path(decoded)
    if not path and isinstance(decoded, str | dict) and kind == "edit":
        found = _PATCHED.search(decoded if isinstance(decoded, str) else str(decoded.get("input", "")))
        path = found.group(1).strip() if found else ""
    if kind == "edit" and _only_adds(arguments):
        kind = "write"
    return _on_file(shown, kind, listed, path[:120], decoded, call)


def _of_shell(shown: str, bare: str, decoded: Any, call: str, vocabulary: Vocabulary) -> Action:
    command = _command(decoded)
    if command is None and bare == "process":
        return Action(shown, "other", True, call=call)
    shell = read_shell(commands_of(command), vocabulary.programs)
    # What it is run for, how long it may take and where it is shown make no other call of it.
    call = _digest(shown, _ran(command, decoded)) if command is not None else call
    return Action(
        tool=shown,
        kind="write" if shell.kind == "edit" and _only_adds(str(command)) else shell.kind,
        listed=True,
        target=shell.target,
        changes=shell.changes,
        call=call,
        shell=shell,
        size=(changed(command) if isinstance(command, str) else None) or shell.size if shell.changes else None,
        downloads=shell.downloads,
        writers=shell.writers,
        wrote=shell.wrote,
    )


def _on_file(shown: str, kind: ToolKind, listed: bool, path: str, decoded: Any, call: str) -> Action:
    """The action of a tool that is no shell: what it does to the file it names, if any."""
    if kind not in ("write", "edit"):
        return Action(shown, kind, listed, path, False, call)
    file = path.rpartition("/")[2]
    text = _written(decoded) if kind == "write" and file else ""
    return Action(
        tool=shown,
        kind=kind,
        listed=listed,
        target=path,
        changes=True,
        call=call,
        size=changed(decoded),
        downloads=(file,) if any(mark in text for mark in FETCHING_CODE) else (),
        writers=(file,) if any(mark in text for mark in WRITING_CODE) else (),
        wrote=(file,) if text else (),
    )


def _written(decoded: Any) -> str:
    if isinstance(decoded, dict):
        for key in ("content", "file_text", "contents", "text"):
            if isinstance(text := decoded.get(key), str):
                return text
    return ""


_ADDED = re.compile(r"\*\*\* Add File: |\"(?:kind|type)\": ?\"(?:add|create_file)\"")
_CHANGED = re.compile(
    r"\*\*\* (?:Update|Delete) File: |\"(?:kind|type)\": ?\"(?:update|delete|modify|update_file|delete_file)\""
)


def _only_adds(patch: str) -> bool:
    """Whether a patch adds files and changes none that was there."""
    return _ADDED.search(patch) is not None and _CHANGED.search(patch) is None


def _ran(command: Any, decoded: Any) -> str:
    line = command if isinstance(command, str) else msgspec.json.encode(command).decode()
    where = (decoded.get("workdir") or decoded.get("cwd")) if isinstance(decoded, dict) else None
    return f"{line.strip()}\x1f{where}" if where else line


def _digest(tool: str, asked: str) -> str:
    return hashlib.blake2b(f"{tool}\x1f{asked.strip()}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def changed(decoded: Any) -> int | None:
    """How many characters a change puts in and takes out, by what its arguments hold; None where they do not tell."""
    if isinstance(decoded, str):
        if "*** Begin Patch" not in decoded and "\n@@" not in decoded and not decoded.startswith("@@"):
            return None
        return sum(
            len(line) - 1 for line in decoded.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
        )
    if not isinstance(decoded, dict):
        return None
    if isinstance(edits := decoded.get("edits"), list):
        sizes = [size for edit in edits if (size := changed(edit)) is not None]
        return sum(sizes) if sizes else None
    texts = [len(text) for key in CHANGED if isinstance(text := decoded.get(key), str)]
    if texts:
        return sum(texts)
    patch = next((text for key in _PATCHES if isinstance(text := decoded.get(key), str)), None)
    return changed(patch) if patch is not None else None


def tool_kind(bare: str, shown: str, name: str) -> tuple[ToolKind, bool]:
    """The kind of a tool that is no shell, and whether a table lists it."""
    if bare in TOOLS:
        return TOOLS[bare], True
    whole = shown.lower()
    last = _SEPARATOR.split(name)[-1]
    server = whole[: len(whole) - len(last)]
    if any(word in server for word in PLANNERS):
        return "plan", True
    if any(word in server for word in KNOWLEDGE):
        return "other", True
    if server and last.lower() in TOOLS:
        return TOOLS[last.lower()], True
    for word in _WORD.findall(last):
        kind = VERBS.get(word.lower())
        if kind is not None:
            return kind, False
    return "other", False


def _arguments(arguments: str) -> Any:
    text = arguments.lstrip()
    if text[:1] in ("{", "[", '"'):
        try:
            decoded = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return arguments
        # Some clients encode the arguments twice.
        if isinstance(decoded, str) and decoded.lstrip()[:1] == "{":
            return _arguments(decoded)
        return decoded
    return arguments


def _looks_like_shell(bare: str, decoded: Any) -> bool:
    if not isinstance(decoded, dict) or not (isinstance(decoded.get("command"), str | list) or "cmd" in decoded):
        return False
    return bare not in EDITORS and any(w in bare for w in ("bash", "shell", "exec", "terminal", "command", "run"))


def _command(decoded: Any) -> Any:
    if isinstance(decoded, dict):
        for key in _COMMANDS:
            if key in decoded:
                value = decoded[key]
                return _command(value) if isinstance(value, dict) else value
        action = decoded.get("action")
        return _command(action) if isinstance(action, dict) else None
    return decoded


def commands_of(command: Any) -> tuple[Simple, ...]:
    """The simple commands of a shell tool's argument: a line, an argument list, or a JSON text of either."""
    if isinstance(command, str):
        inner = _arguments(command) if command.lstrip()[:1] in ("{", "[") else command
        return parse(command) if not isinstance(inner, dict | list) or not inner else commands_of(_command(inner))
    if isinstance(command, Sequence):
        argv = tuple(str(w) for w in command)
        return (Simple(argv),) if argv else ()
    return ()


def _path(decoded: Any) -> str:
    if isinstance(decoded, dict):
        for key in _PATHS:
            value = decoded.get(key)
            if isinstance(value, str):
                return value[:120]
    return ""
