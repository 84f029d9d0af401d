"""What `turnout peers review` prints for people."""

from typing import TYPE_CHECKING

from turnout.cli import output

if TYPE_CHECKING:
    from turnout.peers.review.estimate import Estimate
    from turnout.peers.review.scores import Scores

SHOWN = 6
"""Pairs without a mean that are printed."""


def print_plan(found: "Estimate") -> None:
    """What a review would do and cost."""
    output.emit_text(", ".join(f"{kind}: {output.count(n, 'question')}" for kind, n in found.questions.items()))
    table = output.table("model", "answers", "there", "scores", "there", "tokens", "likely", "at most")
    for one in found.models:
        table.row(
            one.model,
            f"{one.answers:,}",
            f"{one.answers_there:,}",
            f"{one.scores:,}",
            f"{one.scores_there:,}",
            f"{one.input_tokens + one.output_tokens:,}",
            output.usd(one.usd, "unpriced"),
            output.usd(one.usd_at_most, "unpriced"),
        )
    table.print()
    output.emit_text(
        f"{found.calls:,} calls to make, {found.calls_there:,} there; about {found.tokens:,} tokens (at most "
        f"{found.tokens_at_most:,}); {output.usd(found.usd)} likely, {output.usd(found.usd_at_most)} at most"
    )
    if found.unpriced:
        output.emit_text(f"no price is known for {', '.join(found.unpriced)}: their cost is in no sum")


def print_scores(found: "Scores") -> None:
    """The matrix, what it cost, and what is missing in it."""
    table = output.table("judge", *found.models, "could not be read")
    for judge, given in found.scores.items():
        cells = ["" if author == judge else _mean(mean) for author, mean in given.items()]
        count = found.judges[judge]
        table.row(judge, *cells, f"{count.parse_failures} of {count.asked}")
    table.print()
    spent = found.spent
    output.emit_text(
        f"{output.count(len(found.questions), 'question')}, {len(found.dropped)} more dropped (all scores alike); "
        f"{spent.calls:,} calls, {spent.input_tokens + spent.output_tokens:,} tokens, {output.usd(spent.usd)}"
        + (f" and {spent.unpriced_calls:,} calls without a price" if spent.unpriced_calls else "")
    )
    for one in found.thin[:SHOWN]:
        output.emit_text(f"left out: {one.judge} scored {one.author} on {one.count} of {one.planned} questions only")
    if len(found.thin) > SHOWN:
        output.emit_text(f"left out: {len(found.thin) - SHOWN} more pairs, which --json lists as `thin`")


def _mean(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.2f}"


def incomplete(found: "Scores") -> str:
    """Why a review is not whole, and what to do."""
    why = f"the next call might exceed the limit on {found.stopped}" if found.stopped else "some calls failed"
    missing = sum(one.status not in ("parse_error", "invalid_response", "no_answer") for one in found.failures)
    return f"incomplete: {why}, {output.count(missing, 'score')} missing; the same command with more goes on"
