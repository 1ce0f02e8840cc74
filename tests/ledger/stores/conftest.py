"""A ledger with an account in one file, to be copied."""

from pathlib import Path

import pytest
from ledger_crashes import LOSS, WHO, found

from discreet.ledger import Ledger


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """A ledger with an account, in one file."""
    place = tmp_path_factory.mktemp("prepared") / "budget.db"
    found(place)
    with Ledger.open(place) as ledger:
        for n in range(5):
            ledger["people"].charge(LOSS, **WHO, key=f"old-{n}")
    return place
