"""The configuration file: what is read from it, and what is said of its mistakes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.gateway.config import Config, effective, load, parse, read, secret
from turnout.routing.core import Forward, TargetName, Turn, Why


class Two(Struct, frozen=True, tag="two", tag_field="type", forbid_unknown_fields=True):
    cheap: TargetName
    dear: TargetName
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError("threshold must be between 0 and 1")

    def route(self, turn: Turn) -> Forward:
        return Forward(self.cheap, Why("fixed", "always"))

    @property
    def otherwise(self) -> TargetName:
        return self.dear


class Outer(Struct, frozen=True, tag="outer", tag_field="type", forbid_unknown_fields=True):
    inner: "Two | Outer"
    pool: tuple[TargetName, ...] = ()
    spare: TargetName | None = None
    weights: dict[TargetName, float] = {}

    def route(self, turn: Turn) -> Forward:
        return Forward(self.otherwise, Why("fixed", "always"))

    @property
    def otherwise(self) -> TargetName:
        return self.inner.otherwise


ROUTERS = Two | Outer

GOOD = """\
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "MAIN_API_KEY"

[targets.small]
upstream = "main"
model = "vendor-small"
price = { input = 0.25, output = 2 }

[targets.large]
upstream = "main"
model = "vendor-large"

[routes.coder]
type = "two"
cheap = "small"
dear = "large"
aliases = ["claude-coder"]
"""


def good(**_: Any) -> Config:
    return parse(GOOD, "turnout.toml", ROUTERS)


def refused(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(text, "turnout.toml", ROUTERS)
    return caught.value


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)


def line_of_key(text: str, key: str) -> int:
    """The line that spells the key, found by header and then by name; the header's line when only a table is named."""
    lines = text.splitlines()
    if key.count(".") == 0:
        return line_of(text, f"[{key}.")
    header = next(i for i, line in enumerate(lines, 1) if line.startswith("[") and line[1:-1] in key)
    step = key.removeprefix(lines[header - 1][1:-1]).strip(".").split("[")[0].split(".")[0]
    return header if not step else next(i for i in range(header, len(lines) + 1) if lines[i - 1].startswith(step))


def test_a_file_becomes_structs() -> None:
    config = good()
    assert config.upstreams["main"].base_url == "http://127.0.0.1:8000/v1"
    assert config.targets[TargetName("small")].price.output == 2.0  # type: ignore[union-attr]
    route = config.routes["coder"]
    assert route.router == Two(TargetName("small"), TargetName("large"))
    assert route.falls_to == "large"
    assert set(config.by_model()) == {"coder", "claude-coder"}
    assert (config.server.max_body_mib, config.ledger.capture, config.sessions.url) == (32, "signals", "memory:")


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ('cheap = "small"', 'cheap = "smal"', "routes.coder.cheap", "did you mean `small`?"),
        ('cheap = "small"', 'chaep = "small"', "routes.coder.chaep", "did you mean `cheap`?"),
        ('cheap = "small"', "", "routes.coder", "missing key `cheap`"),
        ('dear = "large"', "dear = 3", "routes.coder.dear", "expected `str`, got `int`"),
        ('dear = "large"', 'dear = "large"\nthreshold = 7', "routes.coder.threshold", "between 0 and 1"),
        ('dear = "large"', 'dear = "large"\notherwise = "lage"', "routes.coder.otherwise", "did you mean `large`?"),
        ('type = "two"', 'type = "tow"', "routes.coder.type", "did you mean `two`?"),
        ('type = "two"', "", "routes.coder", "missing key `type`"),
        ('aliases = ["claude-coder"]', 'alias = ["x"]', "routes.coder.alias", "did you mean `aliases`?"),
        ('aliases = ["claude-coder"]', 'aliases = ["coder"]', "routes.coder.aliases[0]", "already belongs"),
        ('aliases = ["claude-coder"]', "strict = 1", "routes.coder.strict", "expected `bool`"),
        ('upstream = "main"', 'upstream = "mian"', "targets.small.upstream", "did you mean `main`?"),
        ("output = 2 }", 'output = "2" }', "targets.small.price.output", "expected `float`, got `str`"),
        ("output = 2 }", "outputs = 2 }", "targets.small.price.outputs", "did you mean `output`?"),
        ('format = "openai_chat"', 'format = "openai"', "upstreams.main.format", "openai_chat"),
        ("http://127", "127", "upstreams.main.base_url", "http or https"),
        ("http://127", "http://me:pw@127", "upstreams.main.base_url", "credentials"),
        ('base_url = "http://127.0.0.1:8000/v1"', "", "upstreams.main", "base_url"),
        ("[upstreams.main]", "[upstream.main]", "upstream", "did you mean `upstreams`?"),
        ('model = "vendor-large"', "model = [1]", "targets.large.model", "expected `str`"),
        ('"MAIN_API_KEY"', '"sk-not-a-name"', "upstreams.main.api_key_env", "name of an environment variable"),
        ('"MAIN_API_KEY"', '"A"\nheaders = { X-Api-Key = "s" }', "upstreams.main.headers.X-Api-Key", "never holds"),
        ('"MAIN_API_KEY"', '"A"\nforward_auth = true', "upstreams.main.forward_auth", "got both"),
        (
            '"MAIN_API_KEY"',
            '"A"\nheaders = { "x y" = "s" }',
            'upstreams.main.headers."x y"',
            "not the name of a header",
        ),
        ('"MAIN_API_KEY"', '"A"\nheaders = { x-a = "s\\r\\nb: c" }', "upstreams.main.headers.x-a", "no line break"),
        ('model = "vendor-large"', 'model = "l"\ncontext_window = 0', "targets.large.context_window", ">= 1"),
        ('model = "vendor-large"', 'model = "l"\nmax_tokens = -1', "targets.large.max_tokens", ">= 1"),
        (
            'model = "vendor-large"',
            'model = "l"\ncapabilities = ["tools", "image"]',
            "targets.large.capabilities[1]",
            "did you mean `images`?",
        ),
    ],
)
def test_a_mistake_names_line_key_and_remedy(old: str, new: str, key: str, says: str) -> None:
    text = GOOD.replace(old, new, 1)
    error = refused(text)
    assert error.key == key
    assert says in str(error)
    assert "sk-not-a-name" not in str(error)
    assert error.line == line_of_key(text, key)
    assert f"turnout.toml:{error.line}: {key}:" in str(error)


