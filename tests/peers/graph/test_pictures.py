"""Pictures of graphs."""

import warnings

import pytest

from turnout.peers.graph.pictures import PANELS, drawn
from turnout.peers.graph.relations import Settings, relate


@pytest.mark.parametrize("panel", PANELS)
def test_names_in_any_script_stand_in_a_page_as_they_are(panel: str) -> None:
    names = ("模型", "größer", "🤖")
    scores = {j: {i: 4.0 + k for k, i in enumerate(names) if i != j} for j in names}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = drawn(panel, relate(names, scores, Settings()), None, 50.0)
    assert all(name in svg for name in names)
