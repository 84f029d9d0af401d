"""Which token of a trajectory is what: reasoning, query, observation, answer. Pure; exact for any tokenizer.

A token has the role of the first character it completes. Byte-level tokenizers may split one character over several tokens:
those that complete none belong to the character they begin.
"""

from collections.abc import Callable, Sequence

from turnout.routing.retrieval.protocol import Role, spans

Decode = Callable[[Sequence[int]], str]
"""Token ids -> text, special tokens kept, nothing cleaned up."""

_UNFINISHED = "\ufffd"


def character_ends(ids: Sequence[int], decode: Decode) -> list[int]:
    """How many whole characters of the text of `ids` there are after each token."""
    pieces = [decode([id]) for id in ids]
    if "".join(pieces) == decode(ids) and not any(_UNFINISHED in piece for piece in pieces):
        ends, at = [], 0
        for piece in pieces:
            at += len(piece)
            ends.append(at)
        return ends
    # Some tokens are parts of a character, or are written differently at the beginning of a text: prefixes tell.
    return [len(decode(ids[: i + 1]).rstrip(_UNFINISHED)) for i in range(len(ids))]


def token_roles(ids: Sequence[int], decode: Decode) -> list[Role]:
    """The role of each token of one turn of the model."""
    stretches = spans(decode(ids))
    ends = character_ends(ids, decode)
    roles: list[Role] = []
    at = 0  # of stretches
    before = 0  # characters complete before this token
    for end in ends:
        # The first character that this token completes, or, where it completes none, begins.
        while at < len(stretches) - 1 and stretches[at][1] <= before:
            at += 1
        # What adds no text at the end, such as an end token, is none of what was said.
        roles.append(stretches[at][2] if stretches and before < stretches[-1][1] else Role.OTHER)
        before = max(before, end)
    return roles