def test_all_mistakes_of_a_file_are_found_at_once() -> None:
    text = GOOD.replace('"openai_chat"', '"soap"').replace('cheap = "small"', 'cheap = "tiny"').replace("0.25", "true")
    config, tables = read(text, "turnout.toml", ROUTERS)
    assert config is None
    assert {f.key for f in tables.findings} == {
        "upstreams.main.format",
        "routes.coder.cheap",
        "targets.small.price.input",
    }
    assert "2 more" in str(refused(text))


def test_targets_are_checked_at_any_depth() -> None:
    nested = GOOD + (
        '[routes.deep]\ntype = "outer"\npool = ["small", "none"]\nspare = "nil"\nweights = { small = 1.0, void = 2.0 }\n'
        '[routes.deep.inner]\ntype = "outer"\n'
        '[routes.deep.inner.inner]\ntype = "two"\ncheap = "small"\ndear = "nowhere"\n'
    )
    _, tables = read(nested, "turnout.toml", ROUTERS)
    found = {f.key: f.line for f in tables.findings}
    assert found == {
        "routes.deep.pool[1]": line_of(nested, "pool"),
        "routes.deep.spare": line_of(nested, "spare"),
        "routes.deep.weights.void": line_of(nested, "weights"),
        "routes.deep.inner.inner.dear": line_of(nested, "nowhere"),
    }


def test_unknown_keys_of_nested_routers_are_found() -> None:
    nested = GOOD + '[routes.deep]\ntype = "outer"\ninner = { type = "two", cheap = "small", daer = "large" }\n'
    _, tables = read(nested, "turnout.toml", ROUTERS)
    assert [f.key for f in tables.findings] == ["routes.deep.inner.daer", "routes.deep.inner"]


@pytest.mark.parametrize(
    "text", ["[routes.x\n", "a = ", "a = 1\na = 2\n", "\x00", "[routes]\nx = 1\n", "upstreams = 3\n", ""]
)
def test_what_is_no_configuration_is_refused_with_the_file(text: str) -> None:
    assert refused(text).file == "turnout.toml"


def test_digests_follow_what_matters() -> None:
    before = good()
    assert before == good()
    renamed = parse(GOOD.replace("claude-coder", "other-name"), "elsewhere/turnout.toml", ROUTERS)
    assert renamed.routes["coder"].policy == before.routes["coder"].policy
    assert renamed.digest != before.digest
    model = parse(GOOD.replace("vendor-large", "vendor-huge"), "turnout.toml", ROUTERS)
    assert model.routes["coder"].policy != before.routes["coder"].policy
    router = parse(GOOD + "threshold = 0.6\n", "turnout.toml", ROUTERS)
    assert router.routes["coder"].policy != before.routes["coder"].policy
    spelled_out = parse(GOOD + "threshold = 0.5\n", "turnout.toml", ROUTERS)
    assert spelled_out.digest == before.digest


