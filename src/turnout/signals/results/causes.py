"""Why a call failed that certainly failed: its class, kind and telling line."""

import re

from turnout.signals.calls.programs import FAILS_AS, LINT_WORDS, LINTERS, SIGNALS
from turnout.signals.calls.shells import ShellReading
from turnout.signals.calls.tools import Action
from turnout.signals.observation import ToolKind
from turnout.signals.results.counts import Summary
from turnout.signals.results.errors import (
    CI_FAILED,
    CI_NEWEST,
    CI_PENDING,
    Failing,
    bounded,
    failing,
    first_line,
    line_at,
    negative,
)
from turnout.signals.results.reading import OF_SHELLS, Form, Reading

WAITING_FOR = frozenset({"connection_refused", "exit_nonzero", "http_error", "unreachable", "absent_path", "no_match"})

_SAYS_WHAT_FAILED = frozenset({"usage", "timeout", "connection_refused", "permission_denied", "http_error"})
_NOT_FOUND = frozenset({"command_not_found", "syntax", "missing_module"})

_TEST_LINES = tuple(
    re.compile(p, re.MULTILINE)
    for p in (
        r"^(?:FAILED|ERROR) \S+::.*",
        r"^E   \S.*",
        r"^(?:FAIL|ERROR): \w+ \(",
        r"^[ \t]*--- FAIL: ",
        r"^---- \S+ stdout ----",
        r"^  ● ",
        r"^[ \t]*[✗✕✖\u00d7] ",
        r"^not ok ",
        r"^[ \t]+\d+\) ",
        r"^(?:FAIL|FAILED)\b",
        r"^_{5,} \S+ _{5,}$",
    )
)


def cause(action: Action, kind: ToolKind, form: Form, reading: Reading, body: str, summary: Summary | None) -> Failing:
    """Class and kind of a failure that is certain."""
    shell, code = action.shell, reading.exit_code
    if reading.timed_out:
        late = (shell is not None and shell.fetches) or (kind == "execute" and downloading(body))
        return Failing("critical" if late else "capability", "download_timeout" if late else "timeout", reading.notice)
    if form not in OF_SHELLS:
        return _tool_failed(kind, body)
    told = _by_exit_code(shell, code, body) if code is not None else None
    if told is None and shell is not None and code is None and shell.checks:
        told = continuous_integration(body)
    if told is None and kind == "test" and summary is not None:
        told = Failing("capability", "test_failure", failed_test(body)) if summary.failed else None
    nothing_ran = kind == "test" and summary is not None and not summary.run
    if told is None:
        told = failing(body)
        if told is None and nothing_ran:
            return Failing("informational", "no_tests", first_line(body))
        if told is not None and kind in ("read", "search") and told.kind == "no_such_file":
            told = Failing("informational", "absent_path", told.line)
    if told is None and code in SIGNALS:
        told = Failing(*SIGNALS[code], first_line(body))
    if told is None:
        told = Failing("capability", _kind_of_failure(shell, kind, code), first_line(body))
    if shell is not None and shell.asks and told.kind in ("command_not_found", "missing_module"):
        return Failing("informational", "absent", told.line)
    if shell is not None and shell.provokes and told.error_class == "capability" and shell.provokes in told.line:
        return Failing("informational", "provoked", told.line)
    if shell is not None and shell.waits and shell.probes and told.kind in WAITING_FOR:
        return Failing("informational", "waiting", told.line)
    return told


def _kind_of_failure(shell: ShellReading | None, kind: ToolKind, code: int | None) -> str:
    """What a failure is called whose output says nothing known, in whatever language: by the program that failed."""
    if shell is not None:
        for name in (shell.main, shell.main.partition(" ")[0]):
            if name in FAILS_AS:
                return FAILS_AS[name]
        if kind == "test":
            return "lint" if _lints(shell) else "test_failure"
    return "exit_nonzero" if code is not None else "tool_error"


