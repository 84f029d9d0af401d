"""Shared by all tests."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import postgres_server
from tests.redis_server import RedisServer
from tests.redis_server import program as redis_program

# How long an example takes says something about the machine, not about the code. `thorough` is for a long run by hand.
settings.register_profile(
    "turnout", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.register_profile("thorough", settings.get_profile("turnout"), max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "turnout"))


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis server for tests that leave it running; they begin with what others left unless they use `redis_url`."""
    server = RedisServer(redis_program(), tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_url(shared_redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty database, whose answers are waited for however busy this machine is."""
    monkeypatch.setattr("turnout.sessions.link.CALL_S", 20.0)
    with socket.create_connection(("127.0.0.1", shared_redis.port), 5) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(64) == b"+OK\r\n"
    return shared_redis.url


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server that the test may stop."""
    server = RedisServer(redis_program(), tmp_path)
    yield server
    server.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a running PostgreSQL server."""
    with postgres_server.serving(postgres_server.programs()) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database for a ledger: an SQLite file, and one of PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return postgres_server.emptied(request.getfixturevalue("postgres"))
