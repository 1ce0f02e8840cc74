"""One front end over real tables, for all tests of a module."""

import pytest
from wire_gateway import RawClient, SmallDesk, running_wire

from discreet.testing import temporary_tables


@pytest.fixture(scope="module")
def wire():
    with temporary_tables(epsilon=50) as tables, running_wire(SmallDesk({"people": tables})) as it:
        yield it


@pytest.fixture
def raw(wire):
    with RawClient(wire) as client:
        yield client
