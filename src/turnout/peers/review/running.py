"""Does a review: the answers that are missing, then their scores, as many calls at once as each upstream bears.

Questions are done some at a time, so that a review which ends early has whole questions to show and not answers alone.
"""

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec
from msgspec import Struct

from turnout.conversation import Reply
from turnout.peers.review.design import Cell
from turnout.peers.review.journal import Entry
from turnout.peers.review.plan import Call, Plan
from turnout.peers.review.prompt import Score
from turnout.peers.review.scores import Scores, gather
from turnout.routing.core import Ask, Asking, Failure, TargetName
from turnout.routing.judging import Answered, Unanswered, consult, failed, kept
from turnout.steps import Run
from turnout.upstream.buying.budget import Budget, Held, Limit, Limits
from turnout.upstream.buying.calling import Called, Caller
from turnout.upstream.buying.journal import Journal
from turnout.upstream.credentials import Redactor
from turnout.upstream.drive import drive
from turnout.upstream.models import Models

BLOCK = 20
"""Questions that are answered before their answers are scored."""
GIVE_UP_AFTER = 3
"""Calls of a target that fail in a row, each after all its tries, before the rest of its calls are left out."""

Told = Callable[[str, int, int, float], object]
"""Told what is being done, how much of it is done, of how much, and what the review has cost so far, USD."""
Next = Callable[[], Call | None]
"""Gives the next call of an answer or a cell; None when there is nothing more to ask."""


class Concurrency(Struct, frozen=True):
    """Calls in flight at once: in all, and at one upstream."""

    total: int = 16
    per_upstream: int = 8


async def review(
    plan: Plan,
    journal: Journal[Entry],
    models: Models,
    secrets: Iterable[str],
    limits: Limits,
    at_once: Concurrency,
    told: Told,
) -> Scores:
    """Make every call of the plan that the journal does not hold, as far as the limits allow, and give the scores.

    `models`: the targets, opened; they are closed at the end. `secrets`: what must not show in a message. Interrupted, it leaves
    the journal whole; the same review goes on where it was."""
    budget = Budget(limits, time.monotonic, journal.spent)
    work = _Work(plan, journal, Caller(models, Redactor(secrets), budget), budget, at_once, told)
    try:
        await work.do()
    finally:
        await models.close()
    return gather(plan, journal.entries, journal.spent, journal.began, work.stopped, work.left_out)


