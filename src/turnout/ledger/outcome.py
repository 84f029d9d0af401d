"""What became of a turn, a session or a task, as its user or harness reports it."""

from msgspec import Struct

REPORTED = "reported"
"""The source of outcomes that came in one by one."""


class Outcome(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The body of POST /v1/outcomes, and a row of an imported outcome table. Names a turn, a session or a task.

    `success`: whether the task was solved, None = not said. `severe_failure`: damage that a retry does not mend. `takeover`: a
    person took over. `rollback`: the work was undone. `tool_cost_usd`: what tools cost beside models. `metrics`: free numbers.
    `task`, `trial`: which task, and which of several runs of it. `category`: of the task. `model`, `harness`: who did it.
    `cost_usd`: of all model calls, None = not known, `cost_source`: where that number comes from. `steps`: model calls.
    `input_tokens`: whole prompts, cached or not.
    """

    turn: str = ""
    session: str = ""
    tenant: str = ""
    success: bool | None = None
    severe_failure: bool = False
    takeover: bool = False
    rollback: bool = False
    tool_cost_usd: float | None = None
    metrics: dict[str, float] = {}
    note: str = ""
    task: str = ""
    category: str = ""
    model: str = ""
    harness: str = ""
    trial: str = ""
    cost_usd: float | None = None
    cost_source: str = ""
    steps: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def solved(self) -> bool | None:
        """Whether the work succeeded: damage, a person who took over and work that was undone are failures where nothing else
        is said; None when the outcome does not tell."""
        if self.success is not None:
            return self.success
        return False if self.severe_failure or self.takeover or self.rollback else None


class Reported(Struct, frozen=True):
    """An outcome and when it was reported, Unix seconds. `source`: `reported`, or the format it was imported from."""

    at: float
    outcome: Outcome
    source: str = REPORTED
