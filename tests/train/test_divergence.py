"""The teacher's term against values worked by hand."""

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `train`")


def test_the_support_is_the_teachers_and_sums_to_one() -> None:
    from turnout.train.divergence import top_k_targets

    logits = torch.tensor([[[math.log(4.0), math.log(1.0), math.log(3.0), math.log(2.0)]]])
    ids, logp = top_k_targets(logits, 2)
    assert ids.tolist() == [[[0, 2]]]
    assert logp.exp().tolist()[0][0] == pytest.approx([4 / 7, 3 / 7])
    assert top_k_targets(logits, 9)[0].shape[-1] == 4


def test_forward_kl_is_renormalised_on_both_sides() -> None:
    from turnout.train.divergence import forward_kl, top_k_targets

    teacher = torch.tensor([[[math.log(3.0), math.log(1.0), math.log(96.0) - 20]]])
    ids, logp = top_k_targets(teacher, 2)
    # The student holds most on a token outside of the support, which does not count: 1 : 1 on the support.
    student = torch.tensor([[[0.0, 0.0, 9.0]]], requires_grad=True)
    value = forward_kl(student, ids, logp)
    by_hand = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert value.item() == pytest.approx(by_hand, rel=1e-5)
    value.sum().backward()
    # d KL / d logit = q - p on the support, nothing elsewhere.
    assert student.grad is not None
    assert student.grad[0, 0].tolist() == pytest.approx([0.5 - 0.75, 0.5 - 0.25, 0.0], abs=1e-6)
    assert forward_kl(teacher, ids, logp).item() == pytest.approx(0.0, abs=1e-6)


def test_means_are_of_tokens_first_then_of_trajectories() -> None:
    from turnout.train.divergence import row_means, selected_mean

    values = torch.tensor([[1.0, 3.0, 9.0], [4.0, 9.0, 9.0], [9.0, 9.0, 9.0], [6.0, 2.0, 9.0]])
    positions = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    rows = row_means(values, positions)
    assert rows.tolist() == [2.0, 4.0, 0.0, 4.0]
    selected, total = torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor(2.0)
    assert selected_mean(rows, selected, total).item() == 3.0
    parts = [selected_mean(rows[i : i + 1], selected[i : i + 1], total).item() for i in range(4)]
    assert sum(parts) == 3.0
    assert selected_mean(rows, torch.zeros(4), torch.tensor(0.0)).item() == 0.0
