"""Databases to run the ledger's tests on."""

import pytest


@pytest.fixture
def url(ledger_url: str) -> str:
    """The address of an empty database, of each kind in turn."""
    return ledger_url
