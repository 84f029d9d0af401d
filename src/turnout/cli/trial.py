"""`turnout trial`: the user's own task command, once per arm and task, under equal conditions."""

import contextlib
import os
import secrets
import shlex
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from turnout.cli import agents, exits, gateways, options, output, progress
from turnout.cli.serve import require_route

if TYPE_CHECKING:
    from turnout.evaluate.trials.figures import Figures
    from turnout.evaluate.trials.journal import Journal
    from turnout.evaluate.trials.manifest import Conditions
    from turnout.evaluate.trials.plan import Planned
    from turnout.evaluate.trials.tasks import Task
    from turnout.evaluate.trials.trial import Asked, Host, Success, Told
    from turnout.gateway.config import Config
    from turnout.ledger.store import Ledger
    from turnout.ledger.trace import TurnRecord

MOST = 1_000_000
"""Turns of a run that are read."""


def trial(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="What does one task; exit code 0 = it succeeded.")
    ] = None,
    arms: Annotated[
        str, typer.Option(metavar="A,B,...", help="Routes to compare: capable, efficient, and any number of others.")
    ] = "",
    tasks: Annotated[
        str, typer.Option(metavar="FILE|FOLDER|N", help="JSON lines with `id`; a folder, each entry a task; how many.")
    ] = "",
    trials: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each task in each arm.")] = 1,
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Start a gateway with this file.")
    ] = options.DEFAULT_FILE,
    gateway: Annotated[str, typer.Option(metavar="URL", help="Use this running gateway instead.")] = "",
    ledger: Annotated[str, typer.Option(metavar="URL", help="The running gateway's ledger, to read outcomes.")] = "",
    key_env: Annotated[str, typer.Option(metavar="VAR", help="Variable with the key the gateway asks for.")] = "",
    keep_login: Annotated[bool, typer.Option(help="Keep the agent's own login (upstreams with forward_auth).")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where everything is written.")] = Path("trial"),
    workdir: Annotated[
        str, typer.Option(metavar="TEMPLATE", help="Folder of which each run gets a fresh copy to work in.")
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the copies, in FOLDER/work.")] = False,
    check: Annotated[
        str, typer.Option(metavar="COMMAND", help="Shell line run afterwards; exit code 0 = the run succeeded.")
    ] = "",
    success: Annotated[str, typer.Option(metavar="exit|check|outcome", help="What says whether a run succeeded.")] = "",
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds that a run may take.")] = 1800.0,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Runs at the same time.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order, and of each run's own seed.")] = 0,
    max_cost_usd: Annotated[
        float | None, typer.Option(metavar="USD", min=0.0, help="Begin no run once so much is spent.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="S", min=0.0, help="Begin no run after so many seconds.")
    ] = None,
    accept_differences: Annotated[
        bool, typer.Option("--accept-differences", help="Go on although conditions have changed, and report it.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run your own command once per arm and task, under equal conditions.

    Each run is pointed at a gateway by the environment (OPENAI_BASE_URL, ANTHROPIC_BASE_URL, keys, and TURNOUT_ARM, the model to
    ask for). COMMAND may hold {id}, {arm}, {trial}, {seed}, {workdir}, {here} and the fields of a task:

    turnout trial --arms capable,efficient,routed --tasks tasks.jsonl -- python agent.py {prompt}

    Killed or interrupted, the same command goes on where it stopped. Then: turnout evaluate trial/outcomes.jsonl
    """
    from turnout.evaluate.trials.plan import planned
    from turnout.evaluate.trials.tasks import tasks as read_tasks
    from turnout.evaluate.trials.trial import Asked

    given = _arms(arms)
    words = _command(command or [])
    if not tasks:
        raise exits.CommandError("--tasks says which tasks to run", step="a JSON Lines file, a folder, or a number")
    rule = _success(success, check, gateway, ledger)
    found = read_tasks(tasks)
    _check_words(words, check, workdir, found)
    key = gateways.key_in(key_env) if key_env else agents.PLACEHOLDER
    loaded = None if gateway else _loaded(config)
    _check_arms(given, list(loaded.by_model()) if loaded else gateways.served(gateway, key if key_env else ""))
    keep_login = keep_login or (loaded is not None and any(forwards(loaded, arm) for arm in given))
    asked = Asked(
        command=tuple(words),
        runs=tuple(planned(given, found, trials, seed)),
        policies={arm: loaded.by_model()[arm].policy for arm in given} if loaded else {},
        conditions=_conditions(words, check, rule, timeout, seed, workdir, gateway, jobs),
        success=rule,
        out=out,
        check=check,
        workdir=workdir,
        keep=keep,
        timeout_s=timeout,
        jobs=jobs,
        max_cost_usd=max_cost_usd,
        time_limit_s=time_limit,
    )
    place = _Place(config, gateway, ledger, key_env, None if keep_login else key, out)
    _run(asked, given, place, accept_differences, as_json)


def _run(asked: "Asked", arms: Sequence[str], place: "_Place", accept_differences: bool, as_json: bool) -> None:
    from turnout.cli import trialled
    from turnout.evaluate.trials.journal import Journal, Opened
    from turnout.evaluate.trials.rows import rows, write
    from turnout.evaluate.trials.trial import Trial, look_again

    asked.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(asked.out / "journal.jsonl")
    try:
        if not journal.state.token:
            journal.write(Opened(secrets.token_hex(4)))
        _check_same(asked, journal, accept_differences)
        halted, interrupted = "", False
        try:
            if any(run.key not in journal.state.runs for run in asked.runs):
                with place.opened(), progress.shown() as told:
                    going = Trial(asked, journal, place.host(asked, told))
                    going.run()
                    halted = going.halted
        except KeyboardInterrupt:
            interrupted, halted = True, "interrupted"
        finally:
            look_again(journal, asked.success, place.figures)
            write(asked.out / "outcomes.jsonl", rows(journal.state, arms))
        trialled.show(journal.state, asked, arms, halted, as_json)
        if interrupted:
            raise typer.Exit(exits.INTERRUPTED)
        if halted:
            raise typer.Exit(exits.FOUND)
    finally:
        journal.close()
        place.close()


class _Place:
    """The gateway of a trial, its own or a running one, and where its records are read."""

    def __init__(self, config: Path, gateway: str, ledger: str, key_env: str, key: str | None, out: Path) -> None:
        self._config = config
        self._url = gateways.base(gateway) if gateway else ""
        self._own = not gateway
        self._ledger = ledger if gateway else f"sqlite:///{(out / 'ledger.db').resolve()}"
        self._key_env = key_env
        self._key = key
        self._opening = threading.Lock()
        self._reader: Ledger | None = None
        self._codex = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """A gateway that serves meanwhile. SIGTERM and SIGHUP end the trial as Ctrl-C does."""
        if not self._own:
            with gateways.on_end(gateways.interrupt):
                yield
            return
        with gateways.started(self._config, self._ledger) as self._url:
            yield
        self._url = ""

    def host(self, asked: "Asked", told: progress.Told) -> "Host":
        """What runs need."""
        from turnout.evaluate.trials.trial import Host

        def heard(how: "Told") -> None:
            told("runs", how.done, how.of, f"{output.usd(how.cost_usd)} so far")

        return Host(self.environment, self.url, self.figures, heard)

    def url(self, session: str) -> str:
        """Where the turns of a session go."""
        return f"{self._url}/sessions/{session}"

    def environment(self, run: "Planned", session: str, own: Path) -> dict[str, str]:
        """A run's whole environment: this process's own, pointed at the gateway in every dialect."""
        at = self.url(session)
        claude = agents.claude(at, run.arm, self._key)
        codex = agents.codex(at, run.arm, self._key)
        home = own / "codex"
        home.mkdir()
        agents.furnish(home, codex, self._codex)
        found = codex.environment(claude.environment(os.environ), home)
        found |= {"OPENAI_BASE_URL": f"{at}/v1", "OPENAI_API_BASE": f"{at}/v1", "OPENAI_MODEL": run.arm}
        if self._key is not None:
            found |= {"OPENAI_API_KEY": self._key, "ANTHROPIC_API_KEY": self._key}
        return found

    def figures(self, session: str) -> "Figures":
        """What is recorded of a session. Raises CommandError."""
        from turnout.cli.records import Records
        from turnout.evaluate.trials.figures import figures

        if self._url:
            turns = Records(url=self._url, key_env=self._key_env).recent(MOST, session=session)[::-1]
        else:
            turns = self._recorded(session)
        told = self._records().outcomes(session=session) if self._ledger else ()
        return figures(turns, [reported.outcome for reported in told])

    def _recorded(self, session: str) -> "list[TurnRecord]":
        from turnout.ledger.reading import TurnFilter

        with self._records().lanes(TurnFilter(session=session)) as turns:
            return sorted(turns, key=lambda turn: turn.at)

    def _records(self) -> "Ledger":
        """The ledger, opened once: runs that end at the same time share it."""
        from turnout.cli.records import existing
        from turnout.ledger.store import Ledger

        with self._opening:
            if self._reader is None:
                self._reader = Ledger.read(existing(self._ledger))
            return self._reader

    def close(self) -> None:
        """Let go of the ledger."""
        if self._reader is not None:
            self._reader.close()


def _arms(text: str) -> list[str]:
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise exits.CommandError("--arms names the routes to compare", step="such as --arms capable,efficient,routed")
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        step = "`--trials 2` runs every arm twice, as a control"
        raise exits.CommandError(f"--arms names {twice[0]} twice", step=step)
    return found


def _command(words: list[str]) -> list[str]:
    if not words:
        step = "such as: turnout trial --arms capable,efficient --tasks tasks.jsonl -- python agent.py {id}"
        raise exits.CommandError("no COMMAND behind `--`", step=step)
    return words


def _success(named: str, check: str, gateway: str, ledger: str) -> "Success":
    rule = named or ("check" if check else "exit")
    if rule not in ("exit", "check", "outcome"):
        raise exits.CommandError(f"--success {named}: expected exit, check or outcome")
    if (rule == "check") != bool(check):
        raise exits.CommandError("--success check and --check COMMAND belong together", step="give both or neither")
    if rule == "outcome" and gateway and not ledger:
        step = "name its ledger with --ledger, as in sqlite:///turnout.db"
        raise exits.CommandError("a running gateway does not tell the outcomes it was told", step=step)
    if ledger and not gateway:
        raise exits.CommandError(
            "--ledger is that of a running gateway", step="name it with --gateway, or leave it out"
        )
    return rule  # type: ignore[return-value]  # one of the three, as was checked


def _check_words(words: Sequence[str], check: str, workdir: str, tasks: "Sequence[Task]") -> None:
    """Raise CommandError for a command that cannot be run; say what may not be meant."""
    from turnout.evaluate.trials import filling
    from turnout.evaluate.trials.folders import is_file

    for name in filling.check([*words, check, workdir], tasks):
        output.say(f"note: {{{name}}} is no field of the tasks and stays as it is")
    folders = [Path()]
    if workdir:
        filled = (filling.fill(workdir, {**task.texts(), "id": task.id}) for task in tasks)
        folders = [Path(folder) for folder in dict.fromkeys(filled)]
    for folder in folders:
        if not folder.is_dir():
            raise exits.CommandError(
                f"--workdir {folder}: no such folder", exits.NOT_FOUND, "each run gets a copy of it"
            )
        for word in words:
            if workdir and is_file(word) and not Path(word).is_absolute() and not (folder / word).exists():
                step = f"{folder} does not have it; write {{here}}/{word}"
                raise exits.CommandError(f"{word} is here, but runs work in a copy of --workdir", step=step)
        _check_program(words[0], folder)


def _check_program(program: str, folder: Path) -> None:
    """Raise CommandError when runs that begin in `folder` would not find their program."""
    from turnout.evaluate.trials import filling

    program = filling.fill(program, {"here": str(Path.cwd())})
    if filling.named([program]):
        return
    if shutil.which(str(folder / program) if "/" in program else program) is None:
        step = "expected a program, then its arguments; `sh -c '...'` runs a shell line"
        raise exits.CommandError(f"{program}: there is no such program", exits.NOT_FOUND, step)


def _loaded(config: Path) -> "Config":
    from turnout.gateway.config import load

    if not config.exists():
        step = "`turnout init` writes a configuration; or name a running gateway with --gateway"
        raise exits.CommandError(f"{config}: no such file", step=step)
    return load(config)


def _check_arms(arms: Sequence[str], served: Sequence[str]) -> None:
    for arm in arms:
        require_route(served, arm)


def forwards(config: "Config", route: str) -> bool:
    """Whether a route sends the client's own login on to an upstream."""
    targets = config.by_model()[route].targets
    return any(config.upstreams[config.targets[name].upstream].forward_auth for name in targets)


def _conditions(
    words: Sequence[str], check: str, rule: str, timeout: float, seed: int, workdir: str, gateway: str, jobs: int
) -> "Conditions":
    from turnout.evaluate.trials import manifest

    return manifest.Conditions(
        command=manifest.words(words),
        check=manifest.line(check),
        success=rule,
        timeout_s=timeout,
        seed=seed,
        workdir=manifest.line(workdir),
        gateway=manifest.line(gateway) or "own",
        jobs=jobs,
        files=manifest.files(words, check),
        environment=manifest.environment(os.environ),
        machine=manifest.machine(),
    )


def _check_same(asked: "Asked", journal: "Journal", accepted: bool) -> None:
    """Raise CommandError when runs that are over took place under other conditions."""
    from turnout.evaluate.trials.changes import changes

    found = changes(journal.state, asked)
    if not found:
        return
    if accepted:
        output.say("conditions have changed: " + "; ".join(found))
        return
    listed = "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
    step = (
        f"put it back, choose another --out to begin anew, or go on with --accept-differences, which will be reported; "
        f"{shlex.quote(str(asked.out))} holds {output.count(len(journal.state.runs), 'run')}"
    )
    raise exits.CommandError(f"conditions have changed since this trial began: {listed}", step=step)
