"""A version of a route decides as its table says, under the digest that turns record."""

import re
from pathlib import Path
from typing import Any

import pytest

from turnout.errors import ConfigError
from turnout.gateway.checking import check
from turnout.gateway.config import Config, load, parse, read
from turnout.gateway.versions import complete, folder_of, table_of, version
from turnout.policies.file import parse as parse_policy
from turnout.policies.file import text_of
from turnout.policies.policy import Evidence, Policy

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
PRESETS = sorted((ROOT / "src/turnout/cli/presets").glob("*.toml"))


def documented() -> list[str]:
    """Every configuration that is shown or shipped."""
    texts = [path.read_text("utf-8") for path in PRESETS]
    for page in PAGES:
        texts += re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return [text for text in texts if read(text, "t.toml")[0] is not None]


def test_every_table_becomes_a_version_with_the_digest_it_has() -> None:
    kinds = set()
    for text in documented():
        config = parse(text, "t.toml")
        for name, route in config.routes.items():
            made = version(config, name, table_of(route))
            assert made.digest == route.policy
            again, findings = complete(config, parse_policy(text_of(made), "p.toml"), text_of(made), "p.toml")
            assert again == made
            assert findings == []
            kinds.add(route.kind)
    assert len(kinds) >= 6


CONFIG = """
[upstreams.main]
format = "openai_chat"
script = "replies.jsonl"

[targets.small]
upstream = "main"
model = "vendor-small"

[targets.large]
upstream = "main"
model = "vendor-large"

[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
aliases = ["agent"]
description = "for people"

[routes.helper]
type = "passthrough"
target = "small"
"""


def opened(folder: Path, text: str = CONFIG) -> Config:
    """The configuration in a file of `folder`, promoted versions and all."""
    (folder / "turnout.toml").write_text(text)
    (folder / "replies.jsonl").write_text('{"text": "hi"}\n')
    return load(folder / "turnout.toml")


def promote(config: Config, route: str, evidence: Evidence | None = None, **changed: Any) -> Policy:
    """A version with some keys changed, served from now on."""
    made = version(config, route, {**table_of(config.routes[route]), **changed}, evidence=evidence)
    folder_of(config).promote(made, folder_of(config).add(made))
    return made


def test_a_promoted_version_stands_for_the_table_and_a_rollback_brings_it_back(tmp_path: Path) -> None:
    own = opened(tmp_path)
    made = promote(own, "coder", Evidence("rows", rows=9), threshold=0.9)
    served = opened(tmp_path)
    route = served.routes["coder"]
    assert route.policy == made.digest != own.routes["coder"].policy
    assert getattr(route.router, "threshold", None) == 0.9
    assert (route.aliases, route.description) == (("agent",), "for people")
    assert route.version == f"coder-{made.digest}.toml"
    assert served.routes["helper"] == own.routes["helper"]
    assert served.digest != own.digest
    assert load(tmp_path / "turnout.toml", promoted=False).routes == own.routes
    folder_of(own).rollback("coder")
    assert opened(tmp_path) == own


def test_evidence_notes_and_names_do_not_change_the_digest(tmp_path: Path) -> None:
    config = opened(tmp_path)
    table = table_of(config.routes["coder"])
    plain = version(config, "coder", table)
    told = version(config, "coder", table, evidence=Evidence("rows"), made_by="calibrate", note="n", came_from="0" * 12)
    renamed = opened(tmp_path, CONFIG.replace('["agent"]', '["other"]').replace("for people", "for all"))
    assert plain.digest == told.digest == version(renamed, "coder", table).digest == config.routes["coder"].policy


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('efficient = "small"', 'efficient = "smal"', "router.efficient: unknown target `smal`; did you mean `small`?"),
        ("threshold = 0.5", "treshold = 0.5", "router.treshold: unknown key `treshold`; did you mean `threshold`?"),
        ("threshold = 0.5", "threshold = 'half'", "router.threshold: expected `float`, got `str`"),
        ('type = "stage"', 'type = "stags"', "router.type: unknown type 'stags'; did you mean `stage`?"),
    ],
)
def test_a_mistake_in_a_promoted_file_is_found_with_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    config = opened(tmp_path)
    made = version(config, "coder", table_of(config.routes["coder"]))
    text = text_of(made)
    assert old in text
    wrong = tmp_path / "policies" / "mine.toml"
    wrong.parent.mkdir()
    wrong.write_text(text.replace(old, new))
    folder_of(config).promote(made, wrong)
    line = 1 + text[: text.index(old)].count("\n")
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path)
    assert str(caught.value).startswith(f"{wrong}:{line}: {says}")
    _, findings = check(CONFIG, str(tmp_path / "turnout.toml"), {})
    found = [finding for finding in findings if finding.severity == "error"]
    assert [(one.file, one.line) for one in found] == [(str(wrong), line)]


