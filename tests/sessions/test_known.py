"""What a gateway knows of lanes is bounded by size and time."""

import pytest

from turnout.sessions import known as module
from turnout.sessions.known import Known


def test_the_longest_unused_lanes_go_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "KEPT_BYTES", 10_000)
    known = Known(60.0)
    for number in range(50):
        known.keep(b"%d" % number, 1, b"x" * 700, 0)
        known.keep(b"0", 1, b"y" * 700, 0)
    assert len(known) == 10
    assert known.find(b"0") is not None
    assert known.find(b"49") is not None
    assert known.find(b"30") is None
    for number in range(50):
        known.forget(b"%d" % number)
    assert (len(known), known._bytes) == (0, 0)


def test_a_lane_too_large_for_all_the_room_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "KEPT_BYTES", 10_000)
    known = Known(60.0)
    known.keep(b"a", 1, b"x" * 20_000, 0)
    assert (len(known), known._bytes) == (0, 0)


def test_an_idle_lane_is_forgotten():
    now = [0.0]
    known = Known(60.0, lambda: now[0])
    known.keep(b"a", 1, b"x", 0)
    now[0] = 61.0
    assert known.find(b"a") is None
    assert len(known) == 0
