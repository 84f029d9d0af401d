"""One tool call and its result, judged: the Observation. Status and flags decide before structure, structure before text."""

import hashlib
import re
from typing import Literal

import msgspec
from msgspec import Struct

from turnout.conversation import Audio, Document, Image, ToolResult
from turnout.signals.calls.harnesses import ANSWERS, DELEGATES, SILENT_SUCCESS, TRANSCRIPTS
from turnout.signals.calls.programs import INTERPRETERS
from turnout.signals.calls.rollback import rejects, undoes
from turnout.signals.calls.shells import Echoes, ShellReading
from turnout.signals.calls.tools import Action
from turnout.signals.observation import Evidence, Observation, Status, ToolKind
from turnout.signals.results.causes import cause, continuous_integration, failed_test
from turnout.signals.results.counts import Summary
from turnout.signals.results.errors import (
    CALL_FAILED,
    EDIT_FAILED,
    LINT_LEFT,
    NO_MATCH,
    Failing,
    bounded,
    critical,
    failing,
    first_line,
    line_at,
    uncaught_exception,
)
from turnout.signals.results.fingerprint import fingerprint, shown
from turnout.signals.results.reading import OF_SHELLS, Form, Reading, read_result
from turnout.signals.results.scripts import verdicts
from turnout.signals.results.summaries import read_summary, without_colour
from turnout.signals.vocabulary import BUILT_IN, Vocabulary

CONTENT_KINDS = frozenset({"read", "search"})
CLOSED = frozenset({"execute_bash"})
"""Shell tools of harnesses that print the exit code behind the output (OpenHands)."""

_SHOWN_ELSEWHERE = re.compile(r"^\[(?:image|document|audio): see the next user message\]\n?", re.MULTILINE)
_ABSENT = re.compile(r"\s*(?:\S{1,40}: .{1,200}: No such file or directory\s*)+")
_DURATION = re.compile(r"\d+(?:\.\d+)? ?(?:m?s|sec(?:ond)?s?|min(?:ute)?s?)\b")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_SUMMARISED = 600
"""Characters at the end of a program's output in which it says how long it took."""


class _Verdict(Struct, frozen=True):
    status: Status
    evidence: Evidence
    failing: Failing | None = None
    line: str = ""


def judge(
    action: Action, result: ToolResult, message: int, part: int, vocabulary: Vocabulary = BUILT_IN, agent: str = ""
) -> Observation:
    """The observation of `result`, which answers the call read as `action`; `message`, `part`: its place."""
    form = _form(action)
    reading = read_result(result, form)
    guarded = False
    if action.shell is not None and action.shell.echoes is not None:
        reading, guarded = _with_echoes(action.shell.echoes, reading)
    body = without_colour(reading.body)
    shows = _shows(result, body)
    if shows:
        body = _SHOWN_ELSEWHERE.sub("", body).strip("\n")
    kind = action.kind
    summary = (
        read_summary(body, vocabulary.runners)
        if (form in OF_SHELLS and kind in ("execute", "test", "other")) or kind == "test"
        else None
    )
    if summary is not None and summary.run and kind == "execute":
        kind = "test"
    elif action.tool in TRANSCRIPTS and "test session starts" in body:
        summary = read_summary(body, vocabulary.runners)
        kind = "test" if summary is not None and summary.run else kind
    elif action.tool == "?":
        head = body[:60].lstrip().lower()
        kind = next((known for beginning, known in ANSWERS if head.startswith(beginning)), kind)
    elif action.tool in TRANSCRIPTS and any(mark in body for mark in TRANSCRIPTS[action.tool]):
        kind = "edit"
    verdict = _not_run(reading) or _status(action, kind, form, reading, body, summary)
    if guarded and verdict.failing is not None and verdict.failing.kind == "exit_nonzero":
        # The command line itself provided for the failure: its answer was asked for.
        verdict = _Verdict("failed", "text", Failing("informational", "provided_for", verdict.failing.line))
    if vocabulary.patterns:
        verdict = _by_pattern(vocabulary, action, form, body, verdict)
    failed = verdict.status == "failed"
    told = verdict.failing
    error_class = told.error_class if told else "capability" if failed else "none"
    error_kind = told.kind if told else "tool_error" if failed else ""
    telling = told.line if told and told.line.strip() else first_line(body) if failed else ""
    change = _change(action, verdict.status, reading)
    serious = failed and error_class in ("capability", "critical")
    return Observation(
        tool=action.tool,
        kind=kind,
        message=message,
        part=part,
        status=verdict.status,
        evidence=verdict.evidence,
        error_class=error_class,
        error_kind=error_kind,
        fingerprint=fingerprint(error_kind, telling or action.target or action.tool) if serious else "",
        evidence_text=shown(telling or verdict.line),
        exit_code=reading.exit_code,
        change=change,
        change_size=action.size if change else None,
        takes_back=_takes_back(action, failed, body),
        waits=action.shell is not None and action.shell.waits,
        target=shown(action.target),
        call=action.call,
        tests_run=summary.run if summary else None,
        tests_passed_count=summary.passed if summary else None,
        tests_failed=summary.failed if summary else None,
        tests_passed=_passed(action, verdict, summary, body) if kind == "test" else None,
        digest="" if shows else _digest(body, kind),
        size=len(body),
        truncated=reading.truncated,
        duration_s=reading.duration_s,
        agent=agent,
    )


