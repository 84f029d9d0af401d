"""[shadows.NAME]: whose turns a shadow sees and what it decides by, and what is said of mistakes."""

from pathlib import Path

import pytest

from turnout.gateway import versions
from turnout.gateway.config import effective, load, parse, read
from turnout.gateway.routes import table_of
from turnout.routing import Passthrough, Stage
from turnout.routing.subagents import ByAgent

BASE = """\
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:1"
[targets.small]
upstream = "u"
model = "small"
[targets.large]
upstream = "u"
model = "large"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
[routes.fixed]
type = "passthrough"
target = "large"
[shadows.one]
route = "coder"
"""


def test_a_shadow_has_a_router_of_its_own_or_that_of_a_route() -> None:
    own = parse(
        BASE + 'type = "stage"\nefficient = "small"\ncapable = "large"\nthreshold = 0.7\nbackground = "small"\n'
    )
    shadow = own.shadows["one"]
    assert shadow.route == "coder"
    assert isinstance(shadow.by.router, ByAgent)
    assert isinstance(shadow.by.router.main, Stage)
    assert shadow.by.router.main.threshold == 0.7
    assert shadow.by.policy != own.routes["coder"].policy
    other = parse(BASE + 'as = "fixed"\n')
    assert isinstance(other.shadows["one"].by.router, Passthrough)
    assert other.shadows["one"].by.policy == other.routes["fixed"].policy
    assert effective(other)["shadows"]["one"]["router"]["target"] == "large"
    assert parse(BASE + 'as = "fixed"\n').digest != own.digest


def test_a_shadow_may_decide_by_a_version_of_its_route(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(BASE + 'as = "coder"\n')
    config = load(file, None)
    version = versions.version(config, "coder", {**table_of(config.routes["coder"]), "threshold": 0.9})
    versions.folder_of(config).add(version)
    file.write_text(BASE + f'policy = "{version.digest[:6]}"\n')
    shadow = load(file, None).shadows["one"]
    assert shadow.by.policy == version.digest
    assert isinstance(shadow.by.router, Stage)
    assert shadow.by.router.threshold == 0.9
    assert load(file, None).routes["coder"].policy == config.routes["coder"].policy


@pytest.mark.parametrize(
    ("rest", "key", "says"),
    [
        ("", "shadows.one", "expected one router"),
        ('as = "coder"\ntype = "passthrough"\ntarget = "small"\n', "shadows.one", "expected one router"),
        ('as = "codr"\n', "shadows.one.as", "unknown route `codr`"),
        ('policy = "abc"\n', "shadows.one.policy", "no version `abc`"),
        ('type = "passthrough"\ntarget = "smal"\n', "shadows.one.target", "unknown target `smal`"),
        ('type = "passthrough"\n', "shadows.one", "missing key `target`"),
        ('threshold = 0.5\n', "shadows.one", "missing key `type`"),
        ('as = "coder"\n[shadows.two]\nas = "coder"\n', "shadows.two", "missing key `route`"),
        ('as = "coder"\n[shadows.two]\nroute = "nowhere"\nas = "coder"\n', "shadows.two.route", "unknown route `nowhere`"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(rest: str, key: str, says: str) -> None:
    config, tables = read(BASE + rest, "turnout.toml")
    assert config is None
    finding = tables.findings[0]
    assert (finding.severity, finding.key) == ("error", key)
    assert says in finding.message
    assert finding.line is not None
