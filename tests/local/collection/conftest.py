"""A ledger with accounts for devices, and collections on them."""

import pytest

from discreet import local
from discreet.ledger import Ledger
from discreet.local.collection.collection import Collection
from discreet.privacy import Guarantee, Unit


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as found:
        yield found


@pytest.fixture
def make_account(ledger):
    def make(name="devices", *, neighbours="replace_one", unit=None, epsilon=10, delta=0):
        unit = Unit.column("device") if unit is None else unit
        guarantee = Guarantee(epsilon=epsilon, delta=delta)
        return ledger.create(name, unit=unit, neighbours=neighbours, guarantee=guarantee)

    return make


@pytest.fixture
def open_collection(ledger, tmp_path):
    made = []

    def make(path="emoji.db", **said):
        terms = {
            "name": "emoji",
            "account": "devices",
            "randomiser": local.HadamardResponse(domain=8, epsilon=2),
            "a_day": 2,
            "lifetime": 10,
            "minimum": 100,
            "who": "ana",
            "purpose": "keyboard",
        } | said
        made.append(Collection.open(ledger, tmp_path / path, **terms))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def collection(make_account, open_collection):
    make_account()
    return open_collection()
