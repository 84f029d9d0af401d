"""Stacks of routers that would be ambiguous are refused when a configuration is read, with the reason and the place."""

import pytest

from turnout.gateway.config import read
from turnout.gateway.tables import Finding
from turnout.routing.stacks import FORBIDDEN

HEAD = """
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
[targets.small]
upstream = "u"
model = "small"
[targets.large]
upstream = "u"
model = "large"
[routes.r]
"""


def errors(route: str) -> list[Finding]:
    _, tables = read(HEAD + route, "turnout.toml")
    return [finding for finding in tables.findings if finding.severity == "error"]


STAGE = '{ type = "stage", efficient = "small", capable = "large" }'
ESCALATION = '{ type = "escalation", weak = "small", strong = "large", judge = "large" }'
ADVISOR = '{ type = "advisor", executor = "small", advisor = "large" }'
CLASSIFIER = '{ type = "classifier", judge = "small", efficient = "small", capable = "large" }'
RANDOM = '{ type = "random", targets = ["small", "large"] }'
PIN = '{ type = "affinity", router = ' + RANDOM + " }"

FINE = [
    f'type = "advisor"\nadvisor = "large"\nexecutor = {STAGE}\nsubagents = {ADVISOR}',
    f'type = "advisor"\nadvisor = "large"\nexecutor = {PIN}',
    f'type = "stage"\nefficient = "small"\ncapable = "large"\nundecided = {CLASSIFIER}',
    f'type = "composite"\nrouters = [{{ router = {CLASSIFIER} }}, {{ router = {ESCALATION} }}]\nsubagents = {ESCALATION}',
    f'type = "affinity"\nrouter = {RANDOM}',
    f'type = "affinity"\nrouter = "small"\nsubagents = {PIN}\nbackground = "small"',
    f'type = "composite"\nrouters = [{{ router = {STAGE}, programs = ["codex"] }}, {{ router = {PIN} }}]',
    f'type = "stage"\nefficient = "small"\ncapable = "large"\nsubagents = {STAGE}\nbackground = {RANDOM}',
]


@pytest.mark.parametrize("route", FINE)
def test_stacks_that_say_who_decides_are_taken(route: str) -> None:
    assert errors(route) == []


