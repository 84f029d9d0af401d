"""How an answer and what was retrieved are scored: exact match, token F1, evidence overlap. Pure.

Texts are compared as question answering compares them (SQuAD, Rajpurkar et al. 2016): lower case, without punctuation and
articles, split at white space.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def tokens(text: str) -> list[str]:
    """`text` as the tokens that scores compare."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def exact_match(answer: str, golds: Iterable[str]) -> bool:
    """Whether `answer` says the same as one of `golds`."""
    said = tokens(answer)
    return any(said == tokens(gold) for gold in golds)


def token_f1(text: str, gold: str, *, multiset: bool = True) -> float:
    """Harmonic mean of the precision and recall of the tokens of `text` against those of `gold`, in [0, 1].

    `multiset`: a token counts as often as it occurs (SQuAD); else once (the words of PathRouter's paper). Two texts without
    tokens are equal, 1.0; one without is 0.0.
    """
    return _f1(_bag(tokens(text), multiset), _bag(tokens(gold), multiset))


def best_f1(answer: str, golds: Iterable[str], *, multiset: bool = True) -> float:
    """The highest token F1 of `answer` against any of `golds`; 0 without golds."""
    said = _bag(tokens(answer), multiset)
    return max((_f1(said, _bag(tokens(gold), multiset)) for gold in golds), default=0.0)


def path_score(retrieved: Sequence[str], gold_passages: Sequence[str], *, multiset: bool = True) -> float:
    """P, PathRouter's Eq. 2: the token F1 of everything retrieved, taken as one text, against each gold passage; their mean.

    0 when nothing was retrieved. It falls as more is retrieved beside the gold: see `coverage` for recall. Raises ValueError
    without gold passages: what is not known cannot be scored.
    """
    if not gold_passages:
        raise ValueError("P needs at least one gold passage")
    union = _bag([token for text in retrieved for token in tokens(text)], multiset)
    if not union:
        return 0.0
    return sum(_f1(union, _bag(tokens(gold), multiset)) for gold in gold_passages) / len(gold_passages)


def coverage(retrieved: Sequence[str], gold_passages: Sequence[str]) -> float:
    """The share of a gold passage's distinct tokens found in anything retrieved; the mean over gold passages, in [0, 1]."""
    if not gold_passages:
        raise ValueError("coverage needs at least one gold passage")
    found = {token for text in retrieved for token in tokens(text)}
    shares = []
    for gold in gold_passages:
        wanted = set(tokens(gold))
        shares.append(len(wanted & found) / len(wanted) if wanted else 1.0)
    return sum(shares) / len(shares)


def unsupported_answer_ratio(answer: str, retrieved: Sequence[str]) -> float:
    """UAR: the share of the answer's tokens that are in nothing retrieved, in [0, 1]; 0 for an answer without tokens."""
    said = tokens(answer)
    if not said:
        return 0.0
    found = {token for text in retrieved for token in tokens(text)}
    return sum(token not in found for token in said) / len(said)


def _bag(words: list[str], multiset: bool) -> Counter[str]:
    return Counter(words) if multiset else Counter(set(words))


def _f1(said: Counter[str], gold: Counter[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    shared = sum((said & gold).values())
    return 2 * shared / (said.total() + gold.total())
