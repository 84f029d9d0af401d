"""Marks around texts of others, so that a model can tell them from what it is told."""

import hashlib

import msgspec


def mark(*texts: str) -> str:
    """A word that none of the texts holds, always the same for the same texts."""
    turn = 0
    while True:
        found = hashlib.sha256(
            msgspec.json.encode([turn, *(t.encode("utf-8", "surrogatepass") for t in texts)])
        ).hexdigest()[:12]
        if not any(found in text for text in texts):
            return found
        turn += 1