def test_secrets_must_be_there_to_serve(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(GOOD + '[ledger]\nurl_env = "LEDGER_URL"\n[server.tenants.team]\nkey_env = "TEAM_KEY"\n')
    there = {"MAIN_API_KEY": "a", "LEDGER_URL": "sqlite:///x.db", "TEAM_KEY": "k"}
    config = load(file, there, ROUTERS)
    assert config.ledger.url == "sqlite:///x.db"
    assert config.client_keys(there) == {"k": "team"}
    for name in there:
        for env in ({k: v for k, v in there.items() if k != name}, {**there, name: ""}):
            with pytest.raises(ConfigError, match=f"{name} is not set") as caught:
                load(file, env, ROUTERS)
            assert caught.value.line == line_of(file.read_text(), name)
    assert load(file, None, ROUTERS).digest == config.digest


def test_a_key_in_place_of_its_variable_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(GOOD.replace("MAIN_API_KEY", "sk_live_abcdef"))
    with pytest.raises(ConfigError) as caught:
        load(file, {}, ROUTERS)
    assert "sk_" not in str(caught.value)


def test_scripts_are_found_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    scripted = 'script = "replies.jsonl"'
    file.write_text(GOOD.replace('base_url = "http://127.0.0.1:8000/v1"', scripted))
    config = load(file, None, ROUTERS)
    assert config.upstreams["main"].script == str(tmp_path / "replies.jsonl")
    assert config.digest == parse(file.read_text(), "turnout.toml", ROUTERS).digest


def test_passwords_and_header_values_are_masked_in_the_effective_configuration() -> None:
    text = GOOD.replace('"MAIN_API_KEY"', '"A"\nheaders = { X-Custom = "hush" }')
    text += '[ledger]\nurl = "postgresql+psycopg://me:hush@db/turnout"\n[sessions]\nurl = "redis://:hush@cache"\n'
    config = parse(text, "turnout.toml", ROUTERS)
    shown = msgspec.json.encode(effective(config)).decode()
    assert "hush" not in shown
    assert "me:***@db" in shown


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="turnout init"):
        load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "latin.toml")


@given(st.text(alphabet="abt[]{}=\"'\n.,#1 -\\", max_size=60))
def test_any_text_is_a_configuration_or_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text, "turnout.toml", ROUTERS)


scalars = st.one_of(
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(alphabet="ab /:.-", max_size=8),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["a", "input", "type"]), st.integers(0, 3), max_size=2),
)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(item)}" for key, item in value.items()) + "}"
    return msgspec.json.encode(value).decode()


@given(st.data())
def test_any_value_in_any_place_is_taken_or_refused_with_its_line(data: st.DataObject) -> None:
    lines = GOOD.splitlines()
    number = data.draw(st.sampled_from([i for i, line in enumerate(lines) if " = " in line]))
    key = lines[number].split(" = ")[0]
    lines[number] = f"{key} = {as_toml(data.draw(scalars))}"
    config, tables = read("\n".join(lines), "turnout.toml", ROUTERS)
    assert (config is None) == bool(tables.findings)
    for finding in tables.findings:
        assert finding.line is not None
        assert finding.key
        assert finding.message


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(GOOD, "utf-8-sig")
    assert load(file, None, ROUTERS).routes.keys() == {"coder"}


def test_white_space_around_a_secret_is_not_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(GOOD)
    config = load(file, {"MAIN_API_KEY": "abcdef-123\n"}, ROUTERS)
    assert secret({"MAIN_API_KEY": "abcdef-123\n"}, config.upstreams["main"].api_key_env) == "abcdef-123"


def test_a_secret_that_no_header_can_carry_is_refused_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text(GOOD)
    with pytest.raises(ConfigError, match="MAIN_API_KEY holds a line break") as caught:
        load(file, {"MAIN_API_KEY": "abcdef-123\nabcdef-456"}, ROUTERS)
    assert caught.value.key == "upstreams.main.api_key_env"
    assert "abcdef" not in str(caught.value)


def test_a_small_model_that_is_taken_is_named_where_it_stands() -> None:
    text = """
[upstreams.main]
format = "openai_chat"
base_url = "http://127.0.0.1:8000/v1"
[targets.one]
upstream = "main"
model = "m"
[routes.a]
type = "passthrough"
target = "one"
[routes.b]
type = "passthrough"
target = "one"
background = "one"
small_models = ["mini", "a"]
"""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.key) == (15, "routes.b.small_models[1]")
