"""What a tool's result says by its form: flags, exit codes, time-outs and cuts as each harness prints them."""

import re
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from turnout.conversation import ToolResult
from turnout.signals.calls.harnesses import ABORTED, DECLINED, TIMED_OUT, TIMED_OUT_AT_THE_END, TRUNCATED

Form: TypeAlias = Literal["shell", "closed", "call", "answer", "content"]
"""How far a result's text speaks of the call: output of a shell with its exit code, which stands behind the output where it is
`closed`; an answer of some tool, which may be an error in JSON, and of one that by its name reads or searches, which has no exit
code; content that was read, searched or fetched, which says nothing of the call."""

OF_SHELLS = frozenset({"shell", "closed"})


class Reading(Struct, frozen=True):
    """A result by its form. `body`: the output without the harness's wrapping. `exit_code`: None when none is stated.
    `failed`: True or False where a flag or the harness's own words say so, None elsewhere. `by_flag`: the format's own flag
    said it. `notice`: the harness's words that decided."""

    body: str
    exit_code: int | None = None
    failed: bool | None = None
    by_flag: bool = False
    notice: str = ""
    timed_out: bool = False
    declined: bool = False
    aborted: bool = False
    truncated: bool = False
    running: bool = False
    duration_s: float | None = None


_HEAD = 600
_TAIL = 400

_RETURNCODE = re.compile(r"\s*<returncode>(-?\d+)</returncode>\s*")
_CODE_HEAD = re.compile(
    r"^(?:Process exited with code|Exit code:?|exit code:|Exit Code:|\[?Command (?:finished|completed|failed) with exit code|"
    r"Command exited with code|Command failed with exit code|Exited with code|\(exit code|exit status)[ \t]*(-?\d+)\b",
    re.MULTILINE,
)
_CODE_TAIL = re.compile(
    r"^\[?(?:The command completed with exit code|Command finished with exit code|Process exited with code|Exit Code:|Exit code:"
    r"|exit code:|Command exited with code|Process Group PGID: \d+\nExit Code:)[ \t]*(-?\d+)\b",
    re.MULTILINE,
)
_SANDBOX = re.compile(r"^(?:exec_command )?failed in sandbox .{0,80}?exit code: (-?\d+), stdout: ", re.DOTALL)
_GEMINI_HEAD = re.compile(r"\A(?:Command: [^\n]*\n)?(?:Directory: [^\n]*\n)?(?:Output|Stdout): ")
_GEMINI_TAIL = re.compile(r"(?:\n(?:Stderr|Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*)+\s*\Z")
_GEMINI_CODE = re.compile(r"^Exit Code: (-?\d+)", re.MULTILINE)
_WALL = re.compile(r"^(?:Wall time|Duration|Execution time): ?([\d.]+)(?: ?s(?:ec(?:onds?)?)?)?", re.MULTILINE)
_OUTPUT_MARK = re.compile(r"^(?:Output|Final output|Command output|Stdout|stdout):[ \t]*\n?", re.MULTILINE)
_ERROR_TAG = "<tool_use_error>"
_JSON_HEADS = (
    '{"output"', '{"stdout"', '{"exit_code"', '{"exitCode"', '{"returncode"', '{"metadata"', '{ "output"', '{\n',
    '{"stderr"', '{"return_code"', '{"result"', '{"isError"', '{"is_error"', '{"error"', '{"success"', '{"status"', '{"ok"',
)  # fmt: skip
_CODE_KEYS = ("exit_code", "exitCode", "returncode", "return_code", "code", "exit_status", "status_code")
_OUTPUT_KEYS = (
    "output",
    "stdout",
    "stderr",
    "aggregated_output",
    "formatted_output",
    "result",
    "content",
    "text",
    "error",
)


def read_result(result: ToolResult, form: Form) -> Reading:
    """The form of `result`, read as `form` allows."""
    text = _unwrapped(result.text)
    if not text[:_HEAD].lstrip().lower().startswith(_ERROR_TAG):
        return _read(text, result.is_error, result, form)
    inner = text.strip()[len(_ERROR_TAG) :].removesuffix("</tool_use_error>")
    reading = _read(inner, True, result, form)
    return msgspec.structs.replace(reading, by_flag=result.is_error is True, notice=reading.notice or _ERROR_TAG)


