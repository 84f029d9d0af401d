"""The line index agrees with tomllib on which keys a text holds."""

import tomllib
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from turnout.gateway.lines import Path, dotted, line_index

TEXT = '''\
# a comment with [brackets]
title = "a \\" = b" # after

[a.b]
"quoted key" = 'x'
many = [
  1, # one
  { deep = [2, "]"] },
]
dotted.key = """
two = 1
lines\\
"""""
[[list]]
x = 1
[[list]]
x = 2
[list.sub]
y = 1979-05-27T07:32:00Z
'''


def paths(value: Any, path: Path = ()) -> set[Path]:
    found = {path} if path else set()
    if isinstance(value, dict):
        found |= {p for key, item in value.items() for p in paths(item, (*path, key))}
    elif isinstance(value, list):
        found |= {p for i, item in enumerate(value) for p in paths(item, (*path, i))}
    return found


def test_every_key_is_found_on_its_line() -> None:
    index = line_index(TEXT)
    assert set(index) == paths(tomllib.loads(TEXT))
    assert index[("title",)] == 2
    assert index[("a", "b", "quoted key")] == 5
    assert index[("a", "b", "many", 1, "deep", 1)] == 8
    assert index[("a", "b", "dotted", "key")] == 10
    assert index[("list", 0)] == 14
    assert index[("list", 1, "x")] == 17
    assert index[("list", 1, "sub", "y")] == 19


pieces = st.sampled_from(
    [
        "[t]\n",
        "[t.u]\n",
        "[[l]]\n",
        "a = 1\n",
        "b.c = [1, 2]\n",
        "d = {e = 'x', f = [{}]}\n",
        'g = """\n"\n"""\n',
        "\n",
        "# #\n",
    ]
)


@given(st.lists(pieces, max_size=8))
def test_the_index_holds_exactly_the_paths_of_the_document(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    index = line_index(text)
    assert set(index) == paths(document)
    assert all(1 <= line <= text.count("\n") for line in index.values())


def test_paths_are_written_as_people_write_them() -> None:
    assert dotted(("routes", "a b", "targets", 1, "x-y")) == 'routes."a b".targets[1].x-y'
