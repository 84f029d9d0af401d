"""Models against question sets: a cell for each, and what a model keeps away from the set it was trained on. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from turnout.train.evaluation import Summary


class Cell(Struct, frozen=True):
    """One model on one file by one arm: the agent, one look-up of the question (`one-shot`), or none (`closed-book`)."""

    model: str
    data: str
    arm: str
    summary: Summary


class Comparison(Struct, frozen=True):
    """`transfer[i][j]`: F1 of model i on file j over that of model j there; empty where models and files are not as many, or one
    only; None where the model at home has none right."""

    cells: tuple[Cell, ...]
    transfer: tuple[tuple[float | None, ...], ...] = ()


def transfer(cells: Sequence[Cell], models: Sequence[str], data: Sequence[str]) -> tuple[tuple[float | None, ...], ...]:
    """The transfer matrix of the agents: models and files in one order, each model trained on the file of its place."""
    if len(models) != len(data) or len(models) < 2:
        return ()
    f1 = {(cell.model, cell.data): cell.summary.f1.value for cell in cells if cell.arm == "agent"}
    return tuple(
        tuple(
            f1[model, file] / f1[home, file] if f1.get((home, file)) and (model, file) in f1 else None
            for home, file in zip(models, data, strict=True)
        )
        for model in models
    )
