"""What a client is told: the answer with the facts it rests on, or that there is none and why. Pure."""

from typing import Any, Literal, TypeAlias

from turnout.conversation import Citation, Format, Text
from turnout.routing.retrieval.agent import Trajectory
from turnout.routing.retrieval.evidence import Evidence
from turnout.routing.retrieval.facts import Fact

Status: TypeAlias = Literal["answered", "unsupported", "unsearched", "turns", "cut", "deadline", "empty"]
"""How a question ended for the client. `answered`: by facts that are cited. `unsupported`: no fact that was shown names the
answer. `unsearched`: no fact was shown before it. The others are no answer: `turns` were used up, a turn was `cut` for want of
tokens, the time was up (`deadline`), the answer was `empty`."""

UNANSWERED: dict[Status, str] = {
    "turns": "all {turns} turns were used up",
    "cut": "the model wrote more than a turn may hold",
    "deadline": "the time for it was up",
    "empty": "the model gave an empty answer",
}
"""Why there is no answer, for people."""


def status_of(trajectory: Trajectory, evidence: Evidence) -> Status:
    """How a trajectory ended for the client; one whose model failed has failed for want of time."""
    match trajectory.ended:
        case "turns" | "cut":
            return trajectory.ended
        case "failed":
            return "deadline"
    if not trajectory.answer:
        return "empty"
    return evidence.support if evidence.support in ("unsupported", "unsearched") else "answered"


def spoken(trajectory: Trajectory, evidence: Evidence, cite: bool, form: Format | None) -> Text:
    """What the client gets. `cite`: with the facts as footnotes, and as citations where its format `form` has them."""
    status = status_of(trajectory, evidence)
    if status in UNANSWERED:
        return Text(f"No answer was found: {UNANSWERED[status].format(turns=len(trajectory.steps))}.")
    answer = trajectory.answer or ""
    if not cite:
        return Text(answer)
    if status == "unsearched":
        return Text(f"{answer}\n\nNothing was found before this answer was given.")
    marks = "".join(f"[{number}]" for number in range(1, len(evidence.facts) + 1))
    notes = "\n".join(f"[{number}] {_note(fact)}" for number, fact in enumerate(evidence.facts, 1))
    if status == "unsupported":
        return Text(f"{answer}\n\nNone of the facts that were found names this answer. They include:\n{notes}")
    citations = [
        citation
        for number, fact in enumerate(evidence.facts)
        for source in fact.sources
        if (citation := _citation(form, source, fact, number, len(answer) + 1)) is not None
    ]
    return Text(f"{answer} {marks}\n\n{notes}", tuple(citations))


def _note(fact: Fact) -> str:
    return f"{', '.join(fact.sources) or fact.id}: {' '.join(fact.text.split())}"


def _citation(form: Format | None, source: str, fact: Fact, number: int, at: int) -> Citation | None:
    """A source as the format of the client cites one; None where it has no such form."""
    extra: dict[str, Any]
    if form == "anthropic_messages":
        extra = {
            "type": "search_result_location",
            "cited_text": fact.text,
            "source": source,
            "title": None,
            "search_result_index": number,
            "start_block_index": 0,
            "end_block_index": 1,
        }
        return Citation("", extra=extra)
    if source.startswith(("https://", "http://")):
        return Citation(source, source, 0, at - 1)
    if form == "openai_responses":
        return Citation("", extra={"type": "file_citation", "file_id": source, "filename": source, "index": at})
    return None
