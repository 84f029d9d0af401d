"""What a reply must be before anybody votes on it, and which replies say the same."""

from typing import Any

import fastjsonschema
import pytest

from turnout.conversation import Conversation, Message, OutputFormat, Reply, Settings, Text, Tool, ToolCall, ToolChoice
from turnout.routing.collaboration.electorate import Electorate
from turnout.routing.collaboration.first import order
from turnout.routing.collaboration.fitness import alike, key_of, unfit
from turnout.routing.collaboration.schema import misfit

VALUES: list[Any] = [
    None, True, 0, 1, 1.5, -3, "", "ab", "abcdef", [], [1, 2], ["a"], {}, {"a": 1}, {"a": "x", "b": [1]}, {"c": None},
]  # fmt: skip
SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"type": ["string", "null"], "minLength": 2, "maxLength": 4},
    {"type": "number", "minimum": 0, "exclusiveMaximum": 1.5},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    {"enum": [1, "ab", None]},
    {"const": True},
    {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/one"}], "$defs": {"one": {"required": ["a"], "type": "object"}}},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    {"not": {"type": "object"}},
    {"allOf": [{"type": "object"}, {"maxProperties": 1}]},
    {"additionalProperties": {"type": "integer"}},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_means_what_it_means_elsewhere(schema: Any) -> None:
    peer = fastjsonschema.compile(schema)
    for value in VALUES:
        try:
            peer(value)
            fits = True
        except fastjsonschema.JsonSchemaValueException:
            fits = False
        assert (misfit(value, schema) == "") == fits, value


def test_a_schema_that_leads_nowhere_or_round_ends() -> None:
    assert misfit(1, {"$ref": "#"}) == ""
    assert misfit(1, {"$ref": "https://elsewhere.example/schema"}) == ""
    assert misfit({"a": 1}, {"properties": 3, "required": "a", "type": {}, "enum": 4}) == ""


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "allOf"])
def test_a_schema_that_doubles_at_each_level_ends(key: str) -> None:
    assert misfit(1, {key: [{"$ref": "#"}] * 3}) == ""


@pytest.mark.parametrize("depth", [100, 950, 990, 1000, 5000, 200_000])
def test_a_reply_may_be_nested_as_deeply_as_it_likes(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    reply = Reply((Text(deep),))
    assert alike(reply) == alike(Reply((Text(f" {deep}"),)))
    assert unfit(reply, TOOLS, JSON_ONLY)
    assert unfit(call(f'{{"b": {deep}}}'), TOOLS, Settings())


def call(arguments: str, name: str = "add") -> Reply:
    return Reply((ToolCall("c", name, arguments),), stop="tool_calls")


TOOLS = Conversation((Message("user", (Text("go"),)),), tools=(Tool("add", parameters={"required": ["a"]}),))
JSON_ONLY = Settings(output=OutputFormat("json_schema", schema={"type": "object", "required": ["a"]}))


@pytest.mark.parametrize(
    ("reply", "settings", "said"),
    [
        (Reply(()), Settings(), "empty"),
        (Reply((Text("  "),)), Settings(), "empty"),
        (call("{"), Settings(), "not JSON"),
        (call("[1]"), Settings(), "not a JSON object"),
        (call("{}"), Settings(), "`a` is missing"),
        (call('{"a": 1}', "sub"), Settings(), "not offered"),
        (call('{"a": 1}'), Settings(tool_choice=ToolChoice("none")), "may not"),
        (Reply((Text("hi"),)), Settings(tool_choice=ToolChoice("required")), "must"),
        (Reply((Text("hi"),)), JSON_ONLY, "not JSON"),
        (Reply((Text("{}"),)), JSON_ONLY, "`a` is missing"),
        (Reply((Text('{"a": 1}'),)), JSON_ONLY, ""),
        (call('{"a": 1}'), JSON_ONLY, ""),
        (Reply((Text("hi"),)), Settings(), ""),
    ],
)
def test_what_is_wrong_with_a_reply(reply: Reply, settings: Settings, said: str) -> None:
    found = unfit(reply, TOOLS, settings)
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Yes.", "yes", True),
        ("1,000", "1000.0", True),
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ("```python\nx = 1\n```", "```\nx  =  1\n```", True),
        ("41", "42", False),
        ("yes", "no", False),
    ],
)
def test_replies_that_say_the_same(one: str, other: str, same: bool) -> None:
    replies = Reply((Text(one),)), Reply((Text(other),))
    assert (alike(replies[0]) == alike(replies[1])) == same
    assert key_of(replies[0]) != key_of(replies[1])


def test_who_answers_first() -> None:
    pool = Electorate("abc", {"a": 3.0, "b": 2.0}, ["a", "b"], {}, prices={"a": 3.0, "b": 2.0, "c": 1.0})

    def dice(hop: int, attempt: int) -> float:
        return 0.5

    def first(prior: Any, **more: Any) -> str:
        return "".join(order(prior, pool, "abc", dice, **more))

    assert first("max_received") == "abc"
    assert first("cheapest") == "cba"
    assert first("cheapest_anchor") == "bac"
    assert first("fastest", speeds={"c": 9.0, "a": 1.0}) == "cab"
    assert first("random") == "bac"
    assert first("cheapest", preferred=["b", "x"]) == "bca"
