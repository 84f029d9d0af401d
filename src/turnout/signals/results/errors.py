"""What failed: error kinds with their class, recognised by anchored lines. Words inside a line's prose never decide."""

import re

from msgspec import Struct

from turnout.signals.observation import ErrorClass
from turnout.signals.results.failing_lines import CAPABILITY, CRITICAL, INFORMATIONAL, lines

NO_MATCH = re.compile(
    r"\s*(?:|\[\]|\{\}|null|None|\(no (?:output|matches|results)\)"
    r"|(?:No|Found no|Found 0|0) (?:matches|matching files|files|results|"
    r"content|matching lines|occurrences|documents|items|symbols|references)\b[^\n]{0,200})\s*"
)
"""A search's answer that it found nothing."""

EDIT_FAILED = re.compile(
    lines(
        r"^(?:Error: )?String to replace not found",
        r"^(?:Error: )?(?:No|Multiple) (?:replacement|occurrences?|match(?:es)?)\b",
        r"^Found \d+ matches of the string to replace",
        r"^(?:Error: )?oldString (?:not found|found multiple times)",
        r"^(?:Error: )?File has (?:not been read yet|been modified since|been unexpectedly modified)",
        r"^(?:Error: )?No changes to (?:make|apply)",
        r"^(?:ERROR:?\s*)?No replacement was performed",
        r"^(?:ERROR:?\s*)?Invalid `\w+` parameter",
        r"^(?:Error: )?Could not find (?:the )?(?:old|exact|expected|string)",
        r"^(?:Error: )?Failed to (?:edit|apply|find|replace|write|create|modify)\b",
        r"^(?:Error: )?(?:apply_patch verification failed|Failed to find expected lines|Failed to find context)",
        r"^(?:Error: )?(?:Search|The search) (?:block|string|pattern) (?:was )?not found",
        r"^# \d+ SEARCH/REPLACE blocks? failed to match",
        r"^The LLM did not conform to the edit format",
        r"^Your proposed edit has introduced new syntax error",
        r"^The SEARCH section must exactly match",
        r"^(?:Error: )?(?:old_string|old_str) (?:not found|is not unique)",
        r"^(?:ERROR|Error|error)\b[: ]",
        r"^tool call error",
        r"^patch rejected",
    ),
    re.MULTILINE,
)
"""How edit tools without a failure flag say that nothing was changed."""

LINT_LEFT = re.compile(r"^Attempt to fix (?:lint|test) errors\?", re.MULTILINE)
"""How a harness asks whether to go on with what an edit broke."""

CALL_FAILED = re.compile(
    r"\A\s*(?:(?:Error|ERROR|error)\b ?[:(]|tool call error\b|tool call failed\b|Tool error\b|"
    r"Error (?:executing|calling|running) |"
    r"MCP error|Failed to call|Invalid (?:arguments|parameters|tool)|Unknown tool|Tool \S+ not found|Input validation error|"
    r"The tool execution failed|unsupported call|failed to parse function arguments|Exception: )"
)
"""How an unflagged answer of a tool begins that did not do its job."""

_COMPILED = {kind: re.compile(p, re.MULTILINE) for kind, p in (*CRITICAL, *CAPABILITY)}
_CRITICAL = tuple((kind, _COMPILED[kind]) for kind, _ in CRITICAL)
_CAPABILITY = tuple((kind, _COMPILED[kind]) for kind, _ in CAPABILITY)
_INFORMATIONAL = tuple((kind, re.compile(p, re.MULTILINE)) for kind, p in INFORMATIONAL)
_ROOT_CAUSE = re.compile(
    r"^(?:E[ \t]+)?(?:(?:[\w$]+\.)*[A-Z][\w$]*(?:Error|Exception|Fault|NotFound|DoesNotExist)\b.*"
    r"|panic: .*|thread '.*panicked at.*|error(?:\[E\d+\])?: .*|.{1,200}: error:? .*|fatal: .*)$",
    re.MULTILINE,
)
_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_BANNER = re.compile(
    r"error: (?:could not compile|aborting due to|test failed, to rerun|recipe for target|build failed|process didn't exit)"
    r"|.{0,120}: (?:recipe for target|\*\*\* \[)|error Command failed|npm (?:ERR!|error) ",
)
_TRACEBACK = re.compile(r"^[ \t]*\|? ?Traceback \(most recent call last\):$", re.MULTILINE)
_LAST_LINE = re.compile(
    r"^(?:[\w$]+\.)*[A-Za-z_][\w$]*(?:Error|Exception|Interrupt|Exit|Warning|NotFound|DoesNotExist)\b(?::.*)?$"
)

