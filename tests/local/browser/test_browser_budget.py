"""A browser never answers more often than its budget allows, whatever its pages do."""

from datetime import UTC, datetime, timedelta

import pytest

from discreet import local
from discreet.local.wire import parameters_of, sort_out

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.lengthy]

QUESTION = local.DirectResponse(domain=2, epsilon=0.5)
OPEN = """async (parameters) => { window.collection = await local.openCollection(parameters); }"""
COLLECT = """async (value) => {
  const report = await collection.collect(value);
  return report && [...report];
}"""
MANY = """async (count) => {
  const reports = await Promise.all(Array.from({ length: count }, () => collection.collect(1)));
  return reports.filter((report) => report).length;
}"""


def a_question(*, randomiser=QUESTION, **given):
    return parameters_of(
        randomiser, **{"name": "x", "a_day": 1, "lifetime": 2, "values": ["no", "yes"]} | given
    )


def test_it_answers_by_label_and_number_until_the_day_is_spent(device, module):
    parameters, page = a_question(), device(module)
    page.evaluate(OPEN, parameters.document)
    reports = [page.evaluate(COLLECT, value) for value in ("yes", 0, "no")]
    assert reports[2] is None
    found = sort_out(parameters, [bytes(one) for one in reports[:2]])
    assert (found.accepted, found.dropped) == (2, 0)
    page.reload()
    page.evaluate(OPEN, parameters.document)
    assert page.evaluate("() => collection.left()") == 0
    assert page.evaluate(COLLECT, "yes") is None


