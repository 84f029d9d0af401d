"""Token-level divergence of a student from a teacher on the teacher's likeliest tokens. Pure functions on tensors.

PathRouter, Eq. 5-7: the K tokens the teacher holds likeliest are the support; both distributions are renormalised on it; the
forward KL is averaged over a trajectory's positions first, then over trajectories.
"""

from torch import Tensor


def top_k_targets(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The teacher's k likeliest tokens at each position and their renormalised log-probabilities.

    `logits`: (B, C, V). Returns ids (B, C, k) and log-probabilities (B, C, k) that sum to one on the support. A vocabulary
    smaller than k is taken whole.
    """
    values, ids = logits.topk(min(k, logits.size(-1)), dim=-1)
    return ids, values.float().log_softmax(dim=-1)


def forward_kl(student_logits: Tensor, ids: Tensor, teacher_logp: Tensor) -> Tensor:
    """KL(teacher || student) at each position, both renormalised on the support `ids`.

    `student_logits`: (B, C, V); `ids`, `teacher_logp`: (B, C, k). Returns (B, C), in nats; its gradient reaches the student's.
    """
    student_logp = student_logits.gather(-1, ids).float().log_softmax(dim=-1)
    return (teacher_logp.exp() * (teacher_logp - student_logp)).sum(dim=-1)


def row_means(values: Tensor, positions: Tensor) -> Tensor:
    """The mean of `values` (B, C) over each row's `positions` (B, C, 0 or 1); 0 for a row without any. Returns (B,)."""
    return (values * positions).sum(dim=-1) / positions.sum(dim=-1).clamp(min=1)


def selected_mean(rows: Tensor, selected: Tensor, total: Tensor) -> Tensor:
    """This part's share of the mean of `rows` (B,) over all rows selected anywhere.

    `selected`: (B,), 0 or 1. `total`: how many are selected in the whole batch, all parts and processes together; 0 gives 0.
    Summed over parts, the shares are the mean, however the batch is divided.
    """
    return (rows * selected).sum() / total.clamp(min=1)
