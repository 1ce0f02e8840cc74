"""Whatever a gateway says in place of what it should: an error of ours, and no other."""

import copy
import json

import pytest

from discreet.client.example import ExampleGateway
from discreet.errors import DiscreetError

COUNT = "SELECT COUNT(*) AS n FROM people"
ODD = (
    None, True, 10**400, -(10**400), float("nan"), float("inf"), -float("inf"), -1, 2**63, 1e308,
    "", "x", "\ud800", [], {}, [[]], [{}], {"a": 1}, ["x"],
)  # fmt: skip
ACTS = {
    "describe": lambda tables: tables.describe(),
    "refresh": lambda tables: tables.refresh(),
    "remaining": lambda tables: tables.remaining,
    "datasets": lambda tables: tables.datasets(),
    "budgets": lambda tables: [str(one) for one in tables.budgets()],
    "quote": lambda tables: str(tables.quote(COUNT, epsilon=0.1)),
    "sql": lambda tables: str(tables.sql(COUNT, epsilon=0.001)),
    "plan": lambda tables: str(tables.plan([COUNT], epsilon=0.001)),
    "release": lambda tables: str(tables.plan([COUNT], epsilon=1e-6).release()[0]),
    "job": lambda tables: str(tables.begin(COUNT, epsilon=0.001).result(timeout=5)),
    "receipt": lambda tables: tables.receipt(1),
    "checkpoint": lambda tables: tables.checkpoint(),
    "verify": lambda tables: tables.verify_log(),
}


def places(document, depth=4):
    """Yield where something stands in a document, by the way there."""
    inside = document.items() if isinstance(document, dict) else enumerate(document[:2])
    for name, value in inside:
        yield (name,)
        if depth and isinstance(value, dict | list):
            yield from ((name, *rest) for rest in places(value, depth - 1))


def changed(document, place, value):
    made = copy.deepcopy(document)
    inner = made
    for name in place[:-1]:
        inner = inner[name]
    if value == "gone":
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return made


class Meddler:
    """Answers as a real gateway does, and keeps what it said; then one of those is odd."""

    def __init__(self, real):
        self._real, self.said, self.odd, self._at = real, [], None, 0

    def call(self, call):
        self._at += 1
        if self.odd is not None and self._at - 1 == self.odd[0]:
            return self.odd[1]
        if self.odd is not None and self._at <= len(self.said):
            return self.said[self._at - 1]  # nothing new is paid for each time
        document = json.loads(json.dumps(self._real.call(call)))
        if self.odd is None:
            self.said.append(document)
        return document

    def begin(self, odd):
        self.odd, self._at = odd, 0

    def close(self):
        pass


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ACTS)
def test_odd_documents_raise_errors_of_ours(name):
    strange = {}
    with ExampleGateway() as gateway:
        tables = gateway.tables()
        _ = tables.vkey
        meddler = Meddler(tables._wire)
        tables._wire = tables._log._wire = meddler
        ACTS[name](tables)
        said = list(meddler.said)
        for number, document in enumerate(said):
            for place in places(document):
                for value in (*ODD, "gone"):
                    meddler.begin((number, changed(document, place, value)))
                    tables._log._seen.clear()
                    try:
                        ACTS[name](tables)
                    except DiscreetError:
                        pass
                    except Exception as error:
                        strange[place] = f"{str(value)[:20]}: {error!r}"
    assert not strange
