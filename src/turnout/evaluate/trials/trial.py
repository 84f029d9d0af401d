"""Makes the runs of a trial, several at a time, and writes down what becomes of each."""

import contextlib
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, TypeAlias

from msgspec import Struct

from turnout.errors import ClientError, TurnoutError
from turnout.evaluate.trials import filling, folders
from turnout.evaluate.trials.figures import Figures
from turnout.evaluate.trials.journal import Began, Finished, Journal, Refigured, Stated
from turnout.evaluate.trials.manifest import Conditions, Manifest, digest
from turnout.evaluate.trials.plan import Planned
from turnout.evaluate.trials.process import Ended, Guarded
from turnout.evaluate.trials.tasks import variable

Success: TypeAlias = Literal["exit", "check", "outcome"]
"""What says whether a run succeeded: the command's exit code, that of the check, or an outcome told to the gateway."""


class Asked(Struct, frozen=True):
    """What to do. `command`, `check` and `workdir` may hold placeholders. `policies`: digests of the arms' routes, where known.
    `out`: where logs go. `max_cost_usd`, `time_limit_s`: no further run begins beyond; None = no limit."""

    command: tuple[str, ...]
    runs: tuple[Planned, ...]
    policies: Mapping[str, str]
    conditions: Conditions
    success: Success
    out: Path
    check: str = ""
    workdir: str = ""
    keep: bool = False
    timeout_s: float = 1800.0
    jobs: int = 1
    max_cost_usd: float | None = None
    time_limit_s: float | None = None


class Told(Struct, frozen=True):
    """How far a trial is. `cost_usd`: what is known to have been spent."""

    done: int
    of: int
    cost_usd: float


class Host(Struct, frozen=True):
    """What a trial asks of the command around it.

    `environment`: the whole environment of a run, given the run, its session and a folder that is its own. `url`: the gateway's
    address for a session. `figures`: of a session, by what the ledger holds now; raises TurnoutError when it cannot be read.
    `told`: hears how far the trial is.
    """

    environment: Callable[[Planned, str, Path], dict[str, str]]
    url: Callable[[str], str]
    figures: Callable[[str], Figures]
    told: Callable[[Told], None]


