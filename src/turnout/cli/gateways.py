"""Talking to a running gateway, and starting one for the life of a command."""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnout.cli import exits, ports

if TYPE_CHECKING:
    from turnout.evaluate.trials.process import Guarded

DEFAULT_URL = "http://127.0.0.1:4000"
START_WITHIN_S = 20.0


def fetch(url: str, path: str, key: str = "", within_s: float = 10.0) -> Any:
    """The JSON that a gateway answers at `path`. Raises CommandError: not reachable, not found, refused, not JSON."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(base(url) + path, headers={"authorization": f"Bearer {key}"} if key else {})
    host = urllib.parse.urlsplit(url).hostname or ""
    # A proxy of the environment serves the outside world; this machine is reached directly.
    proxies: dict[str, str] | None = {} if host in ("127.0.0.1", "localhost", "::1") else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
    try:
        with opener.open(request, timeout=within_s) as response:
            return json.loads(response.read())
    except urllib.error.HTTPError as error:
        code = exits.NOT_FOUND if error.code == 404 else exits.UPSTREAM
        told = f"{base(url)}{path} answered {error.code}: {_message(error.read())}"
        step = "--key-env VAR names the variable that holds your key" if error.code == 401 else ""
        raise exits.CommandError(told, code, step) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        step = f"start one with `turnout serve`, or name another with --url (tried {base(url)})"
        raise exits.CommandError(f"no gateway answers: {reason}", exits.UPSTREAM, step) from None


def key_in(variable: str) -> str:
    """The key in an environment variable. Raises CommandError when it is not set."""
    if not os.environ.get(variable):
        raise exits.CommandError(f"the environment variable {variable} is not set", step=f"export {variable}=...")
    return os.environ[variable]


def base(url: str) -> str:
    """A gateway's URL without the trailing slash and `/v1` that people add."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise exits.CommandError(f"not a URL: {url}", step=f"expected one such as {DEFAULT_URL}")
    return url.rstrip("/").removesuffix("/v1")


def alive(url: str) -> bool:
    """Whether a Turnout gateway answers at `url`."""
    try:
        answer = fetch(url, "/", within_s=1.0)
    except exits.CommandError:
        return False
    return isinstance(answer, dict) and answer.get("service") == "turnout"


def served(url: str, key: str = "") -> list[str]:
    """The model names a gateway serves."""
    models = fetch(url, "/v1/models", key)
    entries = models.get("data", []) if isinstance(models, dict) else []
    return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry]


@contextlib.contextmanager
def started(file: Path, ledger: str = "") -> Iterator[str]:
    """A gateway of its own on a free port, stopped at the end, also when this process is killed; gives its URL. Raises
    CommandError when it does not come up. `ledger`: URL of where it records; "" = as the file says.

    Meanwhile a request to end (SIGTERM) and a terminal that closes (SIGHUP) raise KeyboardInterrupt, so that it is stopped
    then too. Main thread only."""
    from turnout.evaluate.trials.process import Guarded

    port = ports.free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.NamedTemporaryFile("w+", prefix="turnout-", suffix=".log", delete=False) as log:
        command = [sys.executable, "-m", "turnout", "serve", str(file), "--port", str(port)]
        command += ["--ledger", ledger] if ledger else []
        with on_end(interrupt):
            # Ctrl-C belongs to the agent in the foreground, not to the gateway behind it.
            process = Guarded(command, None, os.environ, log.buffer, log.buffer, grace_s=40)
            try:
                _await(process, url, Path(log.name))
                yield url
            finally:
                process.stop()
                with on_end(lambda _: None):  # asked once is enough; a second time must not cut the end short
                    process.wait()
    Path(log.name).unlink(missing_ok=True)


@contextlib.contextmanager
def on_end(do: Callable[[int], object]) -> Iterator[None]:
    """Meanwhile SIGTERM and SIGHUP call `do` with their number; one that is ignored (`nohup`) stays so. Main thread only."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    kept = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in kept:
        signal.signal(number, lambda got, _: do(got))
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def interrupt(_: int) -> None:
    """End the command as Ctrl-C does."""
    raise KeyboardInterrupt


def _await(process: "Guarded", url: str, log: Path) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while process.running() and time.monotonic() < deadline:
        if _ready(url):
            return
        time.sleep(0.05)
    last = next(
        (line for line in reversed(log.read_text("utf-8", "replace").splitlines()) if line.strip()), "no output"
    )
    code = None if process.running() else process.wait().code
    raise exits.CommandError(
        f"the gateway did not start: {last.removeprefix('error: ')}",
        code if code in (exits.USAGE, exits.UPSTREAM) else exits.INTERNAL,
        f"its log is {log}",
    )


def _ready(url: str) -> bool:
    try:
        fetch(url, "/health", within_s=1.0)
    except exits.CommandError:
        return False
    return True


def _message(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace").strip() or "nothing"