def _read(text: str, flag: bool | None, result: ToolResult, form: Form) -> Reading:
    extra_code = _extra_code(result.extra) if result.extra else None
    head = text[:_HEAD]
    lowered = head.lstrip().lower()
    if flag is not False and lowered.removeprefix("error: ").startswith(DECLINED) and _short_enough(lowered, flag):
        return Reading(text, failed=True, by_flag=flag is True, notice=head[:80], declined=True)
    if lowered.startswith(ABORTED):
        return Reading(text, failed=True, by_flag=flag is True, notice=head[:80], aborted=True)
    reading = None
    if form == "closed":
        # What the output says of exit codes is not the harness's word.
        codes = _CODE_TAIL.findall(text[-_TAIL:])
        reading = Reading(text, int(codes[-1]), truncated=_truncated(text)) if codes else None
    if reading is None and form in ("shell", "closed"):
        reading = _shell_form(text, head)
    elif form in ("call", "answer") and lowered[:1] == "{":
        reading = _json_form(text)
        if form == "answer" and reading is not None and reading.exit_code is not None:
            reading = None
    elif (form == "call" and lowered.startswith(_HEADED)) or (form == "answer" and lowered.startswith(_WALL_TIME)):
        reading = _shell_form(text, head)
    if reading is None:
        reading = Reading(text)
    if extra_code is not None and reading.exit_code is None:
        reading = msgspec.structs.replace(reading, exit_code=extra_code)
    if result.extra.get("timed_out") is True:
        reading = msgspec.structs.replace(reading, timed_out=True, failed=True, notice=reading.notice or "timed out")
    if flag is not None:
        reading = msgspec.structs.replace(reading, failed=flag, by_flag=True)
    return reading


def _unwrapped(text: str) -> str:
    """The text of a JSON list of content blocks, as clients of MCP servers print it; other text as it is."""
    if text[:2] != "[{" or '"type"' not in text or len(text) > 2_000_000:
        return text
    try:
        blocks = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    told = [one for one in texts if isinstance(one, str)]
    return "\n".join(told) if told and len(told) == len(blocks) else text


def _short_enough(lowered: str, flag: bool | None) -> bool:
    # Unflagged text must be the notice itself, not a document that begins like one.
    return flag is True or len(lowered) < 400


def _extra_code(extra: dict[str, Any]) -> int | None:
    for key in _CODE_KEYS[:4]:
        code = extra.get(key)
        if isinstance(code, int) and not isinstance(code, bool):
            return code
    return None


def _shell_form(text: str, head: str) -> Reading | None:
    """What shell tools print around the output of a command."""
    found = _RETURNCODE.match(text)
    if found is not None:
        rest = text[found.end() :]
        body = rest.removeprefix("<output>\n")
        # What stands behind the closing tag is the harness's own.
        closing = body.rfind("</output>")
        body = body[:closing] if closing >= 0 else body.rstrip()
        return Reading(body, int(found.group(1)), truncated=_truncated(rest))
    if head.lstrip()[:1] == "{":
        form = _json_form(text)
        if form is not None:
            return form
    if head.startswith(("failed in sandbox", "exec_command failed")):
        found = _SANDBOX.match(text)
        body = text.rpartition(", stderr: ")[2] if found else text
        return Reading(body, int(found.group(1)) if found else None, failed=True, notice=head[:80])
    if head.startswith(("Command: ", "Output: ")):
        return _gemini_form(text)
    if _timed_out(text, head):
        notice = head.strip()[:120]
        return Reading(_after_output_mark(text), failed=True, timed_out=True, notice=notice, duration_s=_waited(text))
    found = _CODE_HEAD.search(head)
    if found is not None and not _in_front(head, found.start()):
        found = None
    if found is not None:
        wall = _WALL.search(head)
        rest = text[found.end() :]
        mark = _OUTPUT_MARK.search(rest[:_HEAD])
        body = rest[mark.end() :] if mark else rest
        # A code that closes its own output stands after it.
        return Reading(
            body.lstrip("\n)"),
            int(found.group(1)),
            truncated=_truncated(text),
            duration_s=float(wall.group(1)) if wall else None,
        )
    codes = _CODE_TAIL.findall(text[-_TAIL:])
    if codes:
        return Reading(text, int(codes[-1]), truncated=_truncated(text))
    running = "Process running with session ID" in head or head.startswith("Command running in background")
    return Reading(text, truncated=_truncated(text), running=running) if running or _truncated(text) else None


