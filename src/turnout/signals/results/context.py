"""What went before in the task and changes what a result means: whether the code was touched, which scripts download."""

import re

from msgspec.structs import replace

from turnout.signals.calls.tools import Action
from turnout.signals.observation import Observation

_SCRATCH = re.compile(
    r"repro|scratch|(?:^|[/_.-])(?:tests?|check|debug|verify|demo|tmp|try|issue|bug|example)(?:[/_.-]|\d|$)"
)
"""Names of files that are written to look at the code rather than to change it."""

_OWN_FAULTS = frozenset(
    {
        "missing_module",
        "syntax",
        "no_such_file",
        "usage",
        "command_not_found",
        "timeout",
        "permission_denied",
        "test_error",
    }
)
"""Failures that come from how a script was written or called, whatever it was to show."""

_SHOWN_BY_CHECK = frozenset({"test_failure", "assertion", "exit_nonzero", "check_failed"})

_ERROR = re.compile(
    r"((?:[\w$]+\.)*[A-Z][\w$]*(?:Error|Exception|Warning|Fault|DoesNotExist|NotFound))\b:?[ \t]*([^\n`]{0,60})"
)
_BLANKS = re.compile(r"\s+")
NAMED_AT_MOST = 64


def failures_named(text: str) -> frozenset[str]:
    """The failures a user's text names, in a form that evidence lines are compared in."""
    if "Error" not in text and "Exception" not in text and "Warning" not in text:
        return frozenset()
    found = _ERROR.findall(text[:40_000])
    whole = {_named(name, told) for name, told in found[:NAMED_AT_MOST] if len(told.strip()) >= 8}
    return frozenset(whole | {name.rpartition(".")[2] for name, _ in found[:NAMED_AT_MOST]})


def _named(name: str, told: str) -> str:
    return f"{name.rpartition('.')[2]}: {_BLANKS.sub(' ', told).strip()[:40]}"


class Context:
    """What is known of the task before a result. `named`: failures that the user spoke of."""

    __slots__ = ("_downloads", "_edited", "_named", "_stashed", "_writers", "_wrote")

    def __init__(self, named: frozenset[str] = frozenset()) -> None:
        self._named = named
        self._edited = False
        self._stashed = False
        self._downloads: set[str] = set()
        self._writers: set[str] = set()
        self._wrote: set[str] = set()

    def downloads(self, action: Action) -> bool:
        """Whether the call runs a script written before that downloads."""
        return bool(self._downloads) and action.shell is not None and not self._downloads.isdisjoint(action.shell.runs)

    def add(self, action: Action, o: Observation) -> Observation:
        """`o` as it reads after what went before; remembers what the call did."""
        if o.error_class == "capability" and o.kind in ("execute", "test") and self._wanted(action, o):
            o = replace(o, error_class="informational", error_kind="expected_failure", fingerprint="")
        if action.shell is not None and action.shell.takes_back and o.status != "failed":
            self._stashed = action.shell.takes_back == "stash"
            if action.shell.takes_back == "rollback":
                self._edited = False
        self._downloads.update(action.downloads)
        self._writers.update(action.writers)
        self._wrote.update(action.wrote)
        if not self._edited and o.status != "failed" and self._edits(action):
            self._edited = True
        return o

    def _wanted(self, action: Action, o: Observation) -> bool:
        """Whether a failure is what the call was to show: the issue itself before the code was touched, or without the change."""
        shell = action.shell
        if shell is None:
            return False
        # Tests run on the code as it was, without the agent's change: what fails there is the baseline.
        if o.error_kind == "test_failure" and (self._stashed or shell.takes_back not in ("", "unstash")):
            return True
        if self._edited or o.error_kind in _OWN_FAULTS or o.tests_run == 0:
            return False
        # A test written first is to fail until the code is changed.
        own = shell.kind == "test" and not self._wrote.isdisjoint(shell.runs)
        if o.error_kind in _SHOWN_BY_CHECK and (shell.reproduces or own):
            return True
        found = _ERROR.search(o.evidence_text) if self._named else None
        if found is None:
            return False
        # A reproduction may fail in other words than the user's; anything else must say the same.
        if shell.reproduces and found.group(1).rpartition(".")[2] in self._named:
            return True
        line = _named(*found.groups())
        return any(": " in name and (line.startswith(name) or name.startswith(line)) for name in self._named)

    def _edits(self, action: Action) -> bool:
        shell = action.shell
        if shell is None:
            return action.changes and (action.kind == "edit" or not _SCRATCH.search(action.target.lower()))
        if shell.takes_back:
            return False
        if not self._writers.isdisjoint(shell.runs):
            return True
        return shell.edits and not (
            shell.reproduces or (shell.kind != "edit" and _SCRATCH.search(shell.written.lower()))
        )
