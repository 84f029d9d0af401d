"""What failed: error kinds with their class, recognised by anchored lines. Words inside a line's prose never decide."""

import re

from msgspec import Struct

from turnout.signals.observation import ErrorClass

_PREFIX = (
    r"^(?:[\w./+-]{1,60}: ){0,3}(?:line \d+: |\d+: )?"
    r"(?:error: |fatal: |ERROR: |Error: |E: |npm (?:ERR!|error) |[ \t]*E[ \t]+)?"
)


def _lines(*patterns: str) -> str:
    return "|".join(f"(?:{p})" for p in patterns)


CRITICAL: tuple[tuple[str, str], ...] = (
    (
        "provider",
        _lines(
            r"^(?:API Error|APIError|Error code|HTTP error)\b.{0,40}\b(?:429|500|502|503|504|529)\b",
            r"^.{0,60}\b(?:overloaded_error|rate_limit_error|api_error|insufficient_quota)\b",
            r"^(?:Unexpected error: |Error: )?(?:\w+\.)*(?:OverloadedError|RateLimitError|InternalServerError|APIConnectionError"
            r"|ServiceUnavailableError|APITimeoutError|OverloadedException)\b",
        ),
    ),
    (
        "oom",
        _lines(
            r"^(?:\w+\.)*MemoryError\b",
            _PREFIX + r"(?:fork: )?[Cc]annot allocate memory",
            r"^(?:fatal error: )?(?:runtime: )?out of memory\b",
            r"^.{0,80}JavaScript heap out of memory",
            r"^.{0,40}java\.lang\.OutOfMemoryError",
            r"^(?:\w+\.)*OutOfMemoryError\b",
            r"^(?:RuntimeError: )?CUDA (?:error: )?out of memory",
            r"^c\+\+: fatal error: Killed signal terminated program",
        ),
    ),
    (
        "disk_full",
        _lines(
            _PREFIX + r".{0,120}No space left on device",
            _PREFIX + r".{0,120}Disk quota exceeded",
            r"^.{0,80}ENOSPC\b",
        ),
    ),
    (
        "unreachable",
        _lines(
            _PREFIX
            + r".{0,160}(?:Could not resolve host|Temporary failure in name resolution|Temporary failure resolving)",
            _PREFIX + r".{0,160}(?:Network is unreachable|No route to host)",
            r"^.{0,80}\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN)\b",
            r"^(?:ERROR: )?Could not install packages due to an OSError: HTTPS?ConnectionPool",
            r"^npm (?:ERR!|error) (?:code )?(?:ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET)\b",
            r"^Err:\d+ https?://",
            r"^CondaHTTPError\b",
        ),
    ),
    (
        "environment",
        _lines(
            r"^Fatal Python error\b",
            r"^.{0,120}error while loading shared libraries:",
            _PREFIX + r".{0,160}bad interpreter",
            r"^.{0,40}Cannot connect to the Docker daemon",
            _PREFIX + r".{0,160}(?:Read-only file system|Input/output error|Transport endpoint is not connected)",
            r"^.{0,60}Illegal instruction\b",
            r"^.{0,40}version `GLIBC",
            _PREFIX + r".{0,60}Too many open files",
        ),
    ),
)
"""Kinds whose class is critical: environment or provider broken."""

