"""Outcome tables: who tried which task, whether it succeeded, what it cost. JSON lines, gzipped or not.

Needed of a row: `task_id` or `query_id` (text or number), `model`, `success` (true, false, or null where nobody knows). Read
where present: `harness`, `trial`, `cost_usd` (null = unknown), `category`, `steps`, `step_seq`, `judge_cost_usd`,
`efficient_share`, `propensity`, `candidate_propensity`, `at` (Unix seconds), and `calls`: what each call used,
`[prompt, cached, output, cost]` in tokens and USD.

What cannot be read is counted with its line and left out; nothing is guessed or filled in.
"""

import functools
import gzip
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from turnout.errors import ClientError
from turnout.evaluate.arms import Arm, Wanted
from turnout.evaluate.importers.scrub import scrub
from turnout.evaluate.recordings import opened

SHOWN = 20
"""Damaged lines that are named; all are counted."""

CATEGORY_FIELDS = ("category", "benchmark", "repo")
"""Where a task's category is looked for when no field is named."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much (0 = not known)."""

Completed = Callable[["Outcome"], "Outcome"]
"""Adds what else is known of an outcome. Raises ValueError where it is of no use without."""


class Call(Struct, frozen=True, array_like=True):
    """What one model call used. `prompt_tokens` holds the `cached_tokens`; `cost_usd` None = not recorded."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None = None


class Outcome(Struct, frozen=True):
    """One run of one task. `line`: where it stands in the file, from 1. `trial`: "" where the recorder kept none.

    `cost_usd` None = unknown. `steps` None = unknown. `judge_cost_usd`: the part of `cost_usd` that went to judges.
    `efficient_share`: the share of a routed run's calls that the efficient model served. `propensity`: how likely the policy that
    made the log was to choose this model; `candidate_propensity`: how likely another policy would have been. `at`: when it was
    told, Unix seconds; None = not recorded.
    """

    line: int
    task: str
    arm: Arm
    trial: str
    success: bool
    cost_usd: float | None = None
    category: str = ""
    steps: int | None = None
    judge_cost_usd: float | None = None
    efficient_share: float | None = None
    propensity: float | None = None
    candidate_propensity: float | None = None
    calls: tuple[Call, ...] = ()
    at: float | None = None


class Damaged(Struct, frozen=True):
    """A line that could not be read, from 1, and why."""

    line: int
    reason: str


class Read(Struct, frozen=True):
    """What reading a file found. `rows`: lines that are not empty. `arms`: rows by arm, `unknown_success` those of any arm
    whose success nobody knows, `damaged` lines that could not be read, of which `damaged_lines` names the first. `outcomes`:
    those asked for."""

    file: str
    rows: int
    arms: dict[Arm, int]
    unknown_success: int
    damaged: int
    damaged_lines: tuple[Damaged, ...]
    outcomes: tuple[Outcome, ...]

    def arm(self, wanted: Wanted) -> Arm:
        """The arm that is meant. Raises ClientError when there is none or more than one; where rows could not be read, which may
        have been its rows, it says so."""
        try:
            return wanted.among(self.arms)
        except ClientError as error:
            if not self.damaged_lines or error.code != "unknown_arm":
                raise
            first = self.damaged_lines[0]
            raise ClientError(
                f"{error.message}; {self.damaged:,} of {self.rows:,} rows cannot be read, the first in line {first.line}: "
                f"{first.reason}",
                code=error.code,
            ) from None


class Row(Struct):
    """A row as it stands in the file; fields nobody asks for are not decoded."""

    model: str
    success: bool | int | None
    task_id: str | int | None = None
    query_id: str | int | None = None
    harness: str | None = None
    trial: str | int | float | None = None
    cost_usd: float | None = None
    steps: int | None = None
    step_seq: str | list[Any] | None = None
    judge_cost_usd: float | None = None
    efficient_share: float | None = None
    propensity: float | None = None
    candidate_propensity: float | None = None
    category: str | None = None
    benchmark: str | None = None
    repo: str | None = None
    at: Any = None
    calls: list[Call] | None = None
    per_call_usage: list[Call] | None = field(default=None, name="per_call_usage[in,cached,out,cost]")


_ROWS = msgspec.json.Decoder(Row)
_ANY = msgspec.json.Decoder(dict[str, Any])


def read(
    path: Path,
    wanted: Sequence[Wanted] | None = None,
    by: str = "",
    progress: Progress | None = None,
    completed: Callable[[Outcome, bytes], Outcome] | None = None,
) -> Read:
    """Read an outcome table, keeping the rows of arms that `wanted` may mean (None = all). One pass, line by line.

    `by`: the field that holds a task's category. `completed`: adds to each outcome that is kept what else its line tells; what it
    raises ValueError for is damaged. Raises OSError when there is no such file.
    """
    # Its name goes into policies and reports, which are passed on.
    tally = Tally(scrub(str(path)), wanted)
    for number, line in _lines(path):
        if isinstance(line, bytes) and not line.strip():
            continue
        if progress is not None and tally.rows % 10_000 == 9_999:
            progress(f"reading {path.name}", tally.rows + 1, 0)
        try:
            if isinstance(line, str):
                raise ValueError(line)
            row = _ROWS.decode(line)
            more = None if completed is None else functools.partial(_with_line, completed, line)
            tally.add(number, row, _category(row, line, by), more)
        except (msgspec.DecodeError, ValueError) as error:
            tally.damage(number, str(error))
    return tally.read()


def _with_line(completed: Callable[[Outcome, bytes], Outcome], line: bytes, outcome: Outcome) -> Outcome:
    return completed(outcome, line)


class Tally:
    """Counts rows as they are read, and keeps those of arms that `wanted` may mean (None = all)."""

    def __init__(self, file: str, wanted: Sequence[Wanted] | None) -> None:
        self._file = file
        self._wanted = wanted
        self._kept: list[Outcome] = []
        self._named: dict[tuple[str, str], tuple[Arm, bool]] = {}
        self._arms: Counter[Arm] = Counter()
        self._damaged: list[Damaged] = []
        self._count_damaged = self._unknown = self.rows = 0

    def add(self, number: int, row: "Row", category: str, completed: Completed | None = None) -> None:
        """Count a row. Raises ValueError when it is damaged; then it is counted by `damage`."""
        names = (row.model, row.harness or "")
        if names not in self._named:
            arm = Arm(*names)
            self._named[names] = arm, self._wanted is None or any(one.may_mean(arm) for one in self._wanted)
        arm, is_wanted = self._named[names]
        outcome = _outcome(number, row, arm, category)
        if outcome is not None and is_wanted and completed is not None:
            outcome = completed(outcome)
        self.rows += 1
        self._arms[arm] += 1
        if outcome is None:
            self._unknown += 1
        elif is_wanted:
            self._kept.append(outcome)

    def damage(self, number: int, reason: str) -> None:
        """Count a row that cannot be read."""
        self.rows += 1
        self._count_damaged += 1
        if len(self._damaged) < SHOWN:
            self._damaged.append(Damaged(number, reason))

    def read(self) -> Read:
        """What was read."""
        counts = (self._unknown, self._count_damaged)
        return Read(self._file, self.rows, dict(self._arms), *counts, tuple(self._damaged), tuple(self._kept))


def _lines(path: Path) -> Iterator[tuple[int, bytes | str]]:
    """The lines of a file, from 1; a text instead of bytes says why nothing more can be read."""
    number = 0
    with opened(path) as file:
        try:
            for line in file:
                number += 1
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield number + 1, f"the archive is cut off or damaged from here on: {error}"


def _outcome(number: int, row: Row, arm: Arm, category: str) -> Outcome | None:
    """The outcome a row tells, None where success is unknown. Raises ValueError."""
    task = row.task_id if row.task_id is not None else row.query_id
    if task is None or task == "":
        raise ValueError("neither `task_id` nor `query_id`")
    if not row.model:
        raise ValueError("an empty `model`")
    if row.success is not None and row.success not in (0, 1):
        raise ValueError("`success` is neither true, false nor null")
    for name in ("cost_usd", "judge_cost_usd", "steps"):
        _check(name, getattr(row, name), math.inf)
    for name in ("efficient_share", "propensity", "candidate_propensity"):
        _check(name, getattr(row, name), 1.0)
    if row.success is None:
        return None
    calls = row.calls if row.calls is not None else row.per_call_usage
    for call in calls or ():
        if min(call.prompt_tokens - call.cached_tokens, call.cached_tokens, call.output_tokens) < 0:
            raise ValueError("`calls`: more tokens cached than there are, or a negative number")
    return Outcome(
        line=number,
        task=str(task),
        arm=arm,
        trial="" if row.trial is None else str(row.trial),
        success=bool(row.success),
        cost_usd=row.cost_usd,
        category=category,
        steps=_steps(row),
        judge_cost_usd=row.judge_cost_usd,
        efficient_share=row.efficient_share,
        propensity=row.propensity,
        candidate_propensity=row.candidate_propensity,
        calls=tuple(calls or ()),
        at=row.at if isinstance(row.at, int | float) and not isinstance(row.at, bool) else None,
    )


def _check(name: str, value: float | None, at_most: float) -> None:
    if value is not None and not 0 <= value <= at_most:
        raise ValueError(f"`{name}` is {value}, expected " + ("0 or more" if at_most == math.inf else "0 to 1"))
    if value == math.inf:
        raise ValueError(f"`{name}` is infinite")


def _category(row: Row, line: bytes, by: str) -> str:
    if by:
        value = _ANY.decode(line).get(by)
        return "" if value is None else str(value)
    return next((value for name in CATEGORY_FIELDS if (value := getattr(row, name))), "")


def _steps(row: Row) -> int | None:
    """How many steps a run took: those in its sequence where that is recorded, else the recorded number."""
    return len(row.step_seq) if row.step_seq else row.steps
