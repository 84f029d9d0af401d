"""Asks a model for the facts of documents: many calls at once, within a budget, none bought twice."""

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from turnout.conversation import Reply
from turnout.knowledge import rules
from turnout.knowledge.corpus import BadDocument
from turnout.knowledge.extraction import prompt
from turnout.knowledge.extraction.journal import Entry
from turnout.knowledge.statement import Document, Statement
from turnout.pricing import Rates
from turnout.pricing.tokens import estimate_tokens
from turnout.routing.core import Failure, TargetName
from turnout.routing.judging import FailOpen, Judging, Question, Unanswered, failed, question_of, read
from turnout.upstream.buying.budget import Budget, Held, Limit, Limits, Size, size
from turnout.upstream.buying.calling import Called, Caller
from turnout.upstream.buying.journal import Journal
from turnout.upstream.credentials import Redactor
from turnout.upstream.models import Models

GIVE_UP_AFTER = 3
"""Calls that fail in a row, each after all its tries, before no more are made."""
NOT_ASKED = "not extracted"
"""The reason that a build has for a document that was not asked about, or not to the end."""

Told = Callable[[str, int, int, float], object]
"""Told what is being done, how much of it is done, of how much, and what it has cost so far, USD."""


class Asking(Struct, frozen=True):
    """How the model is asked. `piece_tokens`: of a passage shown at once. `output_tokens`: the most it may write. `temperature`
    None: its own. `output`: as of Judging. `within_s`: seconds after which a call has failed. `at_once`: calls in flight."""

    piece_tokens: int = 1200
    output_tokens: int = 4096
    temperature: float | None = 0.0
    output: Literal["json_schema", "json_object", "text"] = "json_schema"
    within_s: float = 120.0
    at_once: int = 8


class _Piece(Struct, frozen=True):
    """A part of a passage that is shown at once."""

    passage: str
    title: str
    text: str


