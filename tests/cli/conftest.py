"""What all tests of the command line start from."""

import pytest


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    """Forget how wide a terminal is, which runners of tests pass on: lines stay whole then."""
    monkeypatch.delenv("COLUMNS", raising=False)
