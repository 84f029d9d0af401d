"""One generated turn for each of many contexts, ended where the protocol ends it. Needs torch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import StoppingCriteria, StoppingCriteriaList

from turnout.routing.retrieval.protocol import STOPS

_TAIL_IDS = 12
"""Tokens that surely hold a stop: none is longer than its characters."""


class TurnEnd(StoppingCriteria):
    """Stops a row where its text has come to a closing tag of the protocol. `at[row]`: new tokens up to there, 0 before."""

    def __init__(self, decode: Any, closers: Tensor, prompt_length: int, rows: int) -> None:
        self._decode = decode
        self._closers = closers
        self._prompt_length = prompt_length
        self.at = [0] * rows

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Tensor:
        new = input_ids.size(1) - self._prompt_length
        # Only a token that ends in ">" can end a tag, and few do: the others need not be decoded.
        for row in torch.isin(input_ids[:, -1], self._closers).nonzero().flatten().tolist():
            if not self.at[row]:
                tail = self._decode(input_ids[row, -min(new, _TAIL_IDS) :].tolist())
                if tail.rstrip().endswith(STOPS):
                    self.at[row] = new
        return torch.tensor([bool(at) for at in self.at], device=input_ids.device)


def closers(tokenizer: Any) -> Tensor:
    """Ids of tokens that may end a closing tag."""
    found = [id for id in range(len(tokenizer)) if ">" in tokenizer.decode([id])]
    return torch.tensor(found, dtype=torch.long)


def generated(
    model: Any,
    contexts: Sequence[Sequence[int]],
    tokenizer: Any,
    closing: Tensor,
    max_new_tokens: int,
    eos: Sequence[int],
    **sampling: Any,
) -> list[tuple[list[int], bool]]:
    """Generate a turn for each context: its new ids, and whether it was cut for want of tokens.

    A turn ends with a closing tag or an end token, which stay in it. `eos`: the end tokens. `sampling`: arguments of `generate`.
    """
    pad = tokenizer.pad_token_id
    longest = max(map(len, contexts))
    device = model.device
    ids = torch.tensor([[pad] * (longest - len(c)) + list(c) for c in contexts], device=device)
    mask = torch.tensor([[0] * (longest - len(c)) + [1] * len(c) for c in contexts], device=device)

    def decode(tail: list[int]) -> str:
        text: str = tokenizer.decode(tail, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    ends = TurnEnd(decode, closing.to(device), longest, len(contexts))
    with torch.no_grad():
        out = model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=max_new_tokens,
            pad_token_id=pad,
            eos_token_id=list(eos),
            stopping_criteria=StoppingCriteriaList([ends]),
            **sampling,
        )
    ended = set(eos)
    turns = []
    for row, new in enumerate(out[:, longest:].tolist()):
        stop = ends.at[row] or len(new)
        first_eos = next((i + 1 for i, id in enumerate(new[:stop]) if id in ended), 0)
        at = first_eos or stop
        turns.append((new[:at], not first_eos and not ends.at[row]))
    return turns
