"""Reading a collaboration graph: what the file holds, which relations count, when it is too old, what is wrong with it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from turnout.errors import ConfigError
from turnout.routing.collaboration.graph import Graph, Reviewed, read

MADE = datetime(2026, 1, 31, 12, tzinfo=UTC)


def relations(anchors: list[str]) -> dict[str, Any]:
    return {
        "scores": {"a": {"b": 6.0, "c": 5.0}, "b": {"a": 9.0, "c": 7.0}, "c": {"a": 8.0, "b": 5.0}},
        "given": {"a": 5.5, "b": 8.0, "c": 6.5},
        "received": {"a": 8.5, "b": 5.5, "c": None},
        "category": {"a": "LH", "b": "HL", "c": None},
        "C": anchors,
        "C_prime": [],
        "C_i": {"a": [], "b": anchors, "c": anchors},
        "C_prime_i": {"a": [], "b": [], "c": []},
    }


def file(**changes: Any) -> bytes:
    manifest = {
        "made_at": MADE.isoformat().replace("+00:00", "Z"),
        "models": [{"name": "a", "model": "vendor-a", "revision": "1"}, {"name": "b", "model": "vendor-b"}],
        "hard_ttl_days": 90,
    }
    by_type = {"math": relations(["a"]), "law": {**relations(["a"]), "falls_back": "12 questions, fewer than 50"}}
    graph = {"models": ["a", "b", "c"], **relations(["a"]), "by_type": by_type, "manifest": manifest, "picture": 1}
    return msgspec.json.encode({**graph, **changes})


def test_what_is_written_is_read_again() -> None:
    graph = read(file())
    assert graph.anchors == ("a",)
    assert graph.voters["b"] == ("a",)
    assert graph.known_received == {"a": 8.5, "b": 5.5}
    assert read(msgspec.json.encode(graph)) == graph
    assert b'"C_prime_i"' in msgspec.json.encode(graph)


def test_a_type_has_its_own_relations_unless_they_are_not_to_be_relied_on() -> None:
    graph = read(file())
    assert graph.of("math") is graph.by_type["math"]
    assert graph.of("law") is graph
    assert graph.of("unheard of") is graph
    assert graph.of() is graph


def test_the_id_names_what_decides_and_nothing_else() -> None:
    graph = read(file())
    assert read(file(manifest={"made_at": "2020-01-01T00:00:00Z"})).id == graph.id
    assert read(file(d2=25)).id != graph.id
    assert read(file(C_i={"a": [], "b": [], "c": []})).id != graph.id


@pytest.mark.parametrize(("days", "said"), [(29, "fresh"), (31, "stale"), (90, "stale"), (91, "expired")])
def test_old_scores_are_stale_and_then_expired(days: int, said: str) -> None:
    assert read(file()).staleness(MADE + timedelta(days=days)) == said


def test_without_a_hard_limit_a_graph_never_expires() -> None:
    graph: Graph = read(file(manifest={"made_at": MADE.isoformat()}))
    assert graph.staleness(MADE + timedelta(days=9_999)) == "stale"


def test_models_that_are_not_what_was_reviewed_are_named() -> None:
    graph = read(file())
    now = {"a": Reviewed("a", "vendor-a", "2"), "b": Reviewed("b", "vendor-b", "7"), "d": Reviewed("d", "other")}
    assert graph.changed(now) == ("a",)  # b's revision was not known when it was reviewed
    assert graph.changed({"b": Reviewed("b", "vendor-x")}) == ("b",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "g.json: Input data was truncated; expected the graph"),
        (b'{"models": ["a"]}', "g.json: Object missing required field"),
        (file(C=["x"]), "g.json: C: x is not among `models`"),
        (file(C_i={"a": ["b"], "b": ["y"], "c": []}), "g.json: C_i.b: y is not among `models`"),
        (file(C_i={"a": ["b"]}), "g.json: C_i: b is missing"),
        (file(models=["a", "b", "c", "c"]), "g.json: models: two models have the same name"),
        (file(manifest={"made_at": "yesterday"}), "g.json: manifest.made_at: expected a time with its zone"),
        (file(manifest={"made_at": "2026-01-31T12:00:00"}), "g.json: manifest.made_at: expected a time with its zone"),
        (file(by_type={"math": relations(["z"])}), "g.json: by_type.math.C: z is not among `models`"),
        (file(category={"a": "XX", "b": None, "c": None}), "g.json: Invalid enum value 'XX' - at `$.category"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(data: bytes, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(data, "g.json")
    assert str(raised.value).startswith(said)
