"""Takes out of an answer what says who wrote it.

Only sentences in which the writer speaks of itself are touched, and exact ids of the models that take part: an answer about
Claude Monet, llamas or a paper of a vendor's is left alone.
"""

import re
from collections.abc import Iterable

WITHHELD = "[name withheld]"

_MODEL = (
    r"(?:Chat)?GPT(?:[-\s]?\d[\w.\-]*)?|Claude(?:[-\s](?:\d[\w.\-]*|Opus|Sonnet|Haiku|Instant))*|Gemini(?:[-\s]\d[\w.\-]*)?|Gemma|"
    r"Llama(?:[-\s]?\d[\w.\-]*)?|Mistral|Mixtral|Qwen[\w.\-]*|Tongyi Qianwen|DeepSeek[\w.\-]*|Grok[\w.\-]*|Command[-\s]R\+?|"
    r"Phi-\d[\w.\-]*|Kimi|GLM-\d[\w.\-]*|ERNIE(?: Bot)?|Bard|Copilot|Jamba|Vicuna|Alpaca"
)
_VENDOR = (
    r"OpenAI|Anthropic|Google(?: DeepMind)?|DeepMind|Meta(?: AI)?|Mistral(?: AI)?|Alibaba(?: Cloud)?|DeepSeek|xAI|Cohere|"
    r"Microsoft|Moonshot(?: AI)?|Zhipu(?: AI)?|01\.AI|Baidu|Amazon|NVIDIA|AI21(?: Labs)?|LMSYS"
)
_SELF = r"(?:I\s+am|I['\u2019]m|my\s+name\s+is|call\s+me|as)"
_MADE = r"(?:trained|developed|created|made|built|designed|provided|from)"
_LONGEST = 100
"""Characters between a word for oneself and a maker's name in the same sentence."""


def masks(names: Iterable[str] = ()) -> tuple[re.Pattern[str], ...]:
    """What to look for when models of these names and ids take part. Each pattern's group `who` is what is withheld."""
    own = sorted({name for name in names if name}, key=lambda name: (-len(name), name))
    known = "|".join([*map(re.escape, own), _MODEL])
    patterns = [
        rf"\b{_SELF}\s+(?:an?\s+|the\s+)?(?P<who>{known}|{_VENDOR})(?![\w-])(?=\s*(?:[,.!;:)]|$|\(|an?\s|by\s|from\s|and\s+I\b))",
        rf"\b(?:{_SELF}|I\s+was)\b[^.!?\n]{{0,{_LONGEST}}}?\b{_MADE}\s+(?:by\s+)?(?P<who>{_VENDOR})\b",
    ]
    # A target may be called `small`, which an answer may say; an id such as vendor-4b-chat says one thing only.
    if ids := [name for name in own if len(name) > 5 and re.search(r"\d", name) and re.search(r"[-_./@]", name)]:
        patterns.append(rf"(?<![\w-])(?P<who>{'|'.join(map(re.escape, ids))})(?![\w-])")
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


def blinded(text: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """`text` without its writer's names for itself."""
    for pattern in patterns:
        # A sentence may name both model and maker: each pass finds what the one before has left.
        while (masked := pattern.sub(_mask, text)) != text:
            text = masked
    return text


def _mask(found: re.Match[str]) -> str:
    begin, end = found.span("who")
    at = found.start()
    return found[0][: begin - at] + WITHHELD + found[0][end - at :]