class _Work:
    def __init__(
        self, plan: Plan, journal: Journal[Entry], caller: Caller, budget: Budget, at_once: Concurrency, told: Told
    ) -> None:
        self.plan = plan
        self.stopped: Limit = ""
        self.left_out: dict[str, str] = {}
        self._journal = journal
        self._caller = caller
        self._budget = budget
        self._at_once = at_once
        self._told = told
        self._failed_in_a_row: Counter[str] = Counter()
        self._tried: set[str] = set()
        self._done: Counter[str] = Counter()
        self._of: dict[str, int] = {}

    async def do(self) -> None:
        """All of the plan, as far as the limits allow."""
        plan, entries = self.plan, self._journal.entries
        cells: dict[int, list[Cell]] = {}
        for cell in plan.cells():
            cells.setdefault(cell.question, []).append(cell)
        self._of = {"answers": len(cells) * len(plan.members), "scores": sum(map(len, cells.values()))}
        order = list(cells)
        for at in range(0, len(order), BLOCK):
            questions = order[at : at + BLOCK]
            authors = itertools.product(questions, range(len(plan.members)))
            await self._through("answers", [partial(plan.answer_call, q, author, entries) for q, author in authors])
            if not self.stopped:
                await self._through("scores", self._scores(cell for q in questions for cell in cells[q]))
            if self.stopped:
                return

    def _scores(self, cells: Iterable[Cell]) -> list[Next]:
        """The next call of each cell; those that one judgement serves, since answers are the same, wait for it."""
        plan, entries = self.plan, self._journal.entries
        first: dict[str, Cell] = {}
        for cell in cells:
            answer = plan.answer(cell.question, cell.author, entries)
            key = "" if answer is None else plan.score_key(cell, answer, 0)
            if key and key not in first:
                first[key] = cell
            else:
                self._done["scores"] += 1
        return [partial(plan.score_call, cell, entries) for cell in first.values()]

    async def _through(self, what: str, items: list[Next]) -> None:
        """Make the calls of all items. Sets `stopped` when a limit ends it."""
        waiting: dict[str, deque[tuple[int, Next]]] = {}
        for index, item in enumerate(items):
            call = item()
            if call is None:
                self._done[what] += 1
            else:
                waiting.setdefault(call.member.upstream, deque()).append((index, item))
        running: dict[asyncio.Task[None], tuple[str, int, Next]] = {}
        busy: Counter[str] = Counter()
        self._tell(what)
        try:
            while True:
                refused = self._dispatch(waiting, running, busy)
                if not running:
                    self.stopped = refused
                    return
                over, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in over:
                    upstream, index, item = running.pop(task)
                    busy[upstream] -= 1
                    task.result()
                    if self._more(item) is not None:
                        waiting[upstream].appendleft((index, item))
                    else:
                        self._done[what] += 1
                self._tell(what)
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.gather(*running, return_exceptions=True)

    def _tell(self, what: str) -> None:
        self._told(what, self._done[what], self._of[what], self._budget.usd)

    def _dispatch(
        self,
        waiting: Mapping[str, deque[tuple[int, Next]]],
        running: dict["asyncio.Task[None]", tuple[str, int, Next]],
        busy: Counter[str],
    ) -> Limit:
        """Start calls while there is room, in order. Gives the limit that stopped it."""
        while len(running) < self._at_once.total:
            free = [
                (queue[0], name) for name, queue in waiting.items() if queue and busy[name] < self._at_once.per_upstream
            ]
            if not free:
                break
            (index, item), upstream = min(free, key=lambda one: one[0][0])
            call = self._more(item)
            if call is None:
                waiting[upstream].popleft()
                continue
            call = msgspec.structs.replace(call, size=self._caller.sized(call.member.name, call.size))
            refused = self._budget.refuses(call.size, self._caller.expected_s(call.member.name))
            if refused:
                return refused
            waiting[upstream].popleft()
            held = self._budget.hold(call.size)
            self._tried.add(call.key)
            busy[upstream] += 1
            running[asyncio.create_task(self._make(call, held))] = (upstream, index, item)
        return ""

    def _more(self, item: Next) -> Call | None:
        """The next call of an item that this run has not made in vain and whose target is not given up."""
        call = item()
        if call is None or call.key in self._tried or call.member.name in self.left_out:
            return None
        return call

    async def _make(self, call: Call, held: Held) -> None:
        """Make a call and journal it: with no other work between its end and its line."""
        entry = await (self._answer(call, held) if call.asked is None else self._score(call, held))
        if not entry.tries:
            return  # its time had come before it could be sent
        self._journal.add(entry)
        name = call.member.name
        if entry.finished:
            self._failed_in_a_row[name] = 0
            return
        self._failed_in_a_row[name] += 1
        if self._failed_in_a_row[name] >= GIVE_UP_AFTER and entry.status != "budget":
            self.left_out.setdefault(name, entry.message)

    async def _answer(self, call: Call, held: Held) -> Entry:
        settings, within_s = self.plan.answer_settings(), self.plan.sampling.within_s
        ask = Ask(TargetName(call.member.name), call.question.conversation, "answer", within_s, settings=settings)
        called = await self._caller.call(ask, held)
        outcome = called.outcome
        if not isinstance(outcome, Reply):
            return _failed(call, called, outcome)
        if not outcome.text.strip():
            return _entry(call, called, status="invalid_response", message=f"no text came (stop: {outcome.stop})")
        return _entry(call, called, text=outcome.text, cut=outcome.stop == "length")

    async def _score(self, call: Call, held: Held) -> Entry:
        assert call.asked is not None
        made: list[Called] = []

        async def perform(ask: Ask) -> object:
            made.append(await self._caller.call(ask, held))
            return made[0].outcome

        asking: Asking[Answered[Score] | Unanswered] = consult(
            TargetName(call.member.name), call.asked, call.text, self.plan.judging
        )
        found: Answered[Score] | Unanswered = await drive(Run(asking), {Ask: perform})
        if isinstance(made[0].outcome, Failure):
            return _failed(call, made[0], made[0].outcome)
        if isinstance(found, Unanswered):
            return _entry(call, made[0], status=found.reason, message=found.message)
        grade = found.value
        flags = tuple(kept(flag) for flag in grade.flags[:8])
        return _entry(call, made[0], score=grade.score, reason=kept(grade.reason), flags=flags)


def _failed(call: Call, called: Called, failure: Failure) -> Entry:
    """The entry of a call without a reply. A server that will never take the request has settled it; all else may pass."""
    if failure.kind in ("refused", "overflow"):
        return _entry(call, called, status="invalid_response", message=f"{failure.kind}: {failure.message}"[:500])
    why = failed(failure)
    reason = "transport" if why.reason == "invalid_response" else why.reason
    return _entry(call, called, status=reason, message=why.message)


def _entry(call: Call, called: Called, **found: object) -> Entry:
    served = called.outcome.model if isinstance(called.outcome, Reply) else ""
    return Entry(
        key=call.key,
        kind=call.kind,
        question=call.question.id,
        model=call.member.name,
        author=call.author,
        served=served,
        at=round(called.at, 3),
        took_s=round(called.took_s, 3),
        tries=called.tries,
        input_tokens=called.input_tokens,
        output_tokens=called.output_tokens,
        usd=called.usd,
        estimated=called.estimated,
        **found,  # type: ignore[arg-type]
    )
