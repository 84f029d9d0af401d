"""Turns that the stage router's signals leave open, decided by another router."""

from msgspec.structs import replace

from turnout.routing.core import Answer, Decision, Forward, TargetName
from turnout.routing.stage.memory import Tier


def tier_of(decision: Decision, efficient: TargetName, capable: TargetName) -> Tier | None:
    """The tier that a nested router chose; None when it abstained, or chose a target that is neither."""
    if decision.why.abstained or efficient == capable:
        return None
    return "efficient" if decision.target == efficient else "capable" if decision.target == capable else None


def joined(stage: Forward, asked: Decision, tier: Tier | None) -> Decision:
    """The stage router's decision for the tier that `asked` chose, told together; both remember."""
    why, heard = stage.why, asked.why
    remember = (*stage.remember, *asked.remember)
    if tier is None:
        because = heard.sentence if heard.abstained else f"{asked.target} is none of the two tiers"
        why = replace(why, sentence=f"{why.sentence}; the router for undecided turns does not say ({because})")
        return replace(stage, why=why, remember=remember)
    values = {**why.values, "undecided": tier}
    if heard.values:
        values["verdict"] = heard.values
    if why.source != "default":
        # Its choice would have been a change of tier that is not worth its price.
        return replace(stage, why=replace(why, values=values), remember=remember)
    sentence = f"the signals leave the turn open; {heard.sentence}"
    why = replace(why, source=heard.source, sentence=sentence, rule=heard.rule, values=values, place=heard.place)
    if isinstance(asked, Answer):
        return replace(asked, why=why, remember=remember)
    edits = (*stage.edits, *asked.edits)
    return replace(stage, why=why, edits=edits, fallbacks=stage.fallbacks or asked.fallbacks, remember=remember)