def _takes_back(action: Action, failed: bool, body: str) -> str:
    """Which earlier changes the call undid, or the review it brought rejected."""
    shell = action.shell
    if shell is not None and shell.takes_back:
        # A rollback that is only a part of the line is not what failed.
        return "" if failed and shell.kind in ("edit", "write") else shell.takes_back
    if shell is None and not failed and (undoes(action.tool) or body.startswith("Last edit to ")):
        return "undo"
    return "review" if rejects(action.tool, action.target, body) else ""


def _passed(action: Action, verdict: _Verdict, summary: Summary | None, body: str) -> bool:
    """Whether tests ran and all were green: by the runner's summary, else by what a script says of itself."""
    if verdict.status == "failed":
        return False
    if summary is not None:
        return summary.green
    if action.shell is None or not _speaks_for_itself(action.shell, "test") or verdict.status != "ok":
        return False
    bad, good = verdicts(body)
    return good > 0 and not bad


def _with_echoes(echoes: Echoes, reading: Reading) -> tuple[Reading, bool]:
    """The status that the command line itself prints: `; echo "exit $?"`, or what it says after `||` when something went
    wrong (then True)."""
    if reading.exit_code not in (0, None) or reading.failed:
        return reading, False
    end = reading.body[-400:]
    if echoes.status:
        before, _, after = echoes.status.partition("$?")
        found = re.search(rf"^{re.escape(before)}(\d{{1,3}}){re.escape(after)}[ \t]*$", end, re.MULTILINE)
        if found is not None:
            return msgspec.structs.replace(reading, exit_code=int(found.group(1))), False
    if echoes.otherwise and any(line.strip() in echoes.otherwise for line in end.splitlines()):
        return msgspec.structs.replace(reading, exit_code=1), True
    return reading, False


def _by_pattern(vocabulary: Vocabulary, action: Action, form: Form, body: str, verdict: _Verdict) -> _Verdict:
    """What an operator's first matching pattern says instead: it knows the tools better than we do."""
    names = (action.tool.lower(), action.shell.main.lower() if action.shell else "")
    for pattern in vocabulary.patterns:
        if pattern.tools is not None:
            if not any(name and pattern.tools.match(name) for name in names):
                continue
        elif form == "content" or (action.shell is not None and action.kind in CONTENT_KINDS):
            continue
        looked = bounded(body)
        found = pattern.match.search(looked)
        if found is None:
            continue
        told = Failing(pattern.error_class, pattern.kind, line_at(looked, found.start()))
        serious = pattern.error_class in ("capability", "critical")
        status: Status = "failed" if serious else verdict.status if pattern.error_class == "informational" else "ok"
        stated = verdict.status == status and verdict.evidence != "none"
        return _Verdict(status, verdict.evidence if stated else "text", told)
    return verdict


