"""A command in a process of its own, with everything it starts, under a time-out."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from turnout.evaluate.trials import guard

GRACE_S = 5.0
"""Between the request to end and the end."""


class Ended(Struct, frozen=True, omit_defaults=True):
    """How a command ended. `code`: its exit code, negative the signal that ended it. `timed_out`: it was ended at its time-out,
    `stopped`: from outside. `left`: processes it had left running, which were killed. `error`: why it could not be started."""

    code: int
    seconds: float = 0.0
    timed_out: bool = False
    stopped: bool = False
    left: int = 0
    error: str = ""


class Guarded:
    """A command that runs. It ends when this process does, whatever becomes of this process."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path | None,
        env: Mapping[str, str],
        out: IO[bytes],
        err: IO[bytes],
        timeout_s: float = 0.0,
        grace_s: float = GRACE_S,
    ) -> None:
        """`timeout_s`: 0 = none."""
        told, telling = os.pipe()
        # -I and -S: what is in the environment is meant for the command, and none of it is needed to watch over it.
        watch = [sys.executable, "-I", "-S", str(Path(guard.__file__)), str(telling), str(timeout_s), str(grace_s)]
        try:
            self._guard = subprocess.Popen(
                [*watch, *command],
                cwd=folder,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                pass_fds=(telling,),
                start_new_session=True,
            )
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(telling)
        self._told = told
        self._ended: Ended | None = None
        self.pid = self._guard.pid

    def running(self) -> bool:
        """Whether it still runs."""
        return self._guard.poll() is None

    def stop(self) -> None:
        """Ask it to end; after a moment it is made to."""
        if self._guard.poll() is None:
            self._guard.terminate()

    def wait(self) -> Ended:
        """Wait for its end."""
        if self._ended is not None:
            return self._ended
        with os.fdopen(self._told, "rb") as file:
            line = file.read()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        died = Ended(-9, error="the process that watched over it was killed")
        self._ended = msgspec.json.decode(line, type=Ended) if line else died
        return self._ended
