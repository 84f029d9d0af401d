"""Models small enough to train on a laptop: a tokenizer of whole words, and a transformer of a few hundred thousand weights."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

_PIECES = r"</?[a-z]+>|\n|[^\s<>]+"
_SPECIAL = ("[pad]", "[end]", "[unknown]")


class Size(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a transformer: its layers, the width of its states, its heads, the longest context in tokens."""

    layers: int = 2
    width: int = 112
    heads: int = 4
    context: int = 512


def word_tokenizer(words: Iterable[str]) -> Any:
    """A tokenizer whose tokens are `words` (tags, line ends, and what stands between spaces); others are unknown.

    White space but line ends carries no meaning: texts come back with single spaces between words.
    """
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    distinct = dict.fromkeys((*_SPECIAL, *words))
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(distinct)}, unk_token="[unknown]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECES), behavior="removed", invert=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[pad]", eos_token="[end]", unk_token="[unknown]", padding_side="left"
    )


def save_model(folder: Path, tokenizer: Any, size: Size, seed: int) -> None:
    """Make a Qwen2 of `size` with random weights and save it with its tokenizer: a training engine loads models by path."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        intermediate_size=4 * size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=size.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
