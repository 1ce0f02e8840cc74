"""Records of both kinds: in a file, and on a server."""

import pytest

from discreet.service.records import Records
from discreet.testing import PostgresServer


@pytest.fixture(scope="session")
def records_server():
    """A server that no test stops; each takes a database of its own."""
    with PostgresServer(settings={"max_connections": "60"}) as running:
        yield running


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=[pytest.mark.needs("postgres"), pytest.mark.lengthy]),
    ]
)
def location(request, tmp_path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "gateway.db")
    return request.getfixturevalue("records_server").new_database()


@pytest.fixture
def records(location):
    with Records.open(location) as opened:
        yield opened
