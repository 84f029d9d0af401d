"""Supervised warm start on traces: the model's own turns are learnt, what it is shown is not. Needs the extra `train`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from turnout.train.lessons import Trace
from turnout.train.rollout import Spelling
from turnout.train.spelling import spelling_of, tokenizer_of

_IGNORED = -100


def encoded(trace: Trace, spelling: Spelling, tokenizer: Any) -> tuple[list[int], list[int]]:
    """Ids and labels of a trace, spelled as a rollout would be."""
    prompt, turns = trace
    ids = spelling.prompt(prompt)
    labels = [_IGNORED] * len(ids)
    for i, turn in enumerate(turns):
        part = tokenizer(turn, add_special_tokens=False)["input_ids"] if i % 2 == 0 else spelling.shown(turn)
        ids += part
        labels += part if i % 2 == 0 else [_IGNORED] * len(part)
    return ids, labels


def warmed(
    folder: Path,
    out: Path,
    draw: Callable[[], Trace],
    steps: int,
    rows: int = 72,
    learning_rate: float = 2e-3,
    seed: int = 0,
    told: Callable[[int, float], None] = lambda step, loss: None,
) -> float:
    """Teach the model in `folder` for `steps` batches of `rows` traces and save it to `out`. Returns the last loss.

    `told` hears of each step and its loss. The learning rate grows over the first 5 % and falls to nothing by a cosine.
    """
    torch.manual_seed(seed)
    tokenizer = tokenizer_of(str(folder))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").train()
    spelling = spelling_of(tokenizer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=steps, pct_start=0.05)
    last = 0.0
    for step in range(steps):
        batch = [encoded(draw(), spelling, tokenizer) for _ in range(rows)]
        ids, mask, labels = _padded(batch, tokenizer.pad_token_id)
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        last = float(loss.item())
        told(step + 1, last)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return last


def _padded(batch: Sequence[tuple[list[int], list[int]]], pad: int) -> tuple[Tensor, Tensor, Tensor]:
    longest = max(len(ids) for ids, _ in batch)
    rows = [(ids + [pad] * (longest - len(ids)), labels + [_IGNORED] * (longest - len(ids))) for ids, labels in batch]
    mask = [[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in batch]
    return torch.tensor([ids for ids, _ in rows]), torch.tensor(mask), torch.tensor([labels for _, labels in rows])
