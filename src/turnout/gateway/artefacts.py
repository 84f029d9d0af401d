"""Keeps what only one model can read away from the others, and gives every model its own back.

Signed thinking and encrypted reasoning are valid for the model that made them; another model's server refuses the request
that holds them. While one model alone has made any in a lane, all of it goes back to that one byte for byte and nothing is
kept. Once a second one has, the lane knows by marks (short digests) which payloads are whose: each model gets its own
untouched, and neither another's nor what nobody is known to have made.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from turnout.conversation import Conversation, DropForeignReasoning, Edit, Format, Lazy, Part, mark, payloads
from turnout.routing.core import Placed, State, TargetName
from turnout.upstream.models import Model, Models
from turnout.wire.codec import Request
from turnout.wire.drops import Drop
from turnout.wire.paths import part_path

PLACE = "gateway"
KEY = f"{PLACE}/Makers"
MARKS_AT_MOST = 256
"""Marks kept for each target of a lane, the newest. An older payload counts as nobody's."""

_UNSIGNED = re.compile(rb'"signature"\s*:\s*""')
_TEXT = rb'"\s*:\s*("(?:[^"\\]|\\.)+")'
_PATTERNS: Mapping[Format, tuple[tuple[bytes, "re.Pattern[bytes]"], ...]] = {
    "anthropic_messages": (
        (b'"signature"', re.compile(rb'"signature' + _TEXT)),
        (b"redacted_thinking", re.compile(rb'"data' + _TEXT)),
    ),
    "openai_responses": ((b'"encrypted_content"', re.compile(rb'"encrypted_content' + _TEXT)),),
    "openai_chat": (
        (b'signature"', re.compile(rb'"(?:thought_)?signature' + _TEXT)),
        (b"reasoning.encrypted", re.compile(rb'"data' + _TEXT)),
    ),
}
"""Where a reply holds opaque payloads: what tells that it may, and the payload as a JSON string."""
_SIGNS = (b"signature", b"encrypted", b"redacted", b'"data"')
_STRING = msgspec.json.Decoder(str)


class Served(Struct, frozen=True, tag="served", tag_field="event"):
    """`target` answered this lane. `marks`: the opaque payloads it made. `before`: those that the conversation held until then,
    made (or at least taken) by `sole`, the only one that had made any."""

    target: str
    marks: tuple[str, ...] = ()
    sole: str = ""
    before: tuple[str, ...] = ()


class Makers(State, frozen=True):
    """Who served a lane and who made which opaque payloads in it.

    `last`: the target that served last. `mixed`: others have served, too. `targets`: those that have made payloads. `marks`:
    of whose they are, by target, oldest first; none while there is one maker, whose they all are.
    """

    events: ClassVar[tuple[type[Struct], ...]] = (Served,)

    last: str = ""
    mixed: bool = False
    targets: tuple[str, ...] = ()
    marks: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)

    def after(self, event: Any) -> "Makers":
        """With what the event says of its target."""
        mixed = self.mixed or (bool(self.last) and self.last != event.target)
        targets, marks = self.targets, self.marks
        if event.marks and event.target not in targets:
            targets = (*targets, event.target)
        if event.marks and len(targets) > 1:
            marks = dict(marks)
            for name, more in ((event.sole, event.before), (event.target, event.marks)):
                if more:
                    known = marks.get(name, ())
                    marks[name] = tuple(dict.fromkeys((*known, *more)))[-MARKS_AT_MOST:]
        return Makers(event.target, mixed, targets, marks)


NOBODY = Makers()


class Hygiene(Struct, frozen=True):
    """What keeps other models' artefacts from a target: the edits, and what they take out."""

    edits: tuple[Edit, ...] = ()
    drops: tuple[Drop, ...] = ()


_CLEAN = Hygiene()


def makers(states: Any) -> Makers:
    """Who served the lane of these states, and who made what."""
    state = states.get(KEY)
    return state if isinstance(state, Makers) else NOBODY