def test_a_new_day_gives_more_and_life_an_end(device):
    parameters, page = a_question(), device()
    days = [datetime(2030, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(4)]
    page.clock.install(time=days[0])
    page.evaluate(OPEN, parameters.document)
    answered = []
    for day in (days[0], days[1] - timedelta(seconds=1), days[1], days[2], days[3]):
        page.clock.set_fixed_time(day)
        answered.append(page.evaluate(MANY, 5))
    assert answered == [2, 0, 2, 0, 0]


def test_putting_the_clock_back_gives_nothing(device):
    parameters, page = a_question(lifetime=9), device()
    page.clock.install(time=datetime(2030, 1, 2, tzinfo=UTC))
    page.evaluate(OPEN, parameters.document)
    assert page.evaluate(MANY, 5) == 2
    page.clock.set_fixed_time(datetime(2030, 1, 1, tzinfo=UTC))
    assert page.evaluate(MANY, 5) == 0
    page.clock.set_fixed_time(datetime(2030, 1, 2, tzinfo=UTC))
    assert page.evaluate(MANY, 5) == 0


def test_two_tabs_at_once_share_one_budget(device):
    parameters, tabs = a_question(a_day=10, lifetime=10), [device(), device()]
    for tab in tabs:
        tab.evaluate(OPEN, parameters.document)
        # Begun now, and awaited only when both have begun.
        tab.evaluate(f"() => {{ window.many = ({MANY})(50); }}")
    assert sum(tab.evaluate("() => many") for tab in tabs) == 20


def test_it_is_charged_even_if_no_report_follows(device):
    """A crash while a report is drawn wastes budget: it never gives a report that was not paid."""
    page = device()
    page.evaluate(OPEN, a_question().document)
    page.evaluate(COLLECT, "yes")
    failed = """async () => {
      const kept = crypto.getRandomValues;
      crypto.getRandomValues = () => { throw new Error("crashed"); };
      const told = await collection.collect("yes").catch((error) => error.message);
      crypto.getRandomValues = kept;
      return [told, await collection.left()];
    }"""
    assert page.evaluate(failed) == ["crashed", 0]


def test_having_no_value_is_answered_and_charged_alike(device):
    parameters, page = a_question(), device()
    page.evaluate(OPEN, parameters.document)
    reports = [page.evaluate(COLLECT, None) for _ in range(3)]
    assert reports[2] is None
    assert sort_out(parameters, [bytes(one) for one in reports[:2]]).accepted == 2


def test_another_collection_has_a_budget_of_its_own(device):
    page = device()
    for _ in range(2):
        page.evaluate(OPEN, a_question().document)
        assert page.evaluate(MANY, 5) == 2


def test_it_answers_while_the_collection_is_open(device):
    page = device()
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    page.clock.install(time=noon)
    hour = timedelta(hours=1)
    for window, answers in [((-hour, hour), 2), ((hour, 2 * hour), 0), ((-2 * hour, -hour), 0)]:
        when = {"not_before": noon + window[0], "not_after": noon + window[1]}
        page.evaluate(OPEN, a_question(**when).document)
        assert page.evaluate(MANY, 5) == answers


REFUSED = (
    "(parameters) => local.openCollection(parameters).then(() => null, (told) => told.message)"
)


def test_parameters_that_would_tell_more_are_refused(device, module):
    page, document = device(module), a_question().document
    law = document["randomiser"]
    keep = int(law["keep"])
    assert page.evaluate(REFUSED, document) is None
    for other in (keep + 1, 2**64 - 1, 2**64):  # the very next coin is one too many
        changed = document | {"randomiser": law | {"keep": str(other)}}
        assert "more than their epsilon" in page.evaluate(REFUSED, changed)
    for member in ({"format": "discreet-local/2"}, {"randomiser": law | {"kind": "toString"}}):
        assert "newer" in page.evaluate(REFUSED, document | member)
    assert "hexadecimal" in page.evaluate(REFUSED, document | {"collection": "0"})
    for domain in (1, 2.5, "2", 2**31 + 1):
        assert "domain" in page.evaluate(
            REFUSED, document | {"randomiser": law | {"domain": domain}}
        )


def test_coins_that_tell_by_what_they_never_show_are_refused(device, module):
    """A report that one value never gives tells as much as one that only it gives."""
    page, document = device(module), a_question().document
    law = document["randomiser"]
    for keep in (0, 1, 2**63 - 2**62):
        changed = document | {"randomiser": law | {"keep": str(keep)}}
        assert "more than their epsilon" in page.evaluate(REFUSED, changed)
    for kind in (
        local.SymmetricUnary(domain=3, epsilon=1),
        local.RepeatedDirect(domain=3, epsilon=1, first=0.5),
    ):
        document = a_question(randomiser=kind, values=None).document
        law = document["randomiser"]
        assert page.evaluate(REFUSED, document) is None
        for name in {"own", "permanent", "keep"} & law.keys():
            changed = document | {"randomiser": law | {name: "0"}}
            assert "more than their epsilon" in page.evaluate(REFUSED, changed)


def test_cells_beyond_those_that_are_counted_are_refused(device, module):
    """A cell that no other value's report can name would tell the value's own."""
    page = device(module)
    kind = local.LocalHashing(domain=100, epsilon=1)
    document = a_question(randomiser=kind, values=None).document
    law = document["randomiser"]
    assert page.evaluate(REFUSED, document) is None
    for changes in ({"hash_bits": "2.1"}, {"word_bits": "8.5"}, {"cells": "1", "keep": str(2**63)}):
        changed = document | {"randomiser": law | changes}
        assert "more than their epsilon" in page.evaluate(REFUSED, changed)
    kind = local.PublicHashing(domain=100, epsilon=1)
    document = a_question(randomiser=kind, values=None).document
    law = document["randomiser"]
    assert page.evaluate(REFUSED, document) is None
    for bits in (21, 40, 60):
        changes = {"cells": str(2**bits), "keep": str(2 ** (65 - bits))}
        changed = document | {"randomiser": law | changes}
        assert "more than their epsilon" in page.evaluate(REFUSED, changed)


def test_the_same_collection_with_other_parameters_is_refused(device):
    page, document = device(), a_question().document
    page.evaluate(OPEN, document)
    assert page.evaluate(MANY, 1) == 1
    page.evaluate(OPEN, document | {"lifetime": "1000", "a_day": "1000"})
    told = "async () => collection.collect(1).catch((told) => told.message)"
    assert "other parameters" in page.evaluate(told)


@pytest.mark.parametrize("value", ["maybe", 2, -1, 0.5, "1"])
def test_a_value_that_is_none_is_refused_and_costs_nothing(device, value):
    page = device()
    page.evaluate(OPEN, a_question().document)
    told = "async (value) => collection.collect(value).catch((told) => told.message)"
    assert "one of the collection's" in page.evaluate(told, value)
    assert page.evaluate("() => collection.left()") == 2
