"""One version of a route: its table, and the evidence for it. The structs are the schema of a policy file."""

from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, field

Text = Annotated[str, Meta(min_length=1)]
Digest = Annotated[str, Meta(pattern=r"^([0-9a-f]{12})?$")]
"""What turns record as their policy (`x-turnout-policy`); "" where it is not known yet."""
Aware = Annotated[datetime, Meta(tz=True)]


def now() -> datetime:
    """The present, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """A measured number. `low`, `high`: its 95 % interval. `n`: of how many it is the mean. `unit`: "" for a share or a count."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    unit: str = ""


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a version is believed to be good.

    `data`: what it was measured on, for people. `data_digest`: of the rows, with the name of the hash in front. `rows`: how many.
    `at`: when. `split`: how rows to choose by and rows to judge by were parted. `constraint`: what had to hold. `holds`: whether
    it does on the rows to judge by. `assumptions`: sentences. `metrics`: of this version on the rows to judge by. `before`: of
    the version it came from on the same rows.
    """

    data: Text
    data_digest: str = ""
    rows: Annotated[int, Meta(ge=0)] | None = None
    at: Aware | None = None
    split: str = ""
    constraint: str = ""
    holds: bool | None = None
    assumptions: tuple[str, ...] = ()
    metrics: dict[str, Figure] = {}
    before: dict[str, Figure] = {}


class ModelBehind(Struct, frozen=True, forbid_unknown_fields=True):
    """What a target stood for when a version was made: part of what its evidence is about."""

    model: Text
    format: str = ""
    prompt: str = ""
    effort: str = ""


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """One version of one route; not changed once it is made.

    `route`: the table name of the route. `router`: its whole table but `aliases` and `description`, which stay the
    configuration's. `digest`: of table and models, as turns record it; evidence and notes have no part in it. `made_by`: what
    made it, such as `calibrate`; `hand` = a person. `came_from`: digest of the version it was made from. `note`: for people.
    `models`: what the targets stood for.
    """

    route: Text
    router: dict[str, Any]
    digest: Digest = ""
    made_at: Aware = field(default_factory=now)
    made_by: str = "hand"
    came_from: Digest = ""
    note: str = ""
    models: dict[str, ModelBehind] = {}
    evidence: Evidence | None = None
