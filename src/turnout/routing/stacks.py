"""Which routers may not stand inside one another, and why: found when a configuration is loaded."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from turnout.routing.canary.router import Canary
from turnout.routing.classifier.router import Classifier
from turnout.routing.composite import Composite
from turnout.routing.core import TargetName
from turnout.routing.passthrough import Passthrough
from turnout.routing.random import Random
from turnout.routing.stage.router import Stage
from turnout.routing.subagents import ByAgent

Path = tuple[str | int, ...]

UNFED = "the pin keeps the first choice, so the {inner} inside would never see the turns that feed its memory"

FORBIDDEN: dict[tuple[str, str], str] = {
    (
        "escalation",
        "escalation",
    ): "two judges would each discard and repeat the same turn, and a latch of one hides the votes from the other",
    ("advisor", "advisor"): "two gates would review and discard the same turn",
    (
        "advisor",
        "escalation",
    ): "both discard a finished turn and have it done again; which of them decided could not be told",
    (
        "escalation",
        "advisor",
    ): "both discard a finished turn and have it done again; which of them decided could not be told",
    ("affinity", "affinity"): "a pin inside a pin: the inner one could never change anything",
    ("affinity", "stage"): UNFED,
    ("affinity", "escalation"): UNFED,
    ("affinity", "advisor"): "the pin would keep the executor and skip every review after the first turn",
    (
        "stage",
        "stage",
    ): "the inner stage router is asked only where the signals say nothing, and reads the same signals",
    ("stage", "affinity"): "the pin would be made only on turns without signals, and hold for none of the others",
    (
        "stage",
        "escalation",
    ): "its votes in a row would skip the turns that the signals decide; put it in place of the stage "
    'router, with judge_when = "doubtful"',
    ("stage", "advisor"): "only undecided turns would be reviewed; put the advisor around the stage router",
    (
        "advisor",
        "collaboration",
    ): "both discard a finished turn and have it done again; which of them decided could not be told",
    ("affinity", "collaboration"): "the pin keeps the target of the first answer, so no other turn would be voted on",
    (
        "stage",
        "collaboration",
    ): "its answer may come from none of the two tiers; give collaboration a route of its own, or put both into a composite",
    ("background", "collaboration"): "background calls are not voted on; name a target",
    ("advisor", "retrieval"): "an answer from a knowledge is no claim of work done that could be reviewed",
    ("affinity", "retrieval"): "the pin keeps the target of the first answer, so no other question would be looked up",
    (
        "stage",
        "retrieval",
    ): "its answer comes from none of the two tiers; give retrieval a route of its own, or put both into a composite",
    ("background", "retrieval"): "background calls ask nothing that a knowledge could answer; name a target",
    ("canary", "canary"): "two trials at once: what one of them changes would be charged to the other",
    ("background", "canary"): "background calls stand alone and are never drawn: the candidate would get nothing",
    ("affinity", "canary"): "the pin keeps the first target, so neither arm would route; put the pin into the arms",
    ("background", "escalation"): "background calls stand alone: no streak of verdicts could form",
    ("background", "advisor"): "background calls do no work that could be claimed done",
    ("background", "affinity"): "background calls stand alone: there is no work that a pin could keep together",
    ("background", "stage"): "background calls carry no tool results, so the stage router's memory would never be fed",
}
"""What may not stand inside what, at any depth: (outer, inner) and the reason."""


def refusals(router: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """What is ambiguous in how routers are nested in `router`: the path of the inner one, and the reason."""
    yield from _refused(router, path, ())


def _refused(router: Any, path: Path, around: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    if isinstance(router, ByAgent):
        # The policies of a route are alternatives: none stands inside another.
        yield from _refused(router.main, path, around)
        for place, policy in (("subagents", router.subagents), ("background", router.background)):
            if policy is not None:
                kept = (*around, "background") if place == "background" else around
                yield from _refused(policy, (*path, place), kept)
        return
    kind = tag_of(router)
    for outer in around:
        reason = FORBIDDEN.get((outer, kind))
        if reason is not None:
            yield path, f"{_a(kind)} may not stand inside {_a(outer)}: {reason.format(inner=kind)}"
    if isinstance(router, Composite):
        yield from _never_asked(router, path)
        for index, member in enumerate(router.routers):
            if member.user_turn:
                yield from _unfed(member.router, (*path, "routers", index, "router"))
    pins = getattr(router, "pins", False)
    if pins and "affinity" in around:
        yield path, f'a pin inside a pin: this {kind} keeps its verdicts itself; set trigger = "every_request" here'
    if isinstance(router, Stage) and router.undecided is not None:
        yield from _no_tier(router, router.undecided, (*path, "undecided"))
    for inner, where in nested_in(router, path):
        yield from _refused(inner, where, (*around, kind) if kind != "composite" else around)


def _never_asked(router: Composite, path: Path) -> Iterator[tuple[Path, str]]:
    for index, member in enumerate(router.routers[:-1]):
        if member.conditional or abstains(member.router):
            continue
        where = (*path, "routers", index)
        kind = tag_of(member.router)
        if kind == "stage":
            reason = "put the routers for undecided turns into its `undecided`, so that its memory is told who served"
        else:
            reason = "give it conditions, or put it last"
        yield where, f"the routers after this {kind} are never asked, for it decides every turn; {reason}"
        return


_WATCHING = ("stage", "escalation", "advisor")


def _unfed(router: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Routers that watch the work, where only turns before the work reach them."""
    kind = tag_of(router)
    if kind in _WATCHING:
        yield (
            path,
            f"{_a(kind)} that takes only turns with something new of the user's never sees the work that feeds its memory; "
            "leave `user_turn` out",
        )
    for inner, where in nested_in(router, path):
        yield from _unfed(inner, where)


def _no_tier(stage: Stage, router: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """What the router for undecided turns could choose that is no tier."""
    for target in sorted(choices(router) - {stage.efficient, stage.capable}):
        yield path, f"`{target}` is none of the two tiers around it, `{stage.efficient}` and `{stage.capable}`"


def choices(router: Any) -> set[TargetName]:
    """The targets that a router may choose, as far as its kind is known."""
    match router:
        case Passthrough():
            return {router.target}
        case Random():
            return set(router.targets)
        case Classifier():
            return {t for t in (router.efficient, router.capable, *router.targets.values()) if t is not None}
        case Composite():
            return {target for member in router.routers for target in choices(member.router)}
        case Canary():
            return choices(router.incumbent) | choices(router.candidate)
    return set()


def abstains(router: Any) -> bool:
    """Whether there are turns on which a router has nothing to go by."""
    if isinstance(router, Composite):
        return abstains(router.routers[-1].router)
    return bool(getattr(type(router), "abstains", False))


def nested_in(router: Any, path: Path = ()) -> Iterator[tuple[Any, Path]]:
    """The routers directly inside a router, with their paths."""
    for field in msgspec.structs.fields(router):
        yield from _within(getattr(router, field.name), (*path, field.encode_name))


def _within(value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
    if isinstance(value, Struct):
        if callable(getattr(value, "route", None)):
            yield value, path
        else:
            yield from nested_in(value, path)
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _within(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _within(item, (*path, key))


def tag_of(router: Any) -> str:
    """The `type` of a router."""
    return str(type(router).__struct_config__.tag)


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
