"""Responses continued by id: found while young, bounded, never refused."""

from turnout.routing.core import Lane, TargetName
from turnout.sessions.responses import ResponseStore, StoredResponse


def response(i: int, size: int = 10) -> StoredResponse:
    return StoredResponse(f"r{i}", Lane(), TargetName("t"), (), (), True, size)


def test_an_id_is_found_until_it_expires():
    now = [0.0]
    store = ResponseStore(ttl_s=5, clock=lambda: now[0])
    store.keep(response(1))
    assert store.find("r1") == response(1)
    assert store.find("other") is None
    now[0] = 6
    assert store.find("r1") is None
    assert len(store) == 0


def test_the_least_recently_used_go_first():
    store = ResponseStore(max_count=2)
    store.keep(response(1))
    store.keep(response(2))
    store.find("r1")
    store.keep(response(3))
    assert store.find("r2") is None
    assert store.find("r1") is not None


def test_bytes_are_bounded_but_the_newest_always_stays():
    store = ResponseStore(max_bytes=25)
    for i in range(4):
        store.keep(response(i))
    assert len(store) == 2
    store.keep(response(9, size=1000))
    assert store.find("r9") is not None
    assert len(store) == 1


def test_keeping_an_id_again_replaces_it():
    store = ResponseStore(max_bytes=25)
    for _ in range(5):
        store.keep(response(1))
    assert len(store) == 1
    assert store._bytes == 10