class Trial:
    """A trial on its way. `halted`: why no further run begins, "" while it goes on or when all is done."""

    def __init__(self, asked: Asked, journal: Journal, host: Host) -> None:
        self._asked = asked
        self._journal = journal
        self._host = host
        self._lock = threading.Lock()
        done = journal.state.runs
        self._left = [run for run in asked.runs if run.key not in done]
        self._left.reverse()
        self._running: set[Guarded] = set()
        self._began = time.monotonic()
        self._failed: TurnoutError | Exception | None = None
        # Not below `out`: a work folder inside of somebody's repository would be taken for a part of it.
        self._prefix = f"turnout-run-{journal.state.token}-"
        self.halted = ""

    def run(self) -> None:
        """Make all runs that are not over yet. Raises what kept a run from being made; on KeyboardInterrupt the running ones are
        ended, and count as never begun."""
        self._state_conditions()
        for left in Path(tempfile.gettempdir()).glob(f"{self._prefix}*"):
            shutil.rmtree(left, ignore_errors=True)  # of a trial that was killed
        self._tell()
        threads = [threading.Thread(target=self._work, name=f"trial-{n}") for n in range(self._asked.jobs)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        except BaseException:
            self._end("interrupted")
            for thread in threads:
                thread.join()
            raise
        if self._failed is not None:
            raise self._failed

    def _state_conditions(self) -> None:
        conditions = self._asked.conditions
        if conditions.digest not in self._journal.state.conditions or self._journal.state.newest != conditions:
            self._journal.write(Stated(conditions.digest, conditions))

    def _work(self) -> None:
        try:
            while (run := self._next()) is not None:
                self._make(run)
                self._tell()
        except Exception as error:
            with self._lock:
                self._failed = self._failed or error
            self._end("failed")

    def _next(self) -> Planned | None:
        with self._lock:
            if not self._left or self.halted:
                return None
            asked, state = self._asked, self._journal.state
            if asked.time_limit_s is not None and time.monotonic() - self._began >= asked.time_limit_s:
                self.halted = f"the time limit of {asked.time_limit_s:g} s is reached"
            elif asked.max_cost_usd is not None:
                unknown = [run for run in list(state.runs.values()) if run.finished.figures.cost_gap]
                if state.known_usd >= asked.max_cost_usd:
                    self.halted = (
                        f"the cost limit of {asked.max_cost_usd:g} USD is reached, --max-cost-usd may be raised"
                    )
                elif unknown:
                    note = unknown[0].finished.figures.cost_note
                    self.halted = (
                        f"the cost of a run is not known ({note}), so --max-cost-usd cannot be kept; leave it out"
                    )
            return None if self.halted else self._left.pop()

    def _make(self, run: Planned) -> None:
        """One run from its folder to its line in the journal."""
        state = self._journal.state
        with tempfile.TemporaryDirectory(prefix=self._prefix, ignore_cleanup_errors=True) as own:
            place, contents = self._folder(run, Path(own))
            with self._lock:
                session = f"trial-{state.token}-{state.attempts + 1}"
                manifest = Manifest(
                    run.arm,
                    run.task.id,
                    run.trial,
                    run.seed,
                    session,
                    self._asked.policies.get(run.arm, ""),
                    run.task.category,
                    digest(run.task.fields),
                    contents,
                    self._asked.conditions.digest,
                )
                if self.halted:
                    return
                self._journal.write(Began(time.time(), manifest))
            values = self._values(run, session, place)
            env = self._environment(run, session, Path(own), values)
            command = [filling.fill(word, values) for word in self._asked.command]
            ended = self._run(command, place, env, run, "", self._asked.timeout_s)
            if ended.stopped:
                return
            if ended.error:
                raise ClientError(f"the command cannot be run: {ended.error}")
            check = None
            if self._asked.check and not ended.timed_out:
                line = ["/bin/sh", "-c", filling.fill(self._asked.check, values)]
                check = self._run(line, place, env, run, "check.", self._asked.timeout_s)
                if check.stopped:
                    return
            figures = self._settled(session, ended)
            success = self._success(ended, check, figures)
            self._journal.write(Finished(session, ended, success, figures, check))
            self._keep(run, place)

    def _folder(self, run: Planned, own: Path) -> tuple[Path | None, str]:
        if not self._asked.workdir:
            return None, ""
        values = {**run.task.texts(), "id": run.task.id}
        place = own / "work"
        return place, folders.copied(Path(filling.fill(self._asked.workdir, values)), place)

    def _values(self, run: Planned, session: str, place: Path | None) -> dict[str, str]:
        own = {
            "id": run.task.id,
            "arm": run.arm,
            "trial": str(run.trial),
            "seed": str(run.seed),
            "session": session,
            "url": self._host.url(session),
            "workdir": str(place or Path.cwd()),
            "here": str(Path.cwd()),
        }
        return run.task.texts() | own

    def _environment(self, run: Planned, session: str, own: Path, values: Mapping[str, str]) -> dict[str, str]:
        names = {"id": "TASK", "arm": "ARM", "trial": "TRIAL", "seed": "SEED", "session": "SESSION", "url": "URL"}
        told = {f"TURNOUT_{variable}": values[name] for name, variable in names.items()}
        told |= {variable(name): text for name, text in run.task.texts().items()}
        return self._host.environment(run, session, own) | told

    def _run(
        self,
        command: Sequence[str],
        place: Path | None,
        env: Mapping[str, str],
        run: Planned,
        kind: str,
        timeout_s: float,
    ) -> Ended:
        with self._log(run, f"{kind}out") as out, self._log(run, f"{kind}err") as err:
            with self._lock:
                if self.halted in ("interrupted", "failed"):
                    return Ended(0, stopped=True)
                process = Guarded(command, place, env, out, err, timeout_s)
                self._running.add(process)
            try:
                return process.wait()
            finally:
                with self._lock:
                    self._running.discard(process)

    def _log(self, run: Planned, kind: str) -> IO[bytes]:
        name = re.sub(r"[^\w.-]", "_", f"{run.task.id}-{run.trial}-{run.arm}")[:120]
        # Names that would be the same without what cannot stand in a file name stay apart.
        name += f"-{digest(run.key)[:6]}"
        folder = self._asked.out / "logs"
        folder.mkdir(exist_ok=True)
        return (folder / f"{name}.{kind}").open("wb")

    def _settled(self, session: str, ended: Ended) -> Figures:
        """The figures of a session whose command is over. A gateway notices within a second that a client is gone, and a turn is
        recorded only at its end."""
        found = self._host.figures(session)
        until = time.monotonic() + (2.0 if ended.timed_out or ended.left else 0.0)
        while time.monotonic() < until:
            time.sleep(0.25)
            found = self._host.figures(session)
        return found

    def _success(self, ended: Ended, check: Ended | None, figures: Figures) -> bool | None:
        if ended.timed_out:
            return False
        if self._asked.success == "outcome":
            return figures.success
        return (check if check is not None else ended).code == 0

    def _keep(self, run: Planned, place: Path | None) -> None:
        if place is not None and self._asked.keep:
            name = re.sub(r"[^\w.-]", "_", f"{run.task.id}-{run.trial}-{run.arm}")[:120]
            to = self._asked.out / "work" / f"{name}-{digest(run.key)[:6]}"
            to.parent.mkdir(exist_ok=True)
            shutil.rmtree(to, ignore_errors=True)
            shutil.move(place, to)

    def _end(self, why: str) -> None:
        """No further run begins, and those on their way are ended."""
        with self._lock:
            self.halted = why
            running = list(self._running)
        for process in running:
            process.stop()

    def _tell(self) -> None:
        state = self._journal.state
        done = sum(run.key in state.runs for run in self._asked.runs)
        self._host.told(Told(done, len(self._asked.runs), state.known_usd))


def look_again(journal: Journal, success: Success, figures: Callable[[str], Figures]) -> None:
    """Bring the figures of all runs, those given up too, to what the ledger says now. Turns that outlived their client are in it
    only once they have ended. A ledger that can no longer be read changes nothing."""
    state = journal.state
    for run in list(state.runs.values()):
        session, was = run.manifest.session, run.finished
        with contextlib.suppress(TurnoutError):
            found = figures(session)
            told = was.success if success != "outcome" or was.ended.timed_out else found.success
            if found.turns >= was.figures.turns and (found, told) != (was.figures, was.success):
                journal.write(Refigured(session, found, told))
    for session, known in list(state.given_up.items()):
        with contextlib.suppress(TurnoutError):
            found = figures(session)
            if found != known:
                journal.write(Refigured(session, found))
