"""Token counts without a tokenizer: how many tokens a text is likely to have in a current vocabulary.

The estimate weighs counts of word pieces, digits, punctuation and scripts. The weights were fitted on half of about a thousand
excerpts of 1,500 to 4,000 characters against o200k_base. Mean absolute error on the other half, per excerpt: English prose 5 %,
agents' text 5 %, tool output 5 %, JSON 5 %, Python 6 %, JavaScript 5 %, C 8 %, Markdown 6 %, Chinese 4 %, Japanese 1 %,
Korean 3 %, German 2 %, French 4 %, Russian 5 %; nine excerpts in ten are within 12 %. Weak: hexadecimal and base64 (10 %),
Polish (13 %), Spanish and Hindi (20 %). An older public vocabulary of Claude gives 2 to 19 % more tokens than o200k_base on
English text and code, and about 40 % more on Chinese, so for such models this is a lower estimate.
"""

import re

SAMPLED_FROM = 32_768
"""Characters from which a text is estimated by evenly spaced samples: time stays within a few milliseconds."""
SAMPLES = 16
SAMPLE = 1_024

_ASCII = tuple(
    (re.compile(pattern), weight)
    for pattern, weight in (
        (r"[A-Z]?[a-z]+|[A-Z]+", 0.89),  # words and the words inside identifiers
        (r"[A-Z][a-z]", 0.32),
        (r"[A-Z]{3}", 0.47),
        (r"(?<=[a-z]{6})[a-z]{3}", 1.19),  # what long words have beyond one token
        (r"[0-9]{1,3}", 1.39),
        (r"[!-/:-@\[-`{-~]+", 0.8),
        (r"[!-/:-@\[-`{-~]{4}", 0.65),
        (r"[ \t]{2,}", 1.38),
        (r"\n+", 0.04),
    )
)
_OTHER = tuple(
    (re.compile(pattern), weight)
    for pattern, weight in (
        ("[\u3400-\u9fff\uf900-\ufaff]", 0.74),  # Han
        ("[\u3040-\u30ff]", 0.81),  # kana
        ("[\uac00-\ud7af]", 0.53),  # Hangul
        ("[\uac00-\ud7af]+", 0.91),
        ("[\u3000-\u303f\uff00-\uffef]", 1.25),  # CJK punctuation, full width
        ("[\u00c0-\u024f]", 1.29),  # Latin with marks
        ("[\u0400-\u052f]", 0.32),  # Cyrillic
        ("[\u0370-\u03ff]", 0.42),  # Greek
        ("[\u0590-\u05ff]", 0.6),  # Hebrew
        ("[\u0600-\u07bf]", 0.39),  # Arabic
        ("[\u0900-\u0dff]", 0.3),  # scripts of India
        ("[\u0e00-\u0eff]", 0.54),  # Thai, Lao
        ("[\u00a1-\u00bf\u2000-\u2fff]+", 0.9),  # symbols, arrows, boxes
        ("[\U00010000-\U0010ffff]", 1.6),  # emoji and rare characters
    )
)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has; 0 only for an empty one. About 0.3 ms per thousand characters;
    a long text is sampled, in about 5 ms."""
    if len(text) <= SAMPLED_FROM:
        weight = _weight(text)
    else:
        step = (len(text) - SAMPLE) / (SAMPLES - 1)
        samples = [text[int(i * step) : int(i * step) + SAMPLE] for i in range(SAMPLES)]
        weight = sum(map(_weight, samples)) * len(text) / (SAMPLES * SAMPLE)
    return max(round(weight), 1 if text else 0)


def _weight(text: str) -> float:
    total = sum(weight * len(pattern.findall(text)) for pattern, weight in _ASCII)
    if not text.isascii():
        total += sum(weight * len(pattern.findall(text)) for pattern, weight in _OTHER)
    return total
