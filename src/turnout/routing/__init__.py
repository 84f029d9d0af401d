"""Routing: which model serves a turn. A new router is one file here and one name in `RouterConfig`."""

from typing import TypeAlias

from turnout.routing.advisor.router import Advisor
from turnout.routing.affinity import Affinity
from turnout.routing.canary.router import Canary
from turnout.routing.classifier.router import Classifier
from turnout.routing.collaboration.router import Collaboration
from turnout.routing.composite import Composite
from turnout.routing.core import (
    AgentInfo,
    Answer,
    Ask,
    Asking,
    Decision,
    Failure,
    Forward,
    Lane,
    Outcome,
    Placed,
    Routed,
    Router,
    Rung,
    Source,
    State,
    TargetFacts,
    TargetName,
    Turn,
    Why,
    ask,
    ask_all,
    nested,
)
from turnout.routing.escalation.router import Escalation
from turnout.routing.passthrough import Passthrough
from turnout.routing.random import Random
from turnout.routing.retrieval.router import Retrieval
from turnout.routing.stage.router import Stage
from turnout.routing.subagents import ByAgent

RouterConfig: TypeAlias = (
    Passthrough
    | Random
    | Stage
    | Escalation
    | Classifier
    | Advisor
    | Affinity
    | Composite
    | Canary
    | Collaboration
    | Retrieval
)
"""Every router a configuration can name, by its `type`."""

__all__ = [
    "Advisor",
    "Affinity",
    "AgentInfo",
    "Answer",
    "Ask",
    "Asking",
    "ByAgent",
    "Canary",
    "Classifier",
    "Collaboration",
    "Composite",
    "Decision",
    "Escalation",
    "Failure",
    "Forward",
    "Lane",
    "Outcome",
    "Passthrough",
    "Placed",
    "Random",
    "Retrieval",
    "Routed",
    "Router",
    "RouterConfig",
    "Rung",
    "Source",
    "Stage",
    "State",
    "TargetFacts",
    "TargetName",
    "Turn",
    "Why",
    "ask",
    "ask_all",
    "nested",
]