def _gemini_form(text: str) -> Reading:
    """Labelled lines around the output: `Command:`, `Directory:`, `Output:`, then `Error:`, `Exit Code:` and others."""
    opened = _GEMINI_HEAD.match(text)
    begin = opened.end() if opened else 0
    cut = max(begin, len(text) - 4 * _TAIL)
    closed = _GEMINI_TAIL.search(text, cut)
    body = text[begin : closed.start() if closed else len(text)]
    code = _GEMINI_CODE.search(closed.group()) if closed else None
    error = re.search(r"^Error: (?!\(none\))(.*)$", closed.group(), re.MULTILINE) if closed else None
    if error is not None:
        body = f"{body}\n{error.group(1)}"
    return Reading(body, int(code.group(1)) if code else None, truncated=_truncated(body))


def _in_front(head: str, at: int) -> bool:
    """Whether only lines of a harness's header stand before `at`."""
    for line in head[:at].splitlines():
        lowered = line.strip().lower()
        if lowered and not lowered.startswith(_HEADER_LINES):
            return False
    return True


_HEADER_LINES = (
    "chunk id:", "wall time", "process", "command:", "directory:", "output:", "error:", "signal:", "original token count",
    "[execute_command", "command executed", "exit code", "duration", "total output lines", "background pids", "observation:",
    "execution result of",
)  # fmt: skip


_WALL_TIME = "wall time:"
_HEADED = ("exit code", "wall time:", "chunk id:", "process exited with code", "<returncode>")
"""How answers of other tools begin that carry a shell's header."""


def _timed_out(text: str, head: str) -> bool:
    lowered = head.lstrip().lower()
    if lowered.startswith(TIMED_OUT):
        return not lowered.startswith("the last command <command>") or "timed out and has been killed" in text[:4000]
    end = text[-_TAIL:].lower()
    if not any(mark in end for mark in TIMED_OUT_AT_THE_END):
        return False
    return any(line.strip().startswith(TIMED_OUT_AT_THE_END) for line in end.splitlines())


_WAITED = re.compile(
    r"(?:after|exceeding timeout|more than) (?:(\d+) ?m(?:in(?:utes?)?)?\b ?)?"
    r"(?:(\d+(?:\.\d+)?) ?(milliseconds|ms|s(?:ec(?:onds?)?)?)\b)?",
    re.IGNORECASE,
)


def _waited(text: str) -> float | None:
    """The time limit that ended a call, where the harness states it."""
    for found in _WAITED.finditer(f"{text[:200]}\n{text[-_TAIL:]}"):
        minutes, amount, unit = found.groups()
        if minutes or amount:
            seconds = float(amount or 0) / (1000 if (unit or "").lower().startswith("m") else 1)
            return 60.0 * int(minutes or 0) + seconds
    return None


def _after_output_mark(text: str) -> str:
    at = text.find("<output>\n")
    return text[at + 9 :].rpartition("</output>")[0] if at >= 0 else text.partition("\n")[2]


def _truncated(text: str) -> bool:
    lowered = text[:_HEAD].lower() + text[-_TAIL:].lower()
    return any(mark in lowered for mark in TRUNCATED)


def _json_form(text: str) -> Reading | None:
    """`{"output": ..., "metadata": {"exit_code": 0}}` and its relatives; None for other JSON."""
    if not text.lstrip().startswith(_JSON_HEADS) or len(text) > 2_000_000:
        return None
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return None
    metadata = decoded.get("metadata")
    places = (decoded, metadata) if isinstance(metadata, dict) else (decoded,)
    code: int | None = None
    duration: float | None = None
    for place in places:
        for key in _CODE_KEYS[:4]:
            value = place.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                code = value
        seconds = place.get("duration_seconds")
        if isinstance(seconds, int | float):
            duration = float(seconds)
    failed = _json_failed(decoded)
    if code is None and failed is None:
        return None
    body = "\n".join(v for k in _OUTPUT_KEYS if isinstance(v := decoded.get(k), str) and v)
    return Reading(
        body or text,
        code,
        failed,
        notice="" if failed is None else text.strip()[:80],
        truncated=_truncated(body),
        timed_out=decoded.get("timed_out") is True,
        duration_s=duration,
    )


def _json_failed(decoded: dict[str, Any]) -> bool | None:
    for key in ("isError", "is_error"):
        if isinstance(decoded.get(key), bool):
            return bool(decoded[key])
    for key in ("success", "ok"):
        if isinstance(decoded.get(key), bool):
            return not decoded[key]
    error = decoded.get("error")
    if len(decoded) <= 3 and error and isinstance(error, str | dict):
        return True
    return True if len(decoded) <= 4 and decoded.get("status") in ("error", "failed", "failure") else None
