"""How commands end: exit codes by whose fault it is, and errors in one line with the next step."""

import os
import sys
import traceback
from collections.abc import Callable

from turnout.errors import ClientError, ConfigError, TurnoutError, UpstreamError

OK = 0
FOUND = 1
USAGE = 2
UPSTREAM = 3
NOT_FOUND = 4
INTERNAL = 5
GO_BACK = 6
UNDECIDED = 7
INTERRUPTED = 130

LEGEND = (
    "Exit codes: 0 ok, 1 warnings only (check --strict) or not whole (peers review, knowledge build), 2 usage or configuration, "
    "3 upstream, 4 not found, 5 internal."
)


_EXTRAS = {
    "psycopg": "postgres",
    "redis": "redis",
    "anthropic": "demo",
    "openai": "demo",
    "polars": "report",
    "numpy": "report",
    "scipy": "report",
    "matplotlib": "report",
    "faiss": "knowledge",
    "bm25s": "knowledge",
    "wordllama": "knowledge",
    "tokenizers": "knowledge",
    "safetensors": "knowledge",
    "torch": "train",
    "transformers": "train",
    "trl": "train",
    "datasets": "train",
    "peft": "train",
    "accelerate": "train",
}
"""Which extra brings a package."""


class CommandError(TurnoutError):
    """A command cannot do what was asked. `code`: its exit code. `step`: what the user can do next."""

    def __init__(self, message: str, code: int = USAGE, step: str = "") -> None:
        super().__init__(f"{message}; {step}" if step else message)
        self.code = code


def ended(work: Callable[[], object]) -> int:
    """Do the work of a command line and give its exit code; errors go to stderr in one line (TURNOUT_DEBUG=1: in full)."""
    try:
        result = work()
        sys.stdout.flush()
        return result if isinstance(result, int) else OK
    except BrokenPipeError:
        # The reader of a pipe (head, less) has seen enough; the interpreter would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the boundary to the user
        if os.environ.get("TURNOUT_DEBUG") == "1":
            traceback.print_exc()
        message, code = explained(error)
        if message:
            print(f"error: {message}", file=sys.stderr)
        return code


def explained(error: Exception) -> tuple[str, int]:
    """What to say of an error, and the exit code it means."""
    match error:
        case CommandError():
            return str(error), error.code
        case ConfigError() | ClientError():
            return str(error), USAGE
        case UpstreamError():
            return f"{error.kind}: {error}", UPSTREAM
        case FileNotFoundError() | PermissionError() | IsADirectoryError():
            return f"{error.filename}: {error.strerror}", USAGE
        case ModuleNotFoundError() if not str(error.name).startswith("turnout"):
            extra = _EXTRAS.get(str(error.name), "")
            package = f"'turnout[{extra}]'" if extra else str(error.name)
            return f"this needs {error.name}; pip install {package}", USAGE
    if type(error).__name__ == "Abort":
        return "", INTERRUPTED
    if type(error).__name__ == "NoArgsIsHelpError":
        print(getattr(error, "ctx").get_help())  # noqa: B009 - a class of the argument parser, private in some versions
        return "", USAGE
    if hasattr(error, "format_message"):  # usage errors of the argument parser, whichever class its version uses
        command = getattr(getattr(error, "ctx", None), "command_path", "turnout")
        message = " ".join(str(error.format_message()).split()).replace("Value error, ", "").rstrip(".")
        step = f"`{command} --help` shows the usage"
        if command.endswith(" launch") and type(error).__name__ == "NoSuchOption":
            step = "the agent's own arguments stand behind `--`, as in: turnout launch claude -- --version; " + step
        return (f"{message}; {step}" if message else "", USAGE)
    step = "TURNOUT_DEBUG=1 shows where it comes from"
    return f"internal: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}; {step}", INTERNAL
