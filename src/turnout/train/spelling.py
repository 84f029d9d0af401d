"""How a transformers tokenizer spells prompts, observations and turns. Needs transformers, not torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

_MARK = "\u0001turnout\u0001"
"""A text no template changes."""


class ChatSpelling:
    """By the model's own chat template: the prompt is a user's message, an observation another one.

    What stands between two turns is taken from the template once, so that nothing sampled is ever encoded again.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        user = {"role": "user", "content": _MARK}
        said = {"role": "assistant", "content": "\u0002"}
        before = self._rendered([user], True)
        whole = self._rendered([user, said, user], True)
        self._head, self._tail = before.split(_MARK)
        after = whole[len(before) :]
        end, begin = after.split(_MARK)
        self._between = (end.split("\u0002", 1)[1], begin)

    def _rendered(self, messages: list[dict[str, str]], begin: bool) -> str:
        text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begin)
        return text

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def prompt(self, text: str) -> list[int]:
        return self._encoded(self._head + text + self._tail)

    def shown(self, text: str) -> list[int]:
        return self._encoded(self._between[0] + text + self._between[1])

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


class PlainSpelling:
    """For a model without a chat template: one text that goes on, observations in their place."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def prompt(self, text: str) -> list[int]:
        begin = [self._tokenizer.bos_token_id] if self._tokenizer.bos_token_id is not None else []
        return begin + self.shown(text)

    def shown(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def tokenizer_of(model: str) -> Any:
    """The tokenizer of a model, a folder or a hub id.

    A folder whose tokenizer is a plain one of whatever kind says so, but is given its model type's own by `AutoTokenizer`.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    described = Path(model) / "tokenizer_config.json"
    if described.is_file():
        named = msgspec.json.decode(described.read_bytes()).get("tokenizer_class")
        if named in ("TokenizersBackend", "PreTrainedTokenizerFast"):
            return PreTrainedTokenizerFast.from_pretrained(model)
    return AutoTokenizer.from_pretrained(model)


def spelling_of(tokenizer: Any) -> ChatSpelling | PlainSpelling:
    """The spelling that fits a tokenizer."""
    return ChatSpelling(tokenizer) if getattr(tokenizer, "chat_template", None) else PlainSpelling(tokenizer)
