"""Text -> sentences. Pure."""

import re

_ENDS = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)\]]*\s+(?=[\"'\u201c\u2018(\[]*[A-Z0-9À-ÞĀ-Ž])|\n\s*\n+")
"""Where a sentence may end: its mark, closing quotes, a space, and something that may begin another."""

_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:[A-Z]|(?:[A-Za-z]\.)+[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Lt|Capt|Sgt|Gov|Sen|Rep|Hon|St|Mt|Ft|Jr|Sr|"
    r"No|Nos|vol|vols|pp?|ed|eds|cf|vs|ca|c|b|d|r|fl|approx|est|etc|e\.g|i\.e|al|Inc|Ltd|Co|Corp|Bros|dept|Univ|Jan|Feb|Mar|"
    r"Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$"
)
"""A beginning of a sentence that ends in an abbreviation or an initial, not in its own full stop."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, with white space folded. A full stop behind an abbreviation or an initial ends none."""
    found: list[str] = []
    start = 0
    for end in _ENDS.finditer(text):
        if "\n" not in end[0].strip(" ") and _ABBREVIATION.search(text[max(start, end.start() - 16) : end.start()]):
            continue
        _add(found, text[start : end.end()])
        start = end.end()
    _add(found, text[start:])
    return found


def _add(found: list[str], text: str) -> None:
    folded = " ".join(text.split())
    if any(character.isalnum() for character in folded):
        found.append(folded)