def _lints(shell: ShellReading) -> bool:
    if shell.main in LINTERS or shell.main.partition(" ")[0] in LINTERS:
        return True
    script = shell.target.rpartition(" ")[2].lower()
    return any(word in script for word in LINT_WORDS)


def _by_exit_code(shell: ShellReading | None, code: int, body: str) -> Failing | None:
    """What the exit code says by the table of the program that gave it."""
    meaning = shell.meaning(code) if shell else None
    if meaning is None:
        if code in (126, 127):
            told = failing(body)
            line = told.line if told is not None and told.kind in ("command_not_found", "permission_denied") else ""
            return Failing(*SIGNALS[code], line or first_line(body))
        return None
    error_class, kind = meaning
    if kind == "ci_failure" or kind == "pending":
        return continuous_integration(body) or (
            Failing(error_class, kind, first_line(body)) if kind == "pending" else None
        )
    told = failing(body) if body.strip() else None
    if kind == "absent_path":
        if shell is not None and shell.kind in ("edit", "write"):
            return None
        if told is None or told.kind == "no_such_file":
            return Failing(error_class, kind, told.line if told else first_line(body))
        return None
    if kind == "no_match":
        # Something before the search broke: a program in its pipe that is not there, a quote that does not close.
        return told if told is not None and told.kind in _NOT_FOUND else Failing(error_class, kind, first_line(body))
    if kind in ("usage", "merge", "test_failure", "test_error"):
        if kind == "usage" and told is not None and told.kind == "no_such_file":
            return Failing("informational", "absent_path", told.line)
        if told is not None and (told.error_class == "critical" or told.kind in ("missing_module", "usage")):
            return told
        if kind == "merge":
            return told
        if kind == "test_error" and "Exit: Quitting debugger" in body:
            return Failing("informational", "interrupted", first_line(body))
        if kind.startswith("test"):
            return Failing(error_class, kind, failed_test(body) or (told.line if told else ""))
    return Failing(error_class, kind, first_line(body))


def failed_test(body: str) -> str:
    """The line that names a failed test or its reason."""
    body = bounded(body)
    for pattern in _TEST_LINES:
        found = pattern.search(body)
        if found is not None:
            return line_at(body, found.start())
    return ""


def continuous_integration(body: str) -> Failing | None:
    """What a table or a list of checks says: failed, still running, or nothing of the kind."""
    newest = CI_NEWEST.match(body)
    if newest is not None and newest.group(1) not in ("failure", "timed_out"):
        pending = newest.group(1) == ""
        return Failing("informational", "pending", line_at(body, 0)) if pending else None
    found = CI_FAILED.search(body)
    if found is not None:
        return Failing("capability", "ci_failure", line_at(body, found.start()))
    found = CI_PENDING.search(body)
    return Failing("informational", "pending", line_at(body, found.start())) if found else None


_DOWNLOADING = re.compile(
    r"^(?:[ \t]*Downloading (?:https?://|\S+\.(?:whl|tar|zip|gz|bin|safetensors|parquet|json)\b)"
    r"|Fetching \d+ files:|Cloning into "
    r"|.{0,120}\d+%\|.{0,60}[kMG]?i?B/s|Receiving objects:|[ \t]*━+.*[kMG]B/s|Get:\d+ https?://)",
    re.MULTILINE,
)


def downloading(body: str) -> bool:
    """Whether the last lines of an output show a download under way."""
    return _DOWNLOADING.search(body[-1_500:]) is not None


def _tool_failed(kind: ToolKind, body: str) -> Failing:
    """What failed in a tool that is no shell and says that it failed."""
    line = first_line(body)
    if kind not in ("edit", "write"):
        told = negative(body)
        if told is not None:
            return told
    if len(body) < 2_000:
        told = failing(body)
        if told is not None and (told.error_class == "critical" or told.kind in _SAYS_WHAT_FAILED):
            return told
    if kind in ("edit", "write"):
        return Failing("capability", "edit_failed", line)
    return Failing("capability", "usage" if "regex" in line or "ripgrep failed" in line else "tool_error", line)
