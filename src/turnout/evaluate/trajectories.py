"""Recorded runs as a router sees them: for every reply of the model the signals of what came before it.

A line is an outcome (see `outcomes`) that also holds the run's `messages` in OpenAI chat form; every assistant message is a
step. In a ledger it is the turns of a session with the outcome that names the session and a task. Signals are computed here,
once; deciding on them again costs microseconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, Lazy
from turnout.errors import ClientError
from turnout.evaluate import outcomes, reported
from turnout.evaluate.arms import Arm, Wanted
from turnout.evaluate.outcomes import Call, Outcome, Progress, Read
from turnout.evaluate.recordings import read_conversation
from turnout.ledger.outcome import Outcome as Reported
from turnout.ledger.store import Ledger
from turnout.ledger.trace import TurnRecord
from turnout.signals import BUILT_IN, Signals, Vocabulary, observe

Steps = Mapping[tuple[Arm, int], tuple[Signals, ...]]
"""What was seen before each reply of a run, by the run's arm and line."""


class Trajectories(Struct, frozen=True):
    """Runs with their steps. `read`: their outcomes, `steps` of which is the number of replies."""

    read: Read
    steps: Steps

    def of(self, run: Outcome) -> tuple[Signals, ...]:
        """What was seen before each reply of a run; () where that is not recorded."""
        return self.steps.get((run.arm, run.line), ())


class _Session(Struct):
    """The turns of a session's main agent, so far. `models`: who served them. `blind`: turns without signals. `calls`: of all
    turns, or of none."""

    steps: list[Signals]
    calls: list[Call]
    models: set[str]
    agent: str | None = None
    blind: int = 0


def read_ledger(
    ledger: Ledger, url: str, wanted: Sequence[Wanted] | None = None, progress: Progress | None = None
) -> Trajectories:
    """The runs of a ledger: sessions that an outcome with a task names, all of whose turns one model served, the main agent's
    with their signals (`capture` other than `none`). Sessions that several models served are no runs of one, and count as
    damaged, as does an outcome whose session holds no such turns."""
    sessions = _sessions(ledger, progress)
    steps: dict[tuple[Arm, int], tuple[Signals, ...]] = {}

    def completed(told: Reported, outcome: Outcome) -> Outcome:
        session = sessions.get((told.tenant, told.session)) if told.session else None
        if session is not None and session.blind:
            raise ValueError(f'{session.blind} turns of the session were recorded without signals (capture = "none")')
        if session is None or not session.steps:
            raise ValueError("the outcome names no session with recorded turns")
        if len(session.models) > 1:
            raise ValueError(f"the session was served by {', '.join(sorted(session.models))}: a run of no one model")
        steps[outcome.arm, outcome.line] = tuple(session.steps)
        known = len(session.calls) == len(session.steps)
        cost = sum(call.cost_usd or 0.0 for call in session.calls) if known else None
        return msgspec.structs.replace(
            outcome,
            steps=len(session.steps),
            cost_usd=cost if outcome.cost_usd is None else outcome.cost_usd,
            calls=tuple(session.calls) if known else outcome.calls,
        )

    return Trajectories(reported.read_ledger(ledger, url, wanted, progress, completed), steps)


def _sessions(ledger: Ledger, progress: Progress | None) -> dict[tuple[str, str], _Session]:
    """Every session that an outcome with a task names, with its turns."""
    with ledger.task_outcomes() as outcomes:
        found = {(o.outcome.tenant, o.outcome.session): _Session([], [], set()) for o in outcomes if o.outcome.session}
    with ledger.lanes() as turns:
        for number, turn in enumerate(turns, 1):
            session = found.get((turn.tenant, turn.session))
            if session is None or turn.agent_kind != "main" or turn.ended == "rejected":
                continue
            session.agent = turn.agent if session.agent is None else session.agent
            if turn.agent == session.agent:
                _add(session, turn)
            if progress is not None and number % 1000 == 0:
                progress("reading turns", number, 0)
    return found


def _add(session: _Session, turn: TurnRecord) -> None:
    if turn.signals is None:
        session.blind += 1
        return
    session.steps.append(turn.signals)
    session.models.add(turn.model)
    usage = turn.usage
    if usage is not None and usage.prompt_tokens is not None and turn.cost_usd is not None:
        tokens = (usage.prompt_tokens, usage.cache_read_tokens or 0, usage.output_tokens or 0)
        session.calls.append(Call(*tokens, turn.cost_usd))


class _Messages(Struct):
    messages: list[msgspec.Raw]


_MESSAGES = msgspec.json.Decoder(_Messages)


def read(
    path: Path,
    wanted: Sequence[Wanted] | None = None,
    by: str = "",
    vocabulary: Vocabulary = BUILT_IN,
    progress: Progress | None = None,
) -> Trajectories:
    """The runs of a file. A line without a reply among its `messages` is damaged. Raises OSError when there is no such file."""
    steps: dict[tuple[Arm, int], tuple[Signals, ...]] = {}

    def completed(outcome: Outcome, line: bytes) -> Outcome:
        seen = tuple(before_replies(line, vocabulary))
        if not seen:
            raise ValueError("no reply of a model among `messages`")
        steps[outcome.arm, outcome.line] = seen
        if progress is not None:
            progress(f"reading runs of {path.name}", len(steps), 0)
        return msgspec.structs.replace(outcome, steps=len(seen))

    return Trajectories(outcomes.read(path, wanted, by, None, completed), steps)


def before_replies(line: bytes, vocabulary: Vocabulary = BUILT_IN) -> Iterator[Signals]:
    """The signals before each assistant message of a conversation, in order. Raises ValueError where the line holds none."""
    try:
        conversation = read_conversation(line).conversation
        messages = tuple(conversation.messages)
    except ClientError as error:
        raise ValueError(error.message) from None
    raw = _MESSAGES.decode(line).messages
    for at, role in enumerate(conversation.roles):
        if role == "assistant":
            yield observe(_until(conversation, raw[:at], messages), vocabulary)


def _until(conversation: Conversation, raw: Sequence[msgspec.Raw], messages: Sequence[object]) -> Conversation:
    """The first messages of a conversation; with their bytes, by which what was read before is known again."""
    first = Lazy(raw, lambda _, index: messages[index])
    return msgspec.structs.replace(conversation, messages=first, roles=tuple(conversation.roles[: len(raw)]))