CAPABILITY: tuple[tuple[str, str], ...] = (
    (
        "command_not_found",
        _lines(
            r"^.{0,80}: command not found$",
            r"^(?:/\S+/)?(?:sh|dash|ash|env|bash): .{0,80}: (?:not found|No such file or directory)$",
            r"^zsh: command not found",
        ),
    ),
    (
        "missing_module",
        _lines(
            r"^(?:E[ \t]+)?(?:ModuleNotFoundError|ImportError)\b",
            r"^\S{0,200}: No module named ",
            r"^(?:Error: )?Cannot find module ",
            r"^.{0,120}error(?: TS2307|\[E0432\]|\[E0433\])",
        ),
    ),
    (
        "syntax",
        _lines(
            r"^(?:E[ \t]+)?[ \t]*(?:SyntaxError|IndentationError|TabError)\b",
            r"^.{0,100}: syntax error\b",
            r"^.{0,60}unexpected EOF while looking for matching",
            r"^(?:Uncaught )?SyntaxError:",
            r"^.{0,80}: parse error\b",
            r"^.{0,100}unterminated quoted string",
        ),
    ),
    (
        "assertion",
        _lines(
            r"^(?:E[ \t]+)?AssertionError\b",
            r"^[ \t]*AssertionError(?: \[ERR_ASSERTION\])?:",
            r"^assertion failed\b",
            r"^.{0,120}: Assertion `.{0,120}' failed",
        ),
    ),
    (
        "connection_refused",
        _lines(
            _PREFIX + r".{0,200}(?:Connection refused|ECONNREFUSED)",
            r"^(?:\w+\.)*ConnectionRefusedError\b",
            r"^.{0,80}Failed to connect to \S+ port \d+",
        ),
    ),
    (
        "permission_denied",
        _lines(
            _PREFIX + r".{0,160}Permission denied",
            r"^(?:\w+\.)*PermissionError\b",
            r"^.{0,60}EACCES\b",
            r"^.{0,100}Operation not permitted",
        ),
    ),
    (
        "patch",
        _lines(
            r"^error: patch failed:",
            r"^error: .{0,160}: patch does not apply",
            r"^Invalid (?:Context|patch)\b",
            r"^.{0,80}Failed to find (?:expected lines|context)",
            r"^(?:error: )?apply_patch verification failed",
            r"^.{0,60}corrupt patch at line",
            r"^Hunk #\d+ FAILED",
            r"^# \d+ SEARCH/REPLACE blocks? failed",
        ),
    ),
    (
        "merge",
        _lines(
            r"^CONFLICT \(",
            r"^Automatic merge failed",
            r"^error: Your local changes to the following files",
            r"^ ! \[(?:rejected|remote rejected)\]",
            r"^hint: Updates were rejected",
            r"^error: failed to push some refs",
        ),
    ),
    (
        "compile",
        _lines(
            r"^error(?:\[E\d+\])?: ",
            r"^.{1,200}:\d+:\d+: (?:fatal )?error: ",
            r"^.{1,200}\(\d+,\d+\): error [A-Z]+\d+",
            r"^error: could not compile",
            r"^.{1,200}: undefined reference to ",
            r"^collect2: error",
            r"^.{0,100}\bcompilation failed\b",
            r"^\[ERROR\] COMPILATION ERROR",
            r"^.{1,200}:\d+:\d+: undefined: ",
            r"^.{1,160}\.java:\d+: error: ",
            r"^make(?:\[\d+\])?: \*\*\* ",
            r"^FAILED: ",
            r"^ninja: build stopped",
            r"^CMake Error",
            r"^e: (?:file://)?\S+:\d+:\d+:? ",
            r"^\S{1,200}\.(?:swift|kt|scala|hs|zig|nim|d):\d+(?::\d+)?: error: ",
            r"^\[error\] \S{1,200}:\d+:\d+: ",
            r"^\S{1,200}\.cs\(\d+,\d+\): error ",
        ),
    ),
    (
        "panic",
        _lines(r"^panic: ", r"^thread '.{0,80}' (?:\(\d+\) )?panicked at", r"^fatal error: all goroutines are asleep"),
    ),
    (
        "crash",
        _lines(
            r"^.{0,80}Segmentation fault",
            r"^.{0,80}Aborted \(core dumped\)",
            r"^Bus error",
            r"^free\(\): invalid",
            r"^double free or corruption",
            r"^==\d+==ERROR: AddressSanitizer",
        ),
    ),
    (
        "timeout",
        _lines(
            r"^(?:\w+\.)*(?:TimeoutError|Timeout|ReadTimeout|ConnectTimeout|TimeoutExpired)\b",
            _PREFIX + r".{0,120}(?:timed out|deadline exceeded)\b",
        ),
    ),
    (
        "usage",
        _lines(
            r"^usage: ",
            r"^Usage: ",
            _PREFIX
            + r"(?:unrecognized|invalid|unknown|illegal|unsupported) (?:arguments?|options?|flags?|subcommand|command)\b",
            _PREFIX
            + r".{0,40}(?:unexpected argument|the following arguments are required|requires an argument|ambiguous option)",
            r"^rg: ",
            r"^grep: (?:Unmatched|Invalid|unrecognized)",
            r"^.{0,40}is not a git command",
            r"^npm (?:ERR!|error) Missing script",
            r"^.{0,60}regex parse error",
        ),
    ),
    (
        "no_such_file",
        _lines(
            _PREFIX + r".{0,200}(?:No such file or directory|cannot access|ENOENT\b|file or directory not found)",
            r"^(?:\w+\.)*FileNotFoundError\b",
            r"^make(?:\[\d+\])?: \*\*\* No rule to make target",
            r"^fatal: (?:pathspec|path |ambiguous argument|invalid object name|bad revision)",
        ),
    ),
    (
        "http_error",
        _lines(
            r"^(?:curl: \(\d+\) The requested URL returned error|(?:\w+\.)*HTTPError\b|HTTP/[\d.]+ [45]\d\d)",
            r"^gh: .{0,160}\(HTTP \d+\)",
            r"^HTTP \d{3}\b",
        ),
    ),
    (
        "lint",
        _lines(
            r"^.{1,200}:\d+:\d+:? [A-Z]+\d+\b",
            r"^[ \t]+\d+:\d+\s+error\s",
            r"^✖ \d+ problems? \((?!0 errors)",
            r"^Found \d+ errors?\b",
            r"^would reformat ",
            r"^\[warn\] Code style issues",
        ),
    ),
    (
        "test_failure",
        _lines(
            r"^FAILED \S",
            r"^--- FAIL: ",
            r"^not ok \d",
            r"^=+ FAILURES =+",
            r"^FAIL(?:ED)?[:\t ]",
            r"^test result: FAILED",
            r"^ERROR collecting",
        ),
    ),
    (
        "exception",
        _lines(
            r"^(?:E[ \t]+)?(?:[\w$]+\.)*[A-Z][\w$]*(?:Error|Exception|Fault|Interrupt|Exit|NotFound|DoesNotExist)"
            r"(?: \[\w+\])?(?::|$)",
            r"^Traceback \(most recent call last\)",
            r"^Exception in thread ",
            r"^Unhandled exception",
            r"^Uncaught ",
            r"^\S+:\d+:in [`'].{0,80}: ",
            r"^PHP (?:Fatal|Parse) error",
            r"^Caused by: ",
            r"^\*\* \(\w+",
            r"^terminate called",
        ),
    ),
)
"""Kinds whose class is capability, most telling first; the plain exception comes last."""

