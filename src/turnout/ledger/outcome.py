"""What became of a turn or a session, as its user or harness reports it."""

from msgspec import Struct


class Outcome(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The body of POST /v1/outcomes. Names a turn, a session, or both.

    `success`: whether the task was solved, None = not said. `severe_failure`: damage that a retry does not mend. `takeover`: a
    person took over. `rollback`: the work was undone. `tool_cost_usd`: what tools cost beside models. `metrics`: free numbers.
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


class Reported(Struct, frozen=True):
    """An outcome and when it was reported, Unix seconds."""

    at: float
    outcome: Outcome