def test_a_version_whose_models_are_others_by_now_is_doubtful(tmp_path: Path) -> None:
    made = promote(opened(tmp_path), "coder", threshold=0.9)
    (tmp_path / "turnout.toml").write_text(CONFIG.replace("vendor-small", "vendor-tiny"))
    config, findings = check((tmp_path / "turnout.toml").read_text(), str(tmp_path / "turnout.toml"), {})
    assert config is not None
    assert config.routes["coder"].policy != made.digest
    doubts = [finding.message for finding in findings if finding.key == "models.small"]
    assert len(doubts) == 1
    assert doubts[0].startswith("target `small` stood for `vendor-small`, and is `vendor-tiny` now; turns record ")


def test_what_checks_find_in_a_promoted_version_is_said_of_its_file(tmp_path: Path) -> None:
    made = promote(opened(tmp_path), "coder", efficient="large")
    _, findings = check(CONFIG, str(tmp_path / "turnout.toml"), {})
    same = [finding for finding in findings if "are the same target" in finding.message]
    assert [(Path(one.file).name, one.key) for one in same] == [(f"coder-{made.digest}.toml", "router.capable")]


def test_a_version_of_a_route_that_is_no_more_is_told(tmp_path: Path) -> None:
    promote(opened(tmp_path), "helper", target="large")
    text = CONFIG[: CONFIG.index("[routes.helper]")]
    (tmp_path / "turnout.toml").write_text(text)
    _, findings = check(text, str(tmp_path / "turnout.toml"), {})
    assert [finding.hint for finding in findings if "`helper`" in finding.message] == [
        "turnout policy rollback helper --to-configuration"
    ]


def test_versions_are_refused_where_they_fit_no_route(tmp_path: Path) -> None:
    config = opened(tmp_path)
    with pytest.raises(ConfigError, match="no route `coders`; did you mean `coder`"):
        version(config, "coders", {"type": "passthrough", "target": "small"})
    with pytest.raises(ConfigError, match="target: unknown target `none`"):
        version(config, "helper", {"type": "passthrough", "target": "none"})
    taken = {**table_of(config.routes["coder"]), "background": "small", "small_models": ["helper"]}
    with pytest.raises(ConfigError, match="model name `helper` already belongs to route `helper`"):
        version(config, "coder", taken)


def test_a_history_that_cannot_be_read_is_an_error_with_its_line(tmp_path: Path) -> None:
    config = opened(tmp_path)
    promote(config, "helper", target="large")
    history = folder_of(config).history_file
    history.write_text(history.read_text() + "{}\n")
    with pytest.raises(ConfigError, match=r"history.jsonl:2: not a line of a history"):
        opened(tmp_path)


def test_the_folder_is_the_configured_one(tmp_path: Path) -> None:
    config = opened(tmp_path, CONFIG + '\n[policies]\nfolder = "elsewhere/kept"\n')
    made = promote(config, "helper", target="large")
    assert (tmp_path / "elsewhere/kept" / f"helper-{made.digest}.toml").is_file()
    assert load(tmp_path / "turnout.toml").routes["helper"].policy == made.digest
