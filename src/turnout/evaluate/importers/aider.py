"""aider: `.aider.chat.history.md`. What the user said is behind `####`, what aider said behind `>`, the rest is the model's."""

import re
from collections.abc import Iterator

from turnout.conversation import Usage
from turnout.evaluate.importers.events import Ended, Event, Replied, Said, Who, assistant, result, user
from turnout.evaluate.importers.source import Source
from turnout.evaluate.importers.values import moment, name_of, number

STARTED = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_MODEL = re.compile(r"^(?:Main model|Models?): ([^\s,]+)")
_TOKENS = re.compile(
    r"Tokens: ([\d.,]+k?) sent,(?: ([\d.,]+k?) cache write,)?(?: ([\d.,]+k?) cache hit,)? ([\d.,]+k?) received"
)
_COST = re.compile(r"Cost: \$([\d.]+) (?:message|request|send)")
_MARKERS = re.compile(r"^>{5,9} (?:REPLACE|UPDATED)\b")
"""The end of an edit block: it begins like a quote and is the model's."""


class _Reading:
    """One file: what is being said, and by whom."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._who = Who(f"aider/{source.path.name}", program="aider", format="openai_chat")
        self._model = ""
        self._at: float | None = None
        self._by = ""
        self._lines: list[str] = []
        self._reply: list[str] = []
        self._heard: list[str] = []
        self._n = 0

    def take(self, line: str) -> Iterator[Event]:
        """The events that this line completes."""
        started = STARTED.match(line)
        if started:
            yield from self.close()
            yield Ended(self._who.session)
            self._at = moment(started[1].replace(" ", "T"))
            self._who = Who(f"aider/{started[1]}", program="aider", format="openai_chat")
            self._n = 0
            return
        if line.startswith("#### "):
            if self._by != "user":
                yield from self.close()
            self._by = "user"
            self._lines.append(line[5:].rstrip())
        elif line.startswith(">") and not _MARKERS.match(line):
            if self._by == "user":
                yield from self.close()
            self._by = "aider"
            self._heard.append(line[1:].strip())
        elif line.strip() or self._by == "model":
            if self._by == "user" or (self._by == "aider" and (self._reply or self._heard)):
                yield from self.close()
            self._by = "model"
            self._reply.append(line)

    def close(self) -> Iterator[Event]:
        """What was said so far, as messages."""
        if self._lines:
            self._source.tally.records += 1
            yield Said(self._who, user("\n".join(self._lines)))
        said = "\n".join(self._reply).strip()
        heard = "\n".join(self._heard).strip()
        for line in self._heard:
            named = _MODEL.match(line)
            self._model = named[1] if named else self._model
        if said:
            self._n += 1
            self._source.tally.records += 1
            usage, cost = _spent(heard)
            key = name_of(str(self._n), said)
            yield Replied(self._who, assistant(said), key, self._at, 0.0, self._model, usage, cost)
        if heard:
            self._source.tally.records += 1
            yield Said(self._who, result(f"aider_{self._n}", heard, name="aider_output"))
        self._lines, self._reply, self._heard = [], [], []
        self._by = ""


def _spent(heard: str) -> tuple[Usage | None, float | None]:
    """Tokens and USD of a call, from the line aider prints behind it."""
    tokens, cost = _TOKENS.search(heard), _COST.search(heard)
    usage = None
    if tokens:
        sent, written, read, received = (_rounded(one) for one in tokens.groups())
        usage = Usage(sent, received, read, written)
    return usage, number(cost[1]) if cost else None


def _rounded(text: str | None) -> int | None:
    if text is None:
        return None
    plain = number(text.removesuffix("k"))
    return None if plain is None else int(plain * 1000) if text.endswith("k") else int(plain)


def read(source: Source) -> Iterator[Event]:
    """The events of a chat history."""
    reading = _Reading(source)
    for _, line in source.texts():
        yield from reading.take(line)
    yield from reading.close()