_HEAD, _TAIL = 4_000, 8_000
_UNCAUGHT = re.compile(r'^Traceback \(most recent call last\):\n  File "[^"\n]+", line \d+, in <module>$', re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")

CI_FAILED = re.compile(
    r'^[^\t\n]{1,80}\t(?:fail|failing|failure)\t|"(?:conclusion|state|bucket)": ?"(?:failure|FAILURE|fail|timed_out)"',
    re.MULTILINE,
)
CI_NEWEST = re.compile(r'\A\s*\[.{0,400}?"conclusion": ?"(\w*)"', re.DOTALL)
"""The newest run of a list of runs, which stands first."""

CI_PENDING = re.compile(
    r'^[^\t\n]{1,80}\t(?:pending|queued)\t|"status": ?"(?:queued|in_progress|pending)"', re.MULTILINE
)
"""Lines of a continuous integration's check table, and its JSON."""


class Failing(Struct, frozen=True):
    """What a text says failed: class, kind and the line that tells it."""

    error_class: ErrorClass
    kind: str
    line: str


def bounded(text: str) -> str:
    """The beginning and the end of `text`: where programs report failures."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    return _BLANK_LINES.sub("\n\n", text) if "\n\n\n" in text else text


def critical(text: str) -> Failing | None:
    """The first line that says that the environment or the provider is broken."""
    for kind, pattern in _CRITICAL:
        found = pattern.search(text)
        if found is not None:
            return Failing("critical", kind, line_at(text, found.start()))
    return None


def failing(text: str) -> Failing | None:
    """The most telling failure line of a program's output; None when no line is one."""
    text = bounded(text)
    broken = critical(text)
    if broken is not None:
        return broken
    for kind, pattern in _CAPABILITY:
        found = pattern.search(text)
        if found is not None:
            return Failing("capability", kind, root_cause(text) or line_at(text, found.start()))
    return None


def negative(text: str) -> Failing | None:
    """The negative answer of a file tool that needs no correction; None when it is none."""
    head = text.strip()[:400]
    for kind, pattern in _INFORMATIONAL:
        found = pattern.search(head)
        if found is not None:
            return Failing("informational", kind, line_at(head, found.start()))
    return None


def root_cause(text: str) -> str:
    """The line that names an exception or an error: the last one, but never a compiler's closing banner; what an exception
    was caused by where a chain of causes is told. "" when there is none."""
    causes = _CAUSED_BY.findall(text)
    if causes:
        return str(causes[-1])
    told = _after_traceback(text)
    if told:
        return told
    last = banner = ""
    for found in _ROOT_CAUSE.finditer(text):
        if _BANNER.match(found.group()):
            banner = found.group()
        else:
            last = found.group()
    return last or banner


def _after_traceback(text: str) -> str:
    """The line below the frames of the last Python traceback; "" when there is none."""
    begin = -1
    for found in _TRACEBACK.finditer(text):
        begin = found.end()
    if begin < 0:
        return ""
    for line in text[begin : begin + 20_000].splitlines():
        if line.strip() and not line[0].isspace() and line[0] not in "|~^":
            return line
    return ""


def uncaught_exception(text: str) -> str:
    """The exception's line of a traceback that begins or ends the output of a script, "" where there is none.

    At the beginning too: what a script prints is often shown after what it wrote to its error stream.
    """
    end = text.rstrip()[-_TAIL:]
    line = end.rpartition("\n")[2]
    if _LAST_LINE.match(line) and _TRACEBACK.search(end):
        return line
    begin = _UNCAUGHT.search(text[:_HEAD])
    return _after_traceback(text[begin.start() :]) if begin is not None else ""


def line_at(text: str, position: int) -> str:
    """The whole line of `text` around `position`, or the first line that is not blank after it."""
    while position < len(text) and text[position] in "\n\r":
        position += 1
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[begin : len(text) if end < 0 else end]


def first_line(text: str) -> str:
    """The first line that is not blank."""
    return text.lstrip()[:1000].partition("\n")[0]
