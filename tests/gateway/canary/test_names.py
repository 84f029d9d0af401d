"""Canaries of one route have names of their own: lanes and evidence belong to a canary by its name."""

import pytest

from turnout.gateway.checking import check
from turnout.gateway.tables import Finding

UPSTREAM = """\
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:8000/v1"
[targets.a]
upstream = "u"
model = "a"
[targets.b]
upstream = "u"
model = "b"
"""
BY_AGENT = """\
[routes.coder]
type = "canary"
incumbent = "a"
candidate = "b"
[routes.coder.subagents]
type = "canary"
incumbent = "b"
candidate = "a"
"""


def errors(text: str) -> list[Finding]:
    return [one for one in check(UPSTREAM + text, "turnout.toml", {})[1] if one.severity == "error"]


@pytest.mark.parametrize(("named", "line"), [("", 14), ('name = "canary"', 18)])
def test_a_name_that_is_taken_is_refused_with_line_and_key(named: str, line: int) -> None:
    (found,) = errors(BY_AGENT + named)
    assert (found.key, found.line) == ("routes.coder.subagents.name", line)
    assert found.message == "the canary `canary` is also that of routes.coder; their lanes could not be told apart"
    assert found.hint == "give this one another `name`"


def test_other_names_and_other_routes_are_fine() -> None:
    first = BY_AGENT + 'name = "second"\n'
    assert errors(first + first.replace("coder", "writer")) == []
