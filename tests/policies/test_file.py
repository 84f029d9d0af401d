"""A policy file says all that its policy holds, and what is wrong with it where it is."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.errors import ConfigError
from turnout.policies.file import parse, text_of
from turnout.policies.identity import identity
from turnout.policies.policy import Evidence, Figure, ModelBehind, Policy

AT = datetime(2026, 12, 1, 1, 2, 3, tzinfo=UTC)
_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=9)
_DIGEST = st.text("0123456789abcdef", min_size=12, max_size=12)
_NUMBER = st.floats(-1e9, 1e9)
_FIGURE = st.builds(Figure, _NUMBER, st.none() | _NUMBER, st.none() | _NUMBER, st.none() | st.integers(0, 9), _TEXT)
_EVIDENCE = st.builds(
    Evidence,
    data=_TEXT.filter(bool),
    data_digest=_TEXT,
    rows=st.none() | st.integers(0, 99),
    at=st.none() | st.just(AT),
    split=_TEXT,
    constraint=_TEXT,
    holds=st.none() | st.booleans(),
    assumptions=st.lists(_TEXT, max_size=2).map(tuple),
    metrics=st.dictionaries(_TEXT, _FIGURE, max_size=2),
    before=st.dictionaries(_TEXT, _FIGURE, max_size=2),
)
POLICIES = st.builds(
    Policy,
    route=_TEXT.filter(bool),
    router=st.dictionaries(st.sampled_from(["type", "threshold", "weights"]), _NUMBER | _TEXT | st.lists(_NUMBER)),
    digest=st.just("") | _DIGEST,
    made_at=st.just(AT),
    made_by=_TEXT.filter(bool),
    came_from=st.just("") | _DIGEST,
    note=_TEXT,
    models=st.dictionaries(_TEXT, st.builds(ModelBehind, _TEXT.filter(bool), _TEXT, _TEXT, _TEXT), max_size=2),
    evidence=st.none() | _EVIDENCE,
)


@settings(max_examples=60)
@given(POLICIES)
def test_reading_undoes_writing(policy: Policy) -> None:
    assert parse(text_of(policy), "p.toml") == policy


_TABLES = st.dictionaries(_TEXT, _NUMBER | _TEXT | st.dictionaries(_TEXT, _NUMBER, max_size=3), min_size=1, max_size=5)


@settings(max_examples=60)
@given(_TABLES, st.randoms())
def test_identity_is_that_of_the_table_in_any_order_without_names_for_people(
    table: dict[str, object], dice: object
) -> None:
    keys = list(table)
    dice.shuffle(keys)  # type: ignore[attr-defined]
    models = {"b": ModelBehind("m"), "a": ModelBehind("n")}
    shuffled = {key: table[key] for key in keys} | {"description": "any", "aliases": ["x"]}
    bare = {key: value for key, value in table.items() if key not in ("description", "aliases")}
    assert identity(bare, models) == identity(shuffled, dict(reversed(models.items())))
    assert identity(bare, models) != identity(bare | {"another": 1}, models)
    assert identity(bare, models) != identity(bare, models | {"b": ModelBehind("m", effort="high")})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("route = ", "not valid TOML"),
        ("[router]\ntype = 'stage'", "missing required field `route`; a policy file has route"),
        ("route = 'a'\nrouter = 3", "p.toml: router: expected `object`"),
        ("route = 'a'\nextra = 1\n[router]", "unknown field `extra`"),
        ("route = 'a'\ndigest = 'xyz'\n[router]", "p.toml: digest:"),
        ("route = 'a'\nmade_at = 2026-01-01T00:00:00\n[router]", "p.toml: made_at:"),
        ("route = 'a'\n[router]\naliases = ['b']", "router.aliases: `aliases` is not versioned"),
        (
            "route = 'a'\n[router]\n[evidence]\ndata = 'd'\nrows = 'many'",
            "p.toml: evidence.rows: expected `int | null`",
        ),
        ("route = 'a'\n[router]\n[evidence]\ndata = 'd'\nmetrics.success = 1", "evidence.metrics"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "p.toml")
    assert says in str(caught.value)
