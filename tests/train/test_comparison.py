"""The transfer matrix of models and question sets."""

from turnout.train.comparison import Cell, transfer
from turnout.train.evaluation import Mean, Summary


def cell(model: str, data: str, f1: float, arm: str = "agent") -> Cell:
    mean = Mean(f1, f1, f1)
    return Cell(model, data, arm, Summary(1, mean, mean, None, None, mean, mean, mean, None, {}))


def test_each_model_beside_the_one_trained_there() -> None:
    cells = [
        cell("a", "x", 0.8),
        cell("a", "y", 0.3),
        cell("b", "x", 0.4),
        cell("b", "y", 0.6),
        cell("a", "x", 0.1, "one-shot"),
    ]
    assert transfer(cells, ["a", "b"], ["x", "y"]) == ((1.0, 0.5), (0.5, 1.0))


def test_no_matrix_without_pairs_and_no_share_of_nothing() -> None:
    assert transfer([cell("a", "x", 0.8)], ["a"], ["x"]) == ()
    assert transfer([cell("a", "x", 0.8)], ["a", "b"], ["x"]) == ()
    cells = [cell("a", "x", 0.8), cell("a", "y", 0.3), cell("b", "x", 0.4), cell("b", "y", 0.0)]
    assert transfer(cells, ["a", "b"], ["x", "y"])[0] == (1.0, None)
