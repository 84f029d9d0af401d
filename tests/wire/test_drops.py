"""The drop report and strict mode."""

import pytest

from turnout.errors import ClientError
from turnout.wire.drops import Drop, Drops, refuse_drops


def test_the_report_keeps_order_and_kind():
    drops = Drops()
    drops.drop("a", "gone")
    drops.downgrade("b", "less")
    drops.emulate("c", "other means")
    drops.extras("messages[0]", {"x": 1, "y": 2}, "Chat")
    drops.extras("", {"z": 3}, "Chat")
    assert [(d.path, d.how) for d in drops.found] == [
        ("a", "dropped"),
        ("b", "downgraded"),
        ("c", "emulated"),
        ("messages[0].x", "dropped"),
        ("messages[0].y", "dropped"),
        ("z", "dropped"),
    ]


def test_strict_refuses_what_is_lost_and_names_it():
    with pytest.raises(ClientError, match=r"top_k: no such field \(and 1 more\)") as caught:
        refuse_drops(
            [Drop("a", "emulated", "e"), Drop("top_k", "dropped", "no such field"), Drop("b", "downgraded", "l")]
        )
    assert (caught.value.code, caught.value.param) == ("lossy_translation", "top_k")


def test_strict_allows_emulation():
    refuse_drops([Drop("a", "emulated", "e")])
    refuse_drops([])
