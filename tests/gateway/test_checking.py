"""What `check` tells an operator about a configuration that can be read."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from turnout.gateway.checking import check
from turnout.gateway.tables import Finding
from turnout.routing.core import Forward, TargetName, Turn, Why


class Tiers(Struct, frozen=True, tag="tiers", tag_field="type", forbid_unknown_fields=True):
    efficient: TargetName
    capable: TargetName
    picker: str = "efficient_first"
    judge: TargetName | None = None
    capable_fallbacks: tuple[TargetName, ...] = ()

    def route(self, turn: Turn) -> Forward:
        return Forward(self.efficient, Why("fixed", "always"))

    @property
    def otherwise(self) -> TargetName:
        return self.capable

    def concerns(self) -> list[tuple[str, str]]:
        return [("picker", "odd")] if self.picker == "odd" else []


class Dice(Struct, frozen=True, tag="dice", tag_field="type", forbid_unknown_fields=True):
    targets: tuple[TargetName, ...]
    weights: tuple[float, ...] = ()
    inner: Tiers | None = None

    def route(self, turn: Turn) -> Forward:
        return Forward(self.targets[0], Why("random", "dice"))

    @property
    def otherwise(self) -> TargetName:
        return self.targets[0]


GOOD = """\
[upstreams.main]
format = "anthropic_messages"
base_url = "https://api.anthropic.com"
api_key_env = "KEY"
[targets.small]
upstream = "main"
model = "claude-haiku-4-5"
context_window = 200_000
[targets.large]
upstream = "main"
model = "claude-opus-4-5"
context_window = 200_000
[routes.coder]
type = "tiers"
efficient = "small"
capable = "large"
"""


def findings(text: str, env: dict[str, str] | None = None, file: str = "turnout.toml") -> list[Finding]:
    return check(text, file, {"KEY": "k"} if env is None else env, Tiers | Dice)[1]


def test_a_good_file_has_no_findings() -> None:
    assert findings(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "severity", "key", "says"),
    [
        ("[routes.coder]", '[targets.idle]\nupstream = "main"\nmodel = "claude-sonnet-4-5"\ncontext_window = 9\n[routes.coder]',
         "warning", "targets.idle", "no route uses"),
        ("[targets.small]", '[upstreams.idle]\nformat = "openai_chat"\nbase_url = "http://localhost:1"\n[targets.small]',
         "warning", "upstreams.idle", "no target uses"),
        ("claude-haiku-4-5", "home-made", "warning", "targets.small", "no price is known for `home-made`"),
        ("context_window = 200_000\n", "", "warning", "targets.small", "context window"),
        ('efficient = "small"', 'efficient = "large"', "warning", "routes.coder.capable", "same target"),
        ("claude-haiku-4-5", "claude-opus-4-5", "warning", "routes.coder.capable", "the same model"),
        ("claude-haiku-4-5", "claude-opus-4-5", "warning", "targets.large.model", "as target `small`"),
        ('efficient = "small"\ncapable = "large"', 'efficient = "large"\ncapable = "small"',
         "warning", "routes.coder.efficient", "dearer"),
        ('capable = "large"', 'capable = "large"\npicker = "capable_first"', "warning", "routes.coder.picker", "uncalibrated"),
        ('capable = "large"', 'capable = "large"\npicker = "odd"', "warning", "routes.coder.picker", "odd"),
        ('capable = "large"', 'capable = "large"\njudge = "small"', "warning", "routes.coder.judge", "rate limit"),
        ('capable = "large"', 'capable = "large"\ncapable_fallbacks = ["small", "large"]',
         "warning", "routes.coder.capable_fallbacks[1]", "`large` has failed already"),
        ('capable = "large"', 'capable = "large"\ncapable_fallbacks = ["small", "small"]',
         "warning", "routes.coder.capable_fallbacks[1]", "`small` has failed already"),
        ("https://api.anthropic.com", "http://api.anthropic.com", "warning", "upstreams.main.base_url", "unencrypted"),
        ('api_key_env = "KEY"', "forward_auth = true", "", "", ""),
        ('https://api.anthropic.com"\napi_key_env = "KEY"', 'https://relay.example.com"\nforward_auth = true',
         "warning", "upstreams.main.forward_auth", "credentials go to relay.example.com"),
        ('model = "claude-haiku-4-5"', 'model = "x"\nprice = { input = -1.0, output = 1.0 }',
         "error", "targets.small.price.input", "negative"),
        ("[routes.coder]", '[routes.dice]\ntype = "dice"\ntargets = ["small", "large"]\nweights = [1.0, 0.0]\n[routes.coder]',
         "warning", "routes.dice.weights[1]", "`large` is never chosen"),
        ("[routes.coder]", '[ledger]\nurl = "mongodb://x"\n[routes.coder]', "error", "ledger.url", "one of: sqlite"),
        ("[routes.coder]", '[ledger]\nurl = "sqlite:////no/such/place/t.db"\n[routes.coder]', "error", "ledger.url", "folder"),
        ("[routes.coder]", '[sessions]\nurl = "redis://:hush@cache"\n[routes.coder]', "warning", "sessions.url", "url_env"),
        ("[routes.coder]", '[sessions]\nurl = "redis://me:hush@cache/x"\n[routes.coder]', "error", "sessions.url", "a database"),
        ("[routes.coder]", '[sessions]\nurl = "redis://me:hu/sh@cache"\n[routes.coder]', "error", "sessions.url", "%2F"),
        ("[routes.coder]", '[sessions]\nurl = "rediss://cache:6380/1"\n[routes.coder]', "", "", ""),
    ],
)  # fmt: skip
def test_what_will_surprise_is_found(old: str, new: str, severity: str, key: str, says: str) -> None:
    assert old in GOOD
    found = [f for f in findings(GOOD.replace(old, new, 1)) if f.key == key]
    if not severity:
        assert findings(GOOD.replace(old, new, 1)) == []
        return
    assert any(f.severity == severity and says in f.message + f.hint and f.line for f in found), found
    assert "hush" not in str(found)


def test_a_missing_key_is_an_error_that_keeps_nothing_else_from_being_found() -> None:
    found = findings(GOOD.replace("claude-haiku-4-5", "home-made"), env={})
    assert [(f.severity, f.key) for f in found] == [
        ("error", "upstreams.main.api_key_env"),
        ("warning", "targets.small"),
    ]


def test_routers_within_routers_are_checked() -> None:
    nested = (
        '[routes.dice]\ntype = "dice"\ntargets = ["small"]\n[routes.dice.inner]\ntype = "tiers"\nefficient = "large"\n'
    )
    found = findings(GOOD + nested + 'capable = "small"\n')
    assert [f.key for f in found] == ["routes.dice.inner.efficient"]


def test_a_script_must_exist_beside_the_file(tmp_path: Path) -> None:
    text = GOOD.replace('base_url = "https://api.anthropic.com"\napi_key_env = "KEY"', 'script = "play.jsonl"')
    file = str(tmp_path / "turnout.toml")
    assert [f.key for f in findings(text, file=file)] == ["upstreams.main.script"]
    (tmp_path / "play.jsonl").write_text('{"text": "hello"}\n')
    assert findings(text, file=file) == []
    (tmp_path / "play.jsonl").write_text('{"text": "hello"}\n{"txt": 1}\n')
    (found,) = findings(text, file=file)
    assert found.key == "upstreams.main.script"
    assert "play.jsonl:2:" in found.message


def test_local_servers_may_use_http() -> None:
    for host in ("127.0.0.1:8000", "localhost:11434", "[::1]:8000", "10.0.0.8", "gpu-box"):
        found: list[Any] = [
            f for f in findings(GOOD.replace("https://api.anthropic.com", f"http://{host}")) if "base_url" in f.key
        ]
        assert found == []


@pytest.mark.parametrize(
    ("url", "says"),
    [("redis://me:hush@cache/x", "a database"), ("mongodb://me:hush@cache", "no URL of a session store")],
)
def test_a_url_of_sessions_in_the_environment_is_judged_and_not_shown(url: str, says: str) -> None:
    text = GOOD.replace("[routes.coder]", '[sessions]\nurl_env = "SESSIONS_URL"\n[routes.coder]', 1)
    found = findings(text, {"KEY": "k", "SESSIONS_URL": url})
    assert [f.key for f in found if f.severity == "error"] == ["sessions.url_env"]
    assert says in str(found)
    assert "hush" not in str(found)


@pytest.mark.parametrize("url", ["rediss", "redis", "memory", "memory:x", "redis://"])
def test_a_url_of_sessions_that_serving_would_refuse_is_an_error(url: str) -> None:
    text = GOOD.replace("[routes.coder]", f'[sessions]\nurl = "{url}"\n[routes.coder]', 1)
    assert [f.key for f in findings(text) if f.severity == "error"] == ["sessions.url"]


@pytest.mark.parametrize(
    ("added", "key", "says"),
    [
        ("judge_budget = 0.1\n", "routes.coder.judge_budget", "asks a judge"),
        ('judge = "odd"\njudge_budget = 0.1\n', "routes.coder.judge_budget", "will never be asked"),
        ('judge = "odd"\njudge_usd_per_day = 2\n', "routes.coder.judge_usd_per_day", "will never be asked"),
        ('judge = "large"\njudge_budget = 0.1\n', "routes.coder.judge_budget", ""),
        ('judge = "large"\njudge_budget = 1.0\n', "routes.coder.judge_budget", "< 1.0"),
    ],
)
def test_a_budget_for_judges_needs_judges_with_a_price(added: str, key: str, says: str) -> None:
    odd = '[targets.odd]\nupstream = "main"\nmodel = "home-made"\ncontext_window = 9\n'
    found = [f for f in findings(odd + GOOD + added) if f.key == key]
    assert len(found) == bool(says)
    assert says in "".join(f.message for f in found)
