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
from turnout.evaluate import outcomes
from turnout.evaluate.arms import Arm, Wanted
from turnout.evaluate.outcomes import Outcome, Progress, Read
from turnout.evaluate.recordings import read_conversation
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
