"""A collaboration as `turnout why` tells it: hop by hop, who wrote, who voted how and why, who was drawn, what it took."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.cli import output

if TYPE_CHECKING:
    from rich.tree import Tree

TOLD = frozenset(("hops", "taken", "supporters", "chosen", "status", "agreed", "failed", "halted"))
"""Names of values that are told here, so that they need not be told again."""


def chained(tree: "Tree", values: Mapping[str, Any], consensus: str) -> None:
    """Add what happened as branches."""
    from rich.markup import escape

    branch = tree.add(escape(f"consensus: {consensus}"))
    hops = values.get("hops", ())
    for at, hop in enumerate(hops):
        mark = "  <- returned" if at == values.get("chosen") else ""
        line = branch.add(escape(f"hop {at}: {hop['author']} ({hop['target']}) writes {_took(hop)}{mark}"))
        if hop.get("fault"):
            line.add(escape(f"disapproved of without a vote: {hop['fault']}"))
        for vote in hop.get("votes", ()):
            line.add(escape(_vote(vote)))
        refiners = hop.get("refiners", ())
        drawn = hop.get("drawn") or [None] * len(refiners)
        for place, refiner in enumerate(refiners):
            how = "" if drawn[place] is None else f", drawn by {drawn[place]:.3f} of {', '.join(hop['candidates'])}"
            came = place == len(refiners) - 1 and at + 1 < len(hops)
            line.add(escape(f"{refiner} {'improves' if came else 'fails to improve'} it{how}"))
    if supporters := values.get("supporters"):
        branch.add(escape(f"supporters of the answer: {', '.join(supporters)}"))
    for model, kind in values.get("failed", {}).items():
        branch.add(escape(f"{model} gave no answer ({kind})"))
    if taken := values.get("taken"):
        unpriced = f", {taken['unpriced']} calls unpriced" if taken.get("unpriced") else ""
        halted = f"; ended by the cap on {values['halted']}" if values.get("halted") else ""
        branch.add(f"taken: {taken['calls']} calls, {taken['tokens']} tokens, ${taken['usd']:.6f}{unpriced}{halted}")


def _vote(vote: Mapping[str, Any]) -> str:
    said = {True: "approves", False: "disapproves", None: "abstains"}[vote.get("approve")]
    notes = [f"rung {vote['rung']}"]
    notes += ["stands in"] if vote.get("substitute") else []
    notes += ["as before on the same text"] if vote.get("copied") else []
    notes += [f"asked {vote['asked']} times"] if vote.get("asked", 1) > 1 else []
    notes += [vote["failure"]] if vote.get("failure") else []
    notes += [vote["severity"]] if vote.get("severity") else []
    reason = f": {vote['verdict_reason']}" if vote.get("verdict_reason") else ""
    return f"{vote['voter']} {said} ({', '.join(notes)}){reason}"


def _took(hop: Mapping[str, Any]) -> str:
    tokens = "tokens unknown" if hop.get("tokens") is None else f"{hop['tokens']} tokens"
    return f"[{hop['response']}], {tokens}, {output.usd(hop.get('usd'), 'unpriced')}"
