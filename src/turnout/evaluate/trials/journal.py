"""What has happened in a trial so far: a file that only grows. Whenever the trial is killed, what was written counts, and a line
that was cut off is dropped."""

import fcntl
import os
import threading
from pathlib import Path
from typing import IO, TypeAlias

import msgspec
from msgspec import Struct

from turnout.errors import ClientError
from turnout.evaluate.trials.figures import Figures
from turnout.evaluate.trials.manifest import Conditions, Manifest
from turnout.evaluate.trials.process import Ended


class Opened(Struct, frozen=True, tag="trial", tag_field="line"):
    """The first line. `token`: in all session ids of this trial."""

    token: str
    format: int = 1


class Stated(Struct, frozen=True, tag="conditions", tag_field="line"):
    """Conditions under which runs follow."""

    digest: str
    conditions: Conditions


class Began(Struct, frozen=True, tag="began", tag_field="line"):
    """A run begins. `at`: Unix seconds."""

    at: float
    manifest: Manifest


class Finished(Struct, frozen=True, tag="finished", tag_field="line", omit_defaults=True):
    """The run of a session is over. `success`: None = nobody told. `check`: how the check ended, where there was one."""

    session: str
    ended: Ended
    success: bool | None
    figures: Figures
    check: Ended | None = None


class Refigured(Struct, frozen=True, tag="figures", tag_field="line"):
    """What the ledger says of a session by now, for a run that is over or was given up."""

    session: str
    figures: Figures
    success: bool | None = None


Line: TypeAlias = Opened | Stated | Began | Finished | Refigured
_LINES = msgspec.json.Decoder(Line)
Key: TypeAlias = tuple[str, str, int]
"""Arm, task and trial of a run."""


class Run(Struct, frozen=True):
    """A run that is over."""

    at: float
    manifest: Manifest
    finished: Finished


class State:
    """The lines folded. `runs`: those that are over, by key. `given_up`: sessions that were begun, never finished, and what they
    have cost (None = not looked at yet)."""

    def __init__(self) -> None:
        self.token = ""
        self.conditions: dict[str, Conditions] = {}
        self.newest: Conditions | None = None
        self.runs: dict[Key, Run] = {}
        self.given_up: dict[str, Figures | None] = {}
        self.attempts = 0
        self._begun: dict[str, Began] = {}

    def add(self, line: Line) -> None:
        """One more line."""
        match line:
            case Opened():
                self.token = line.token
            case Stated():
                self.conditions[line.digest] = self.newest = line.conditions
            case Began():
                self.attempts += 1
                self._begun[line.manifest.session] = line
                self.given_up[line.manifest.session] = None
            case Finished():
                begun = self._begun[line.session]
                self.given_up.pop(line.session, None)
                self.runs[key_of(begun.manifest)] = Run(begun.at, begun.manifest, line)
            case Refigured():
                self._refigure(line)

    def _refigure(self, line: Refigured) -> None:
        if line.session in self.given_up:
            self.given_up[line.session] = line.figures
            return
        key = key_of(self._begun[line.session].manifest)
        run = self.runs[key]
        finished = msgspec.structs.replace(run.finished, figures=line.figures, success=line.success)
        self.runs[key] = msgspec.structs.replace(run, finished=finished)

    @property
    def known_usd(self) -> float:
        """What is known to have been spent, on runs that were given up too."""
        # Copied first: other threads add lines meanwhile.
        given_up = sum(figures.known_usd for figures in list(self.given_up.values()) if figures is not None)
        return given_up + sum(run.finished.figures.known_usd for run in list(self.runs.values()))


def key_of(manifest: Manifest) -> Key:
    """Which run it is."""
    return manifest.arm, manifest.task, manifest.trial


class Journal:
    """The file. `state`: what is in it. One process at a time; its threads may share it."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises ClientError when another trial uses it or it is damaged."""
        self.path = path
        self.state = State()
        self._lock = threading.Lock()
        self._file: IO[bytes] = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read()
        except BlockingIOError:
            self._file.close()
            raise ClientError(f"{path}: another trial writes here; wait for it, or choose another --out") from None
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                self.state.add(_LINES.decode(line))
            except (msgspec.DecodeError, KeyError) as error:
                raise ClientError(f"{self.path}:{number}: damaged ({error}); choose another --out") from None
            whole += len(line)
        self._file.truncate(whole)

    def write(self, line: Line) -> None:
        """Add a line; durable on return."""
        with self._lock:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
            self.state.add(line)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
