"""The lines with which programs and tools tell what failed, as data: kind and patterns, by class. Anchored: words in prose
never decide."""

_PREFIX = (
    r"^(?:[\w./+-]{1,60}: ){0,3}(?:line \d+: |\d+: )?"
    r"(?:error: |fatal: |ERROR: |Error: |E: |npm (?:ERR!|error) |[ \t]*E[ \t]+)?"
)


def lines(*patterns: str) -> str:
    """One pattern of several."""
    return "|".join(f"(?:{p})" for p in patterns)


CRITICAL: tuple[tuple[str, str], ...] = (
    (
        "provider",
        lines(
            r"^(?:API Error|APIError|Error code|HTTP error)\b.{0,40}\b(?:429|500|502|503|504|529)\b",
            r"^.{0,60}\b(?:overloaded_error|rate_limit_error|api_error|insufficient_quota)\b",
            r"^(?:Unexpected error: |Error: )?(?:\w+\.)*(?:OverloadedError|RateLimitError|InternalServerError|APIConnectionError"
            r"|ServiceUnavailableError|APITimeoutError|OverloadedException)\b",
        ),
    ),
    (
        "oom",
        lines(
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
        lines(
            _PREFIX + r".{0,120}No space left on device",
            _PREFIX + r".{0,120}Disk quota exceeded",
            r"^.{0,80}ENOSPC\b",
        ),
    ),
    (
        "unreachable",
        lines(
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
        lines(
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
        lines(
            r"^.{0,80}: command not found$",
            r"^(?:/\S+/)?(?:sh|dash|ash|env|bash): .{0,80}: (?:not found|No such file or directory)$",
            r"^zsh: command not found",
        ),
    ),
    (
        "missing_module",
        lines(
            r"^(?:E[ \t]+)?(?:ModuleNotFoundError|ImportError)\b",
            r"^\S{0,200}: No module named ",
            r"^(?:Error: )?Cannot find module ",
            r"^.{0,120}error(?: TS2307|\[E0432\]|\[E0433\])",
        ),
    ),
    (
        "syntax",
        lines(
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
        lines(
            r"^(?:E[ \t]+)?AssertionError\b",
            r"^[ \t]*AssertionError(?: \[ERR_ASSERTION\])?:",
            r"^assertion failed\b",
            r"^.{0,120}: Assertion `.{0,120}' failed",
        ),
    ),
    (
        "connection_refused",
        lines(
            _PREFIX + r".{0,200}(?:Connection refused|ECONNREFUSED)",
            r"^(?:\w+\.)*ConnectionRefusedError\b",
            r"^.{0,80}Failed to connect to \S+ port \d+",
        ),
    ),
    (
        "permission_denied",
        lines(
            _PREFIX + r".{0,160}Permission denied",
            r"^(?:\w+\.)*PermissionError\b",
            r"^.{0,60}EACCES\b",
            r"^.{0,100}Operation not permitted",
        ),
    ),
    (
        "patch",
        lines(
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
        lines(
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
        lines(
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
        lines(r"^panic: ", r"^thread '.{0,80}' (?:\(\d+\) )?panicked at", r"^fatal error: all goroutines are asleep"),
    ),
    (
        "crash",
        lines(
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
        lines(
            r"^(?:\w+\.)*(?:TimeoutError|Timeout|ReadTimeout|ConnectTimeout|TimeoutExpired)\b",
            _PREFIX + r".{0,120}(?:timed out|deadline exceeded)\b",
        ),
    ),
    (
        "usage",
        lines(
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
        lines(
            _PREFIX + r".{0,200}(?:No such file or directory|cannot access|ENOENT\b|file or directory not found)",
            r"^(?:\w+\.)*FileNotFoundError\b",
            r"^make(?:\[\d+\])?: \*\*\* No rule to make target",
            r"^fatal: (?:pathspec|path |ambiguous argument|invalid object name|bad revision)",
        ),
    ),
    (
        "http_error",
        lines(
            r"^(?:curl: \(\d+\) The requested URL returned error|(?:\w+\.)*HTTPError\b|HTTP/[\d.]+ [45]\d\d)",
            r"^gh: .{0,160}\(HTTP \d+\)",
            r"^HTTP \d{3}\b",
        ),
    ),
    (
        "lint",
        lines(
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
        lines(
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
        lines(
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
        lines(
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
        lines(
            r"^File content \(\d+ tokens\) exceeds",
            r"^File content \([\d.]+ ?[KMG]B\) exceeds",
            r"^.{0,80}exceeds maximum allowed",
            r"^File is too large",
            r"^Response exceeds maximum",
        ),
    ),
    ("no_match", lines(r"^No (?:matches|files|results|content) found", r"^no match")),
    (
        "absent",
        lines(
            r"^Shell \w+ is not running",
            r"^No (?:shell|process|task|background|running)\b.{0,60}",
            r"^.{0,60}(?:not running|already (?:stopped|exited|exists))\b",
        ),
    ),
    (
        "unchanged",
        lines(
            r"^File has not changed",
            r"^File unchanged since last read",
            r"^nothing to commit",
            r"^Already up.to.date",
            r"^On branch ",
        ),
    ),
)
"""Negative answers of file tools that need no correction."""