class ByModel:
    """The extractor that asks a model. `name`: changes with the model, the prompt and how it is asked.

    `stopped`: the limit that ended it, "" for none. `left_out`: why no more calls were made, "" where all were. `unreadable`:
    pieces whose reply could not be read, twice. Use it as a context manager; it is for one thread.
    """

    def __init__(
        self,
        target: TargetName,
        revision: str,
        open_models: Callable[[], Models],
        journal: Journal[Entry],
        limits: Limits,
        asking: Asking,
        rates: Rates | None,
        secrets: Sequence[str] = (),
        told: Told = lambda what, done, of, usd: None,
    ) -> None:
        shaping = [
            prompt.DIGEST,
            revision,
            asking.piece_tokens,
            asking.output_tokens,
            asking.temperature,
            asking.output,
        ]
        self._shaping = _digest(shaping)
        self.name = f"model-{self._shaping[:16]}"
        self.stopped: Limit = ""
        self.left_out = ""
        self.unreadable = 0
        self.budget = Budget(limits, time.monotonic, journal.spent)
        self._target = target
        self._asking = asking
        self._judging = Judging(asking.within_s, max(asking.output_tokens, 16), asking.temperature, "", asking.output)
        self._journal = journal
        self._rates = rates
        self._told = told
        self._failed_in_a_row = 0
        self._done = self._of = 0
        self._redactor = Redactor(secrets)
        self._open = open_models
        self._runner = asyncio.Runner()
        self._models: Models | None = None
        self._caller: Caller | None = None

    def __enter__(self) -> "ByModel":
        return self

    def __exit__(self, *_: object) -> None:
        if self._models is not None:
            self._runner.run(self._models.close())
        self._runner.close()

    def extract(self, documents: Sequence[Document]) -> list[list[Statement] | BadDocument]:
        """What the model takes from each document, and the triples that its corpus gives. One whose replies are missing, for
        want of budget or of a server, is left for another build."""
        cut = [self._cut(document) for document in documents]
        wanted = {self._key(piece, 0): piece for parts in cut for piece in parts if self._next(piece) is not None}
        if wanted:
            self._runner.run(self._through(list(wanted.values())))
        return [self._found(document, parts) for document, parts in zip(documents, cut, strict=True)]

    def _cut(self, document: Document) -> list[_Piece]:
        passage = document.passage
        texts = prompt.pieces(passage.text, self._asking.piece_tokens)
        return [_Piece(passage.id, passage.title, text) for text in texts]

    def _key(self, piece: _Piece, attempt: int) -> str:
        return _digest([self._shaping, piece.title, piece.text, attempt])

    def _next(self, piece: _Piece) -> int | None:
        """Which attempt is to be made: the first, the second where the first could not be read, or none."""
        for attempt in (0, 1):
            entry = self._journal.entries.get(self._key(piece, attempt))
            if entry is None or not entry.finished:
                return attempt
            if entry.status == "ok":
                return None
        return None

    def _found(self, document: Document, parts: list[_Piece]) -> list[Statement] | BadDocument:
        found, problems = rules.given(document), []
        for piece in parts:
            if self._next(piece) is not None:
                why = f"the limit on {self.stopped}" if self.stopped else self.left_out or "the call failed"
                return BadDocument(document.passage.id, f"{NOT_ASKED}: {why}")
            entries = [self._journal.entries.get(self._key(piece, attempt)) for attempt in (0, 1)]
            facts = next((entry.facts for entry in entries if entry is not None and entry.facts is not None), None)
            if facts is None:
                problems.append(next(entry.message for entry in reversed(entries) if entry is not None))
            else:
                found += prompt.statements(facts, piece.title, piece.text)
        self.unreadable += len(problems)
        if problems and len(problems) == len(parts):
            return BadDocument(document.passage.id, f"no reply that can be read: {problems[0]}")
        return list({statement.text: statement for statement in reversed(found)}.values())[::-1]

    async def _through(self, pieces: list[_Piece]) -> None:
        """Make the calls that are missing, as far as the limits allow."""
        if self._caller is None:
            self._models = self._open()
            self._caller = Caller(self._models, self._redactor, self.budget)
        caller = self._caller
        waiting = deque(pieces)
        running: set[asyncio.Task[_Piece | None]] = set()
        self._of += len(pieces)
        try:
            while True:
                refused: Limit = ""
                while waiting and len(running) < self._asking.at_once and not self.left_out:
                    piece = waiting[0]
                    most = caller.sized(self._target, self._size(piece))
                    refused = self.budget.refuses(most, caller.expected_s(self._target))
                    if refused:
                        break
                    running.add(asyncio.create_task(self._one(caller, waiting.popleft(), self.budget.hold(most))))
                if not running:
                    self.stopped = refused or self.stopped
                    return
                over, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in over:
                    if (again := task.result()) is not None:
                        waiting.appendleft(again)
                    else:
                        self._done += 1
                self._told("asking the model", self._done, self._of, self.budget.usd)
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.gather(*running, return_exceptions=True)

    def _size(self, piece: _Piece) -> Size:
        tokens = estimate_tokens(piece.title) + estimate_tokens(piece.text) + prompt.TOKENS
        return size(tokens, self._asking.output_tokens, self._rates)

    async def _one(self, caller: Caller, piece: _Piece, held: Held) -> _Piece | None:
        """Make a call and journal it, with no other work between its end and its line. Gives the piece back where it is to be
        asked about once more."""
        attempt = self._next(piece)
        assert attempt is not None
        question = prompt.FIRST if attempt == 0 else prompt.SECOND
        ask = question_of(self._target, question, prompt.shown(piece.title, piece.text), self._judging)
        called = await caller.call(ask, held)
        if not called.tries:
            return None  # its time had come before it could be sent
        entry = self._entry(piece, attempt, called, question)
        self._journal.add(entry)
        if entry.finished:
            self._failed_in_a_row = 0
            return piece if self._next(piece) is not None else None
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= GIVE_UP_AFTER and entry.status != "budget":
            self.left_out = self.left_out or entry.message
        return None

    def _entry(self, piece: _Piece, attempt: int, called: Called, question: Question[prompt.Facts]) -> Entry:
        outcome, facts, message = called.outcome, None, ""
        status: Literal["ok"] | FailOpen = "ok"
        found = read(outcome, question)
        if isinstance(outcome, Failure) and outcome.kind in ("refused", "overflow"):
            # A server that will never take the request has settled it; all else may pass.
            status, message = "invalid_response", f"{outcome.kind}: {outcome.message}"[:500]
        elif isinstance(outcome, Failure):
            why = failed(outcome)
            status, message = ("transport" if why.reason == "invalid_response" else why.reason), why.message
        elif isinstance(found, Unanswered):
            status, message = found.reason, found.message
        else:
            facts = found.value
        return Entry(
            key=self._key(piece, attempt),
            passage=piece.passage,
            model=self._target,
            facts=facts,
            status=status,
            message=message.replace("the judge", "the model"),
            served=outcome.model if isinstance(outcome, Reply) else "",
            at=round(called.at, 3),
            took_s=round(called.took_s, 3),
            tries=called.tries,
            input_tokens=called.input_tokens,
            output_tokens=called.output_tokens,
            usd=called.usd,
            estimated=called.estimated,
        )


def _digest(value: object) -> str:
    text = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(text).hexdigest()