INFORMATIONAL: tuple[tuple[str, str], ...] = (
    (
        "absent_path",
        _lines(
            r"^(?:Error: )?File does not exist\b",
            r"^(?:Error: )?File not found\b",
            r"^EISDIR\b",
            r"^ENOENT\b",
            r"^.{0,160}(?:does not exist|No such file or directory)",
            r"^(?:Error: )?Directory (?:does not exist|not found)",
            r"^.{0,120}is a directory\b",
            r"^error: .{0,160}pathspec",
        ),
    ),
    (
        "too_large",
        _lines(
            r"^File content \(\d+ tokens\) exceeds",
            r"^File content \([\d.]+ ?[KMG]B\) exceeds",
            r"^.{0,80}exceeds maximum allowed",
            r"^File is too large",
            r"^Response exceeds maximum",
        ),
    ),
    ("no_match", _lines(r"^No (?:matches|files|results|content) found", r"^no match")),
    (
        "absent",
        _lines(
            r"^Shell \w+ is not running",
            r"^No (?:shell|process|task|background|running)\b.{0,60}",
            r"^.{0,60}(?:not running|already (?:stopped|exited|exists))\b",
        ),
    ),
    (
        "unchanged",
        _lines(
            r"^File has not changed",
            r"^File unchanged since last read",
            r"^nothing to commit",
            r"^Already up.to.date",
            r"^On branch ",
        ),
    ),
)
"""Negative answers of file tools that need no correction."""

NO_MATCH = re.compile(
    r"\s*(?:|\[\]|\{\}|null|None|\(no (?:output|matches|results)\)"
    r"|(?:No|Found no|Found 0|0) (?:matches|matching files|files|results|"
    r"content|matching lines|occurrences|documents|items|symbols|references)\b[^\n]{0,200})\s*"
)
"""A search's answer that it found nothing."""

EDIT_FAILED = re.compile(
    _lines(
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
