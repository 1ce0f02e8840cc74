"""A collection with a shuffler, an analyser and a ledger in a folder of their own."""

import pytest
from shuffle_rooms import Rooms


@pytest.fixture
def rooms(tmp_path) -> Rooms:
    return Rooms.make(tmp_path)
