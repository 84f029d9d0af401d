"""Tool names and call ids on the way to another provider and back."""

import re

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from turnout.conversation import Tool, ToolCall
from turnout.wire.names import Names, alias, custom_arguments, custom_input, legal_id, original_id, qualified

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
name_text = st.one_of(
    st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True),
    st.from_regex(r"[a-z]{60,90}", fullmatch=True),
    st.from_regex(r"[a-z. /:]{1,12}", fullmatch=True),
    text,
)
namespaces = st.one_of(st.none(), st.sampled_from(["mcp__docs", "web", "a.b"]), name_text.filter(bool))


@given(name_text, namespaces)
def test_an_alias_is_legal_and_depends_on_the_name_alone(name, namespace):
    made = alias(name, namespace)
    assert LEGAL.match(made)
    assert alias(name, namespace) == made
    if LEGAL.match(qualified(name, namespace)):
        assert made == qualified(name, namespace)


@given(st.lists(st.tuples(name_text, namespaces, st.sampled_from(["function", "custom"])), min_size=1, max_size=6))
def test_every_tool_is_restored_from_its_alias(named):
    # Two tools that are called the same in full are one to every provider without namespaces.
    tools = [Tool(name, namespace=namespace, style=style) for name, namespace, style in named]
    assume(len({qualified(t.name, t.namespace) for t in tools}) == len(tools))
    names = Names(tools)
    for tool in tools:
        arguments = custom_arguments("raw\n") if tool.style == "custom" else "{}"
        back = names.restore(ToolCall("c", alias(tool.name, tool.namespace), arguments))
        assert (back.name, back.namespace, back.style) == (tool.name, tool.namespace, tool.style)
        assert back.arguments == ("raw\n" if tool.style == "custom" else "{}")
        assert back.id == "c"


@given(st.lists(st.from_regex(r"[a-z]{1,80}", fullmatch=True), min_size=2, max_size=20, unique=True))
def test_different_tools_get_different_aliases(names):
    assert len({alias(name) for name in names}) == len(names)


def test_the_same_name_in_two_namespaces_keeps_its_owner():
    names = Names([Tool("search", namespace="web"), Tool("search", namespace="docs")])
    assert names.restore(ToolCall("1", "web__search")).namespace == "web"
    assert names.restore(ToolCall("2", "docs__search")).namespace == "docs"
    assert names.restore(ToolCall("3", "search")) == ToolCall("3", "search")


def test_a_bare_name_is_understood_where_it_can_mean_only_one():
    names = Names([Tool("search", namespace="web"), Tool("read")])
    assert names.restore(ToolCall("1", "search")) == ToolCall("1", "search", namespace="web")
    assert names.restore(ToolCall("1", "read")) == ToolCall("1", "read")
    assert names.find("nothing") is None


def test_a_plain_tool_is_not_taken_for_a_namespaced_one_of_its_name():
    names = Names([Tool("search", namespace="web"), Tool("search")])
    assert names.restore(ToolCall("1", "search")) == ToolCall("1", "search")
    assert names.restore(ToolCall("1", "web__search")).namespace == "web"


def test_unknown_and_already_restored_calls_stay():
    names = Names([Tool("a", style="custom", namespace="n")])
    call = ToolCall("1", "b", '{"input":"x"}')
    assert names.restore(call) is call
    call = ToolCall("1", "a", "raw", style="custom", namespace="n")
    assert names.restore(call) is call


def test_server_tools_are_not_restored():
    assert Names([Tool("web_search", style="server")]).find("web_search") is None


@given(text)
def test_raw_input_travels_as_one_argument(raw):
    assert custom_input(custom_arguments(raw)) == raw
    assert msgspec.json.decode(custom_arguments(raw)) == {"input": raw}


@pytest.mark.parametrize("arguments", ["", "text", "[1]", '{"input":1}', '{"other":"x"}', '{"input":"x', "[" * 100_000])
def test_arguments_that_hold_no_input_stay_as_they_are(arguments):
    assert custom_input(arguments) == arguments


ids = st.one_of(
    st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True), st.text(max_size=20), st.text(min_size=30, max_size=200),
    st.text(max_size=20).map(lambda t: "tid_" + t),
)  # fmt: skip


@given(ids)
def test_a_call_id_is_legal_deterministic_and_reversible_where_short(call_id):
    made = legal_id(call_id)
    assert LEGAL.match(made)
    assert legal_id(call_id) == made
    if LEGAL.match(call_id) and not call_id.startswith("tid_"):
        assert made == call_id
    if len(call_id.encode("utf-8", "surrogatepass")) <= 30:
        assert original_id(made) == call_id


@given(st.lists(ids, max_size=8, unique=True))
def test_different_ids_stay_different(many):
    assert len({legal_id(i) for i in many}) == len(many)


@given(st.text(max_size=30))
def test_any_id_can_be_turned_back_without_failing(call_id):
    assert isinstance(original_id(call_id), str)
    assert isinstance(original_id("tid_" + call_id), str)
