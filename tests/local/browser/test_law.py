"""A browser's reports follow the law that Python has, and Python reads them."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import local
from discreet.local.wire import parameters_of, report_length, sort_out

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.lengthy]

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one of these tests
REPORTS = 100_000
SEND = """async ([parameters, values, each]) => {
  const report = await local.simulate(parameters);
  const reports = values.flatMap((value) => Array.from({ length: each }, () => report(value)));
  await fetch("/reports", { method: "POST", body: new Blob(reports) });
}"""


def sent_by(device, site, parameters, values, *, module="discreet-local.min.js"):
    """Return what the collector reads of ``REPORTS`` reports that a browser made and sent."""
    each = REPORTS // len(values)
    device(module).evaluate(SEND, [parameters.document, values, each])
    body, length = site.bodies.pop(), report_length(parameters)
    found = sort_out(parameters, [body[i : i + length] for i in range(0, len(body), length)])
    assert (found.accepted, found.dropped) == (each * len(values), 0)
    return found.reports


def chance_of(counts, law):
    """Return how likely counts are to be as far from a law as these, by Pearson's statistic.

    Every expected count is at least 20, so that the statistic's tail is that of chi-square as far
    as FALSE_ALARM needs it.
    """
    expected = np.array([float(share) for share in law]) * counts.sum()
    assert expected.min() >= 20
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), df=len(law) - 1)


def law_of(randomiser, value):
    """Return the exact chances of all reports of a value."""
    law, own = randomiser.law, randomiser.law.keep_chance / randomiser.law.preferred
    other = (1 - randomiser.law.keep_chance) / (law.outputs - law.preferred)
    return [own if is_own(randomiser, value, code) else other for code in range(law.outputs)]


def is_own(randomiser, value, code):
    if isinstance(randomiser, local.DirectResponse):
        return code == value
    return (code >> 1 & value).bit_count() % 2 == code % 2


# Beside each stands one that differs from it by little, and must not pass for it.
RANDOMISERS = [
    (local.DirectResponse(domain=2, epsilon=1), local.DirectResponse(domain=2, epsilon=1.1)),
    (local.DirectResponse(domain=300, epsilon=3), local.DirectResponse(domain=300, epsilon=3.2)),
    (local.HadamardResponse(domain=3, epsilon=1), local.HadamardResponse(domain=3, epsilon=1.1)),
    (local.HadamardResponse(domain=500, epsilon=1), local.HadamardResponse(domain=500, epsilon=2)),
]  # fmt: skip


@pytest.mark.parametrize(("randomiser", "wrong"), RANDOMISERS, ids=lambda one: repr(one))
def test_a_browser_draws_from_the_law(device, site, randomiser, wrong):
    parameters = parameters_of(randomiser, name="x", a_day=9, lifetime=9)
    value = randomiser.domain - 1
    counts = np.bincount(sent_by(device, site, parameters, [value]), minlength=randomiser.outputs)
    assert sum(law_of(randomiser, value)) == 1
    assert chance_of(counts, law_of(randomiser, value)) >= FALSE_ALARM
    assert chance_of(counts, law_of(wrong, value)) < FALSE_ALARM
    assert chance_of(counts, law_of(randomiser, 0)) < FALSE_ALARM


def test_python_estimates_what_browsers_sent(device, site, module):
    randomiser = local.HadamardResponse(domain=1_000_000, epsilon=2)
    parameters = parameters_of(randomiser, name="pages", a_day=2, lifetime=2)
    values = [0, 1, 524_287, 999_999]
    reports = sent_by(device, site, parameters, values, module=module)
    low, high = randomiser.estimate(reports).interval(confidence=1 - Fraction(1, 10**9))
    truth = np.zeros(randomiser.domain)
    truth[values] = REPORTS // len(values)
    assert np.all(low <= truth)
    assert np.all(truth <= high)
    assert low[values].min() > 0  # and what is there is seen
