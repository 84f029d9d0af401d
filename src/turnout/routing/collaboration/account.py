"""The account of a chain: every hop, vote, reason, draw and cost, as it is recorded, and what is said of how it ended."""

from typing import Any

from turnout.routing.collaboration.chain import Ended, Hop
from turnout.routing.collaboration.conduct import Conduct

WORDS = {
    "converged": "all who voted approved of it",
    "hop_limit": "the hops were used up without agreement",
    "no_fresh_disapprover": "all who disapprove have written an answer already",
    "no_voters": "nobody could vote on it",
    "unverified": "too few votes came",
    "refiner_failed": "nobody who disapproves could improve it",
    "budget": "a cap on what a request may take was reached",
    "deadline": "the time was used up",
    "failed": "no model answered",
}


def consensus(ended: Ended) -> str:
    """How far models agreed on the answer, in a line that a header can hold."""
    if ended.chosen < 0:
        return ended.status
    hop = ended.hops[ended.chosen]
    return (
        f"{ended.status}; approve={len(hop.approvers)}; disapprove={len(hop.disapprovers)}; "
        f"abstain={len(hop.abstainers)}; hops={ended.generations - 1}"
    )


def sentence(ended: Ended, conduct: Conduct) -> str:
    """How it ended, for people. Only what was approved of by somebody is called agreed on."""
    hop = ended.hops[ended.chosen]
    route = " -> ".join(one.author for one in ended.hops)
    said = f"{len(hop.approvers)} of {len(hop.ballots)} approve"
    if hop.abstainers:
        said += f", {', '.join(hop.abstainers)} did not vote"
    if ended.agreed:
        what = "agreed on" if not hop.disapprovers else "agreed on by enough"
        return f"the answer of {hop.author} was {what}: {said} ({route})"
    if ended.status == "converged":
        return f"the answer of {hop.author} stands, and nobody was to vote on it: the graph names nobody ({route})"
    why = WORDS[ended.status] + (f" ({conduct.halted})" if conduct.halted else "")
    fault = f"; {hop.response.fault}" if hop.response.fault else ""
    return f"not agreed on: {why}. The answer of {hop.author} is returned, {said} ({route}){fault}"


def account(ended: Ended, conduct: Conduct) -> dict[str, Any]:
    """Everything that happened, as JSON values; what is empty is left out."""
    taken = conduct.taken
    told: dict[str, Any] = {
        "status": ended.status,
        "agreed": ended.agreed,
        "chosen": ended.chosen,
        "supporters": list(ended.supporters),
        "hops": [_hop(at, hop, conduct) for at, hop in enumerate(ended.hops)],
        "taken": {"calls": taken.calls, "tokens": taken.tokens, "usd": round(taken.usd, 9), "unpriced": taken.unpriced},
    }
    if conduct.halted:
        told["halted"] = conduct.halted
    if conduct.failures:
        told["failed"] = {model: failure.kind for model, failure in conduct.failures.items()}
    return told


def _hop(at: int, hop: Hop, conduct: Conduct) -> dict[str, Any]:
    written = conduct.written[at]
    told: dict[str, Any] = {
        "author": hop.author,
        "target": written.target,
        "response": hop.response.key,
        "alike": hop.response.alike,
        "fault": hop.response.fault,
        "tokens": written.tokens,
        "usd": written.usd,
        "votes": [],
        "candidates": list(hop.candidates),
        "refiners": list(hop.refiners),
        "drawn": list(hop.drawn) if any(drawn is not None for drawn in hop.drawn) else None,
    }
    for ballot in hop.ballots:
        vote: dict[str, Any] = {"voter": ballot.voter, "rung": ballot.rung, "approve": ballot.vote}
        if (target := conduct.how.targets[ballot.voter]) != ballot.voter:
            vote["target"] = target
        heard = conduct.heard.get((str(hop.response.key), ballot.voter))
        if ballot.substitute:
            vote["substitute"] = True
        if ballot.copied:
            vote["copied"] = True
        elif heard is not None:
            vote |= {"verdict_reason": heard.reason, "severity": heard.severity, "asked": heard.asked}
            vote |= {"tokens": heard.tokens, "usd": heard.usd, "failure": heard.failure}
        told["votes"].append({key: value for key, value in vote.items() if value != "" or key == "approve"})
    return {key: value for key, value in told.items() if value not in ("", [], None)}
