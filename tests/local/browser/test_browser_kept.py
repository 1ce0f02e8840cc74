"""A browser keeps its responses as a device in Python does: one a value, for ever."""

from datetime import UTC, datetime, timedelta

import pytest

from discreet import local
from discreet.local.wire import parameters_of, sort_out

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.lengthy]

OPEN = """async (parameters) => { window.collection = await local.openCollection(parameters); }"""
COLLECT = """async (value) => {
  const report = await collection.collect(value);
  return report && [...report];
}"""
KINDS = [
    local.RepeatedDirect(domain=2**20, epsilon=1, first=1),
    local.RepeatedUnary(domain=64, epsilon=1, first=1, optimized=True),
]


class Days:
    """A device that is asked once a day, and what its reports look like without their tokens."""

    def __init__(self, page, parameters):
        self.page, self.parameters = page, parameters
        self.day = datetime(2030, 1, 1, tzinfo=UTC)
        page.clock.install(time=self.day)
        page.evaluate(OPEN, parameters.document)

    def ask(self, value):
        self.day += timedelta(days=1)
        self.page.clock.set_fixed_time(self.day)
        report = bytes(self.page.evaluate(COLLECT, value))
        assert sort_out(self.parameters, [report]).accepted == 1
        return report[33:]


@pytest.mark.parametrize("randomiser", KINDS, ids=lambda one: type(one).__name__)
def test_a_value_has_one_response_for_ever(device, randomiser):
    # A report is the response itself here; two drawn anew would be alike with chance < 1e-9.
    parameters = parameters_of(randomiser, name="x", a_day=1, lifetime=9)
    days = Days(device(), parameters)
    seven, eight, none = days.ask(7), days.ask(8), days.ask(None)
    assert len({seven, eight, none}) == 3
    days.page.reload()
    days.page.evaluate(OPEN, parameters.document)
    assert [days.ask(value) for value in (8, 7, None, 7)] == [eight, seven, none, seven]
    assert days.page.evaluate(COLLECT, 7) is None  # once a day


@pytest.mark.parametrize("randomiser", KINDS, ids=lambda one: type(one).__name__)
def test_values_beyond_the_lifetime_share_a_random_response(device, randomiser):
    """Falling silent would tell that a value is new, and a response of its own would cost more."""
    days = Days(device(), parameters_of(randomiser, name="x", a_day=1, lifetime=2))
    first, second, third, fourth = (days.ask(value) for value in range(4))
    assert len({first, second, third}) == 3
    assert third == fourth
    assert [days.ask(value) for value in (9, 1, 0)] == [third, second, first]


@pytest.mark.parametrize("randomiser", KINDS, ids=lambda one: type(one).__name__)
def test_two_tabs_keep_the_same_response(device, randomiser):
    document = parameters_of(randomiser, name="x", a_day=1, lifetime=1).document
    tabs = [device(), device()]
    for tab in tabs:
        tab.evaluate(OPEN, document)
        tab.evaluate(f"() => {{ window.answer = ({COLLECT})(3); }}")
    assert sorted(tab.evaluate("async () => (await answer) === null") for tab in tabs) == [0, 1]
    kept = """() => new Promise((resolve) => {
      indexedDB.open("discreet-local").onsuccess = ({ target }) => {
        const all = target.result.transaction("collections").objectStore("collections").getAll();
        all.onsuccess = () => resolve(all.result.map((one) => [...one.kept.keys()]));
      };
    })"""
    assert tabs[0].evaluate(kept) == [[3]]


def test_fresh_coins_are_tossed_each_day(device):
    randomiser = local.RepeatedUnary(domain=64, epsilon=2, first=1, optimized=False)
    days = Days(device(), parameters_of(randomiser, name="x", a_day=1, lifetime=9))
    assert len({days.ask(7) for _ in range(5)}) == 5


REFUSED = (
    "(parameters) => local.openCollection(parameters).then(() => null, (told) => told.message)"
)
COINS = [("repeated-direct", "permanent"), ("repeated-direct", "keep"), ("repeated-unary", "keep")]


@pytest.mark.parametrize(("kind", "coin"), COINS)
def test_coins_that_would_tell_more_are_refused(device, kind, coin):
    """Of the one report as well as of all."""
    randomiser = {
        "repeated-direct": local.RepeatedDirect(domain=4, epsilon=2, first=1),
        "repeated-unary": local.RepeatedUnary(domain=4, epsilon=2, first=1, optimized=False),
    }[kind]
    page = device()
    document = parameters_of(randomiser, name="x", a_day=1, lifetime=2).document
    law = document["randomiser"]
    assert page.evaluate(REFUSED, document) is None
    more = document | {"randomiser": law | {coin: str(int(law[coin]) + 2)}}
    assert "more than their epsilon" in page.evaluate(REFUSED, more)