REFUSED = [
    (
        f'type = "advisor"\nadvisor = "large"\nexecutor = {ESCALATION}',
        "routes.r.executor",
        "both discard a finished turn",
    ),
    (f'type = "advisor"\nadvisor = "large"\nexecutor = {ADVISOR}', "routes.r.executor", "two gates"),
    (
        'type = "advisor"\nadvisor = "large"\nexecutor = '
        f'{{ type = "composite", routers = [{{ router = {ESCALATION} }}] }}',
        "routes.r.executor.routers[0].router",
        "an escalation may not stand inside an advisor: both discard",
    ),
    (f'type = "affinity"\nrouter = {ESCALATION}', "routes.r.router", "would never see the turns"),
    (f'type = "affinity"\nrouter = {ADVISOR}', "routes.r.router", "skip every review"),
    (f'type = "affinity"\nrouter = {CLASSIFIER}', "routes.r.router", "a pin inside a pin"),
    (f'type = "random"\ntargets = ["small"]\nbackground = {ESCALATION}', "routes.r.background", "no streak"),
    (f'type = "random"\ntargets = ["small"]\nbackground = {ADVISOR}', "routes.r.background", "claimed done"),
    (
        f'type = "stage"\nefficient = "small"\ncapable = "large"\nundecided = {ESCALATION}',
        "routes.r.undecided",
        "skip the turns that the signals decide",
    ),
    (
        f'type = "stage"\nefficient = "small"\ncapable = "large"\nundecided = {ADVISOR}',
        "routes.r.undecided",
        "only undecided turns would be reviewed",
    ),
    (f'type = "affinity"\nrouter = {PIN}', "routes.r.router", "a pin inside a pin"),
    (f'type = "affinity"\nrouter = {STAGE}', "routes.r.router", "would never see the turns that feed its memory"),
    (
        f'type = "affinity"\n[[routes.r.router.routers]]\nrouter = {STAGE}\n[routes.r.router]\ntype = "composite"',
        "routes.r.router.routers[0].router",
        "would never see the turns",
    ),
    (f'type = "random"\ntargets = ["small"]\nbackground = {STAGE}', "routes.r.background", "would never be fed"),
    (f'type = "random"\ntargets = ["small"]\nbackground = {PIN}', "routes.r.background", "stand alone"),
    (
        f'type = "composite"\nrouters = [{{ router = {STAGE} }}, {{ router = "small" }}]',
        "routes.r.routers[0]",
        "are never asked, for it decides every turn; put the routers for undecided turns into its `undecided`",
    ),
    (
        'type = "composite"\nrouters = [{ router = "small" }, { router = "large", name = "b" }]',
        "routes.r.routers[0]",
        "are never asked",
    ),
    (
        'type = "stage"\nefficient = "small"\ncapable = "large"\nundecided = ' + STAGE,
        "routes.r.undecided",
        "reads the same signals",
    ),
    (
        'type = "stage"\nefficient = "small"\ncapable = "large"\nundecided = ' + PIN,
        "routes.r.undecided",
        "a stage: the pin would be made only on turns without signals",
    ),
    (
        'type = "stage"\nefficient = "small"\ncapable = "large"\nundecided = "third"\n'
        '[targets.third]\nupstream = "u"\nmodel = "third"',
        "routes.r.undecided",
        "`third` is none of the two tiers around it",
    ),
    (
        f'type = "composite"\nrouters = [{{ router = {STAGE}, user_turn = true }}, {{ router = "small" }}]',
        "routes.r.routers[0].router",
        "a stage that takes only turns with something new of the user's never sees the work that feeds its memory",
    ),
    ('type = "composite"\nrouters = []', "routes.r.routers", "at least one router"),
    ('type = "affinity"\nrouter = 3', "routes.r.router", "expected a router's table or the name of a target"),
    ('type = "affinity"', "routes.r", "missing key `router`"),
    ('type = "affinity"\nrouter = "smal"', "routes.r.router.target", "unknown target `smal`"),
    ('type = "affinity"\nrouter = "small"\nsubagents = "larg"', "routes.r.subagents.target", "unknown target `larg`"),
    ('type = "affinity"\nrouter = { type = "stge" }', "routes.r.router.type", "unknown type 'stge'"),
    ('type = "random"\ntargets = ["small"]\nsmall_models = ["x"]', "routes.r.small_models", "name the target for them"),
]


@pytest.mark.parametrize(("route", "key", "says"), REFUSED)
def test_ambiguous_stacks_are_refused_with_the_reason(route: str, key: str, says: str) -> None:
    found = errors(route)
    assert any(one.key == key and says in one.message for one in found), found


def test_every_reason_reads_as_a_sentence() -> None:
    for (outer, inner), reason in FORBIDDEN.items():
        assert reason.format(inner=inner)
        assert outer
        assert not reason.endswith(".")


def test_small_models_are_names_of_the_route() -> None:
    toml = HEAD + 'type = "random"\ntargets = ["small"]\nbackground = "large"\nsmall_models = ["claude-haiku-*"]'
    config, _ = read(toml, "turnout.toml")
    assert config is not None
    route = config.routes["r"]
    assert route.aliases == ("claude-haiku-*",)
    assert (route.kind, route.targets) == ("random", ("small", "large"))


def test_a_policy_changes_when_a_nested_router_does() -> None:
    digests = set()
    for more in ("", 'subagents = "small"', 'subagents = "large"', 'background = "small"'):
        config, _ = read(f'{HEAD}type = "random"\ntargets = ["small", "large"]\n{more}', "turnout.toml")
        assert config is not None
        digests.add(config.routes["r"].policy)
    assert len(digests) == 4
