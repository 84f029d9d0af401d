"""What a calibration says for a policy: the evidence kept in its file."""

from datetime import UTC, datetime

from turnout.evaluate.calibration.figures import Judged
from turnout.evaluate.calibration.result import Calibration
from turnout.policies.policy import Evidence, Figure


def evidence(found: Calibration, at: datetime | None = None) -> Evidence:
    """The evidence for the chosen settings: figures on the held-out tasks, of them and of what was in force."""
    bound = found.constraint
    weighted = ", ".join(f"{name or 'others'} {weight:g}" for name, weight in bound.loss_weights.items())
    return Evidence(
        data=found.data.files,
        data_digest=found.data.digest,
        rows=found.data.n,
        at=at or datetime.now(UTC).replace(microsecond=0),
        split=found.split.words,
        constraint=f"tasks lost against the capable model at most {bound.max_loss:g}, by the {bound.by} (weights: {weighted})",
        holds=found.holds,
        assumptions=(found.assumption, *found.notes),
        metrics=_figures(found.held_out.get("chosen"), found),
        before=_figures(found.held_out.get("in_force"), found),
    )


def _figures(judged: Judged | None, found: Calibration) -> dict[str, Figure]:
    if judged is None:
        return {}
    tasks = len(found.split.held_out)
    figures = {}
    for name in Judged.__struct_fields__:
        one = getattr(judged, name)
        if one.value is not None:
            figures[name] = Figure(one.value, one.low, one.high, tasks, "USD" if name == "cost_usd" else "")
    return figures