def _digest(body: str, kind: ToolKind) -> str:
    """A digest of the output; how long a program took makes no difference."""
    if kind in ("execute", "test"):
        body = body[:-_SUMMARISED] + _DURATION.sub("", body[-_SUMMARISED:])
        if "0x" in body:
            body = _ADDRESS.sub("", body)
    return hashlib.blake2b(body.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _shows(result: ToolResult, body: str) -> bool:
    """Whether a result holds pictures or files: some formats carry them elsewhere, so no digest could be the same in all."""
    return (
        any(isinstance(part, Image | Document | Audio) for part in result.parts) or "see the next user message]" in body
    )


def _form(action: Action) -> Form:
    if action.shell is not None or action.kind in ("execute", "test") or action.tool == "?":
        return "closed" if action.tool in CLOSED else "shell"
    if action.tool.lower() in DELEGATES:
        return "content"
    if action.kind in CONTENT_KINDS:
        return "content" if action.listed else "answer"
    return "call"


def _not_run(reading: Reading) -> _Verdict | None:
    evidence: Evidence = "flag" if reading.by_flag else "structure"
    if reading.declined:
        return _Verdict("failed", evidence, Failing("informational", "declined", reading.notice))
    if reading.aborted:
        return _Verdict("failed", evidence, Failing("critical", "aborted", reading.notice))
    return None


def _status(
    action: Action, kind: ToolKind, form: Form, reading: Reading, body: str, summary: Summary | None
) -> _Verdict:
    """Whether the call did its job, by the strongest evidence there is."""
    code = reading.exit_code
    if reading.failed:
        evidence: Evidence = "flag" if reading.by_flag else "structure"
        return _Verdict("failed", evidence, cause(action, kind, form, reading, body, summary))
    if reading.timed_out:
        return _Verdict("failed", "structure", cause(action, kind, form, reading, body, summary))
    if code is not None and code != 0:
        told = cause(action, kind, form, reading, body, summary)
        return _Verdict("ok" if told.error_class == "none" else "failed", "exit_code", told, f"exit code {code}")
    if code == 0 or reading.failed is False or action.tool in SILENT_SUCCESS:
        evidence = "exit_code" if code == 0 else "flag" if reading.failed is False else "structure"
        line = "exit code 0" if code == 0 else ""
        return _despite_success(action, kind, form, reading, body, summary) or _Verdict(
            "ok", evidence, _remark(action, kind, reading, body, summary), line
        )
    return _by_text(action, kind, form, body, summary)


def _despite_success(
    action: Action, kind: ToolKind, form: Form, reading: Reading, body: str, summary: Summary | None
) -> _Verdict | None:
    """A failure that the output proves although the status says nothing of it: red summaries, masked statuses, uncaught
    exceptions at the very end, failed checks of continuous integration."""
    if form not in OF_SHELLS or kind not in ("execute", "test", "read", "search"):
        return None
    shell = action.shell
    if kind in CONTENT_KINDS:
        told = continuous_integration(body) if shell and shell.checks else None
        if told is None and len(body) < 400 and _ABSENT.fullmatch(body):
            # What stands behind a pipe shows a zero status; that the file is not there is all there is to see.
            return _Verdict("failed", "text", Failing("informational", "absent_path", first_line(body)))
        return _Verdict("failed", "text", told) if told and told.error_class == "capability" else None
    if summary is not None and summary.failed:
        return _Verdict("failed", "text", Failing("capability", "test_failure", failed_test(body)))
    full = critical(bounded(body))
    if full is not None and full.kind == "disk_full":
        return _Verdict("failed", "text", full)
    uncaught = uncaught_exception(body)
    if uncaught:
        told = failing(body)
        return _Verdict("failed", "text", Failing("capability", told.kind if told else "exception", uncaught))
    if shell is not None and summary is None and _speaks_for_itself(shell, kind):
        bad, _ = verdicts(body)
        if bad:
            return _Verdict("failed", "text", Failing("capability", "check_failed", bad))
    masked = shell is not None and shell.masked and not (summary is not None and summary.green)
    told = failing(body) if masked else None
    return _Verdict("failed", "text", told) if told is not None else None


def _speaks_for_itself(shell: ShellReading, kind: ToolKind) -> bool:
    """Whether the line runs a script that was written to check something."""
    return (kind == "test" or shell.reproduces) and shell.main.partition(" ")[0] in INTERPRETERS


def _remark(action: Action, kind: ToolKind, reading: Reading, body: str, summary: Summary | None) -> Failing | None:
    """What is worth knowing of a success: no test ran, still pending, cut."""
    if kind == "test" and summary is not None and summary.run == 0:
        return Failing("informational", "no_tests", "")
    shell = action.shell
    if kind == "read" and shell and shell.checks:
        told = continuous_integration(body)
        if told is not None:
            return told
    if reading.truncated and "too long" in body[:400] and not (summary is not None and summary.green):
        return Failing("informational", "truncated", first_line(body))
    if kind == "search" and NO_MATCH.fullmatch(body):
        return Failing("informational", "no_match", body.strip()[:200])
    return None


def _by_text(action: Action, kind: ToolKind, form: Form, body: str, summary: Summary | None) -> _Verdict:
    """No flag and no exit code: summaries, then anchored lines of shells, then how a tool's answer begins."""
    if form in OF_SHELLS:
        if action.tool == "?" or kind not in ("execute", "test", "edit", "write", "other"):
            return _Verdict("unknown", "none", _remark(action, kind, Reading(body), body, summary))
        if summary is not None and summary.run:
            if summary.failed:
                return _Verdict("failed", "text", Failing("capability", "test_failure", failed_test(body)))
            return _Verdict("ok", "text", None)
        told = failing(body)
        # What a harness prints of its own trouble with a model behind an output says nothing of the command.
        if told is not None and told.kind != "provider":
            return _Verdict("failed", "text", told)
        return _Verdict("unknown", "none", _remark(action, kind, Reading(body), body, summary))
    if form == "content":
        return _Verdict("unknown", "none", _remark(action, kind, Reading(body), body, summary))
    if action.tool in TRANSCRIPTS:
        broken = critical(bounded(body))
        if broken is not None:
            return _Verdict("failed", "text", broken)
        if summary is not None and summary.run:
            red = Failing("capability", "test_failure", failed_test(body)) if summary.failed else None
            return _Verdict("failed" if red else "ok", "text", red)
        found = EDIT_FAILED.search(bounded(body)) or LINT_LEFT.search(bounded(body))
        if found is not None:
            return _Verdict(
                "failed", "text", Failing("capability", "edit_failed", line_at(bounded(body), found.start()))
            )
        return _Verdict("ok", "text") if "\nApplied edit to " in body else _Verdict("unknown", "none")
    if kind in ("edit", "write"):
        head = body.strip()[:2_000]
        found = EDIT_FAILED.search(head) if action.listed else CALL_FAILED.match(head)
        if found is not None:
            return _Verdict("failed", "text", Failing("capability", "edit_failed", line_at(head, found.start())))
        return _Verdict("ok", "text") if head else _Verdict("unknown", "none")
    # An answer that begins with an error, from a tool that is no reader of files: the tool's own words.
    if not action.listed or kind not in CONTENT_KINDS:
        head = body.strip()
        if len(head) < 2_000 and CALL_FAILED.match(head):
            return _Verdict("failed", "text", cause(action, kind, form, Reading(body), head, None))
    return _Verdict("unknown", "none", _remark(action, kind, Reading(body), body, summary))


def _change(action: Action, status: Status, reading: Reading) -> Literal["verified", "claimed"] | None:
    if not action.changes or status == "failed":
        return None
    masked = action.shell is not None and action.shell.masked and action.shell.kind not in ("write", "edit")
    return "verified" if status == "ok" and not masked else "claimed"