def hygiene(request: Request, conversation: Conversation, model: Model, known: Makers, models: Models) -> Hygiene:
    """What keeps other models' artefacts out of what `model` is sent. `conversation`: the whole of it, where the request only
    continues it."""
    others = [name for name in known.targets if not same_model(name, model, models)]
    # Thinking without a signature was written for the client by a translation; no Messages server takes it back.
    messages = model.format == "anthropic_messages" == request.format
    unsigned = messages and request.body.find(b'"signature"') >= 0 and _UNSIGNED.search(request.body) is not None
    effort = request.settings.effort
    mixed = messages and known.mixed and effort is not None and effort.mode == "enabled"
    if not (others or unsigned or mixed):
        return _CLEAN
    keep: dict[str, None] = {}
    foreign: list[tuple[str, str]] = []
    owners = _owners(known)
    for path, part in _issued(conversation):
        held = [mark(payload) for payload in payloads(part)]
        owner = _owner(held, known, owners)
        if not others or (owner and same_model(owner, model, models)):
            keep.update(dict.fromkeys(held))
        else:
            foreign.append((path, owner))
    if not (foreign or unsigned or mixed):
        return _CLEAN
    return Hygiene((DropForeignReasoning(tuple(keep), mixed),), tuple(_reported(foreign)))


def same_model(name: str, model: Model, models: Models) -> bool:
    """Whether the target `name` is the same model at the same account as `model`, maybe under another name."""
    if name == model.name:
        return True
    other = models[TargetName(name)] if name in models else None
    if other is None or other.target.model != model.target.model:
        return False
    return other.format == model.format and same_account(other, model)


def same_account(one: Model, other: Model) -> bool:
    """Whether two targets are reached at one address with one key."""
    a, b = one.upstream, other.upstream
    return a is b or (
        (a.base_url, a.script, a.api_key_env, a.forward_auth) == (b.base_url, b.script, b.api_key_env, b.forward_auth)
    )


def _owners(known: Makers) -> dict[str, str]:
    return {one: target for target, marks in known.marks.items() for one in marks}


def _owner(held: Sequence[str], known: Makers, owners: Mapping[str, str]) -> str:
    """Whose a part with these marks is; "" where nobody knows."""
    if len(known.targets) == 1:
        return known.targets[0]
    return next((owners[one] for one in held if one in owners), "")


def _reported(foreign: Iterable[tuple[str, str]]) -> Iterable[Drop]:
    """One line for each owner: where its first payload stood, and how many more there are."""
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for path, owner in foreign:
        first.setdefault(owner, path)
        count[owner] = count.get(owner, 0) + 1
    for owner, path in first.items():
        whose = f"only target {owner} can read it" if owner else "which model made it is not known here"
        more = f" (and {count[owner] - 1} more)" if count[owner] > 1 else ""
        yield Drop(path, "dropped", f"opaque reasoning: {whose}{more}")


def _issued(conversation: Conversation) -> Iterable[tuple[str, Part]]:
    """The parts with opaque payloads, and their paths. Decodes only assistant messages that may hold any."""
    messages = conversation.messages
    lazy = isinstance(messages, Lazy)
    for i, role in enumerate(conversation.roles):
        if role != "assistant" or (lazy and not _may_hold(messages, i)):
            continue
        message = messages[i]
        for j, part in enumerate(message.parts):
            if payloads(part):
                yield part_path(conversation.format, message, i, j), part


def _may_hold(messages: Any, i: int) -> bool:
    raw = messages.raw[i]
    text = raw if messages.text_of is None else messages.text_of(raw)
    if not isinstance(text, msgspec.Raw | bytes):
        return True
    text = bytes(text)
    return any(text.find(sign) >= 0 for sign in _SIGNS)


def made_in(data: bytes, format: Format) -> Iterable[str]:
    """Marks of the opaque payloads in bytes of a reply in `format`: a JSON body, or whole events of a stream."""
    for sign, pattern in _PATTERNS[format]:
        # `find`, since `in` on bytes costs four times as much.
        if data.find(sign) >= 0:
            for found in pattern.findall(data):
                yield mark(_STRING.decode(found))


def made_of(parts: Iterable[Part]) -> Iterable[str]:
    """Marks of the opaque payloads of a reply's parts."""
    for part in parts:
        for payload in payloads(part):
            yield mark(payload)


def served(target: str, made: Iterable[str], known: Makers, conversation: Conversation, watched: bool) -> Placed | None:
    """The event that `target` answered and made these payloads; None where it says nothing new.

    `watched`: who served last is worth knowing for itself.
    """
    marks = tuple(dict.fromkeys(made))[-MARKS_AT_MOST:]
    joins = bool(marks) and known.targets != (target,)
    if not joins and (known.last == target or not (watched or known.last)):
        return None
    if not joins:
        return Placed(PLACE, Served(target))
    sole = known.targets[0] if len(known.targets) == 1 else ""
    before: tuple[str, ...] = ()
    if sole:
        before = tuple(dict.fromkeys(one for _, part in _issued(conversation) for one in made_of((part,))))
    return Placed(PLACE, Served(target, marks, sole, before[-MARKS_AT_MOST:]))
