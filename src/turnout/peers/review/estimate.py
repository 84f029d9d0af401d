"""What a review would do and cost, before anything is spent."""

from collections.abc import Mapping

from msgspec import Struct

from turnout.peers.review import prompt
from turnout.peers.review.journal import Entry
from turnout.peers.review.plan import Plan
from turnout.pricing.tokens import estimate_tokens

TYPICAL_SCORE_TOKENS = 80
TYPICAL_ANSWER_TOKENS = 400


class Share(Struct):
    """One model's part, in calls still to be made. `usd`: likely; `usd_at_most`: when every reply is as long as it may be; None =
    no price is known. `answers_there`, `scores_there`: recorded or in the journal."""

    model: str
    answers: int = 0
    answers_there: int = 0
    scores: int = 0
    scores_there: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_at_most: int = 0
    usd: float | None = 0.0
    usd_at_most: float | None = 0.0


class Estimate(Struct, frozen=True):
    """The whole: questions by type, calls to be made, tokens and money, then each model's part. `unpriced`: models without a
    price, whose cost is in no sum. Second questions, which a judge gets whose reply could not be read, are not in it."""

    questions: dict[str, int]
    calls: int
    calls_there: int
    tokens: int
    tokens_at_most: int
    usd: float
    usd_at_most: float
    unpriced: list[str]
    models: list[Share]


def estimate(plan: Plan, entries: Mapping[str, Entry], questions: dict[str, int]) -> Estimate:
    """What is still to be done for a plan. Lengths of answers that are not there yet are assumed."""
    shares = [Share(member.name) for member in plan.members]
    for question, author in plan.authors():
        share = shares[author]
        call = plan.answer_call(question, author, entries)
        if call is None:
            share.answers_there += plan.answer(question, author, entries) is not None
            continue
        share.answers += 1
        tokens = estimate_tokens(plan.questions[question].text)
        _add(plan, share, tokens, tokens, TYPICAL_ANSWER_TOKENS, plan.sampling.answer_tokens)
    _scores(plan, entries, shares)
    known = [share for share in shares if share.usd is not None]
    return Estimate(
        questions=questions,
        calls=sum(share.answers + share.scores for share in shares),
        calls_there=sum(share.answers_there + share.scores_there for share in shares),
        tokens=sum(share.input_tokens + share.output_tokens for share in shares),
        tokens_at_most=sum(share.tokens_at_most for share in shares),
        usd=sum(share.usd or 0.0 for share in known),
        usd_at_most=sum(share.usd_at_most or 0.0 for share in known),
        unpriced=[share.model for share in shares if share.usd is None],
        models=shares,
    )


def _scores(plan: Plan, entries: Mapping[str, Entry], shares: list[Share]) -> None:
    rubric = estimate_tokens(prompt.RUBRIC) + estimate_tokens(str(prompt.FIRST.schema))
    bought: set[str] = set()
    for cell in plan.cells():
        share = shares[cell.judge]
        answer = plan.answer(cell.question, cell.author, entries)
        asked = plan.questions[cell.question]
        if answer is not None:
            call = plan.score_call(cell, entries)
            if call is None or call.key in bought:
                share.scores_there += call is None
                continue
            bought.add(call.key)
            tokens = most = estimate_tokens(call.text) + rubric
        elif plan.answer_call(cell.question, cell.author, entries) is None:
            continue  # there will be none
        else:
            before = rubric + estimate_tokens(asked.text) + estimate_tokens(asked.reference)
            tokens, most = before + TYPICAL_ANSWER_TOKENS, before + plan.sampling.answer_tokens
        share.scores += 1
        _add(plan, share, tokens, most, TYPICAL_SCORE_TOKENS, plan.sampling.score_tokens)


def _add(plan: Plan, share: Share, tokens: int, most: int, output: int, output_most: int) -> None:
    output = min(output, output_most)
    share.input_tokens += tokens
    share.output_tokens += output
    share.tokens_at_most += most + output_most
    usd, usd_most = plan.priced(share.model, tokens, output), plan.priced(share.model, most, output_most)
    if usd is None or usd_most is None or share.usd is None or share.usd_at_most is None:
        share.usd = share.usd_at_most = None
    else:
        share.usd += usd
        share.usd_at_most += usd_most
