"""A browser's reports follow the law that Python has, and Python reads them."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import local
from discreet.local.frequencies.hashing import LocalHashing
from discreet.local.frequencies.projective import ProjectiveResponse
from discreet.local.frequencies.public_hashing import PublicHashing
from discreet.local.frequencies.subset import SubsetSelection
from discreet.local.frequencies.unary import OptimizedUnary, SymmetricUnary
from discreet.local.wire import parameters_of, report_length, sort_out

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.lengthy]

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one of these tests
REPORTS = 100_000
SEND = """async ([parameters, values, each]) => {
  const report = await local.simulate(parameters);
  const reports = values.flatMap((value) => Array.from({ length: each }, () => report(value)));
  await fetch("/reports", { method: "POST", body: new Blob(reports) });
}"""


def sent_by(device, site, randomiser, values, *, module="discreet-local.min.js"):
    """Return what the collector reads of ``REPORTS`` reports that a browser made and sent."""
    each = REPORTS // len(values)
    parameters = parameters_of(randomiser, name="x", a_day=9, lifetime=9)
    device(module).evaluate(SEND, [parameters.document, values, each])
    body, length = site.bodies.pop(), report_length(parameters)
    found = sort_out(parameters, [body[i : i + length] for i in range(0, len(body), length)])
    assert (found.accepted, found.dropped) == (each * len(values), 0)
    return found.reports


def chance_of(counts, law):
    """Return how likely counts are to be as far from a law as these, by Pearson's statistic."""
    expected = np.array([float(share) for share in law]) * counts.sum()
    assert expected.min() >= 20  # so that the tail is that of chi-square
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), df=len(law) - 1)


def law_of(randomiser, value):
    """Return the exact chances of all reports of a value, from what Python says are its own."""
    law = randomiser.law
    own = law.keep_chance / law.preferred
    other = (1 - law.keep_chance) / (law.outputs - law.preferred)
    chances = [own if is_own(randomiser, value, one) else other for one in range(law.outputs)]
    assert sum(chances) == 1
    return chances


def is_own(randomiser, value, code):
    """Say whether a report supports a value, as the reader has it."""
    return randomiser.supports(np.array([code]))[value] == 1


def shares(law, domain, value):
    """Return the exact chances of all reports that are a value, over both stages."""
    chances = [law.hit if one == value else law.miss for one in range(domain)]
    assert sum(chances) == 1
    return chances


# Beside each stands the epsilon of a law that differs a little, and must not pass for it.
ONE_NUMBER = [
    (local.DirectResponse, 2, 1, 1.1),
    (local.DirectResponse, 300, 3, 3.2),
    (local.HadamardResponse, 3, 1, 1.1),
    (local.HadamardResponse, 500, 1, 1.3),
    (PublicHashing, 60, 1, 1.2),
    (LocalHashing, 3, 1.2, 1.4),
    (ProjectiveResponse, 27, 0.9, 1),
]


@pytest.mark.parametrize(("kind", "domain", "epsilon", "wrong"), ONE_NUMBER)
def test_a_browser_draws_from_the_law(device, site, kind, domain, epsilon, wrong):
    randomiser, value = kind(domain=domain, epsilon=epsilon), domain - 1
    reports = sent_by(device, site, randomiser, [value])
    counts = np.bincount(reports, minlength=randomiser.outputs)
    assert chance_of(counts, law_of(randomiser, value)) >= FALSE_ALARM
    assert chance_of(counts, law_of(kind(domain=domain, epsilon=wrong), value)) < FALSE_ALARM
    assert chance_of(counts, law_of(randomiser, 0)) < FALSE_ALARM


def test_both_stages_of_a_repeated_answer_follow_the_law(device, site):
    randomiser, value = local.RepeatedDirect(domain=5, epsilon=2, first=1), 4
    counts = np.bincount(sent_by(device, site, randomiser, [value]), minlength=5)
    wrong = local.RepeatedDirect(domain=5, epsilon=2, first=1.1)
    assert chance_of(counts, shares(randomiser.law, 5, value)) >= FALSE_ALARM
    assert chance_of(counts, shares(wrong.law, 5, value)) < FALSE_ALARM


BITS = [
    (SymmetricUnary, {"epsilon": 0.5}, {"epsilon": 0.6}),
    (OptimizedUnary, {"epsilon": 0.4}, {"epsilon": 0.5}),
    (
        local.RepeatedUnary,
        {"epsilon": 1, "first": 0.4, "optimized": True},
        {"epsilon": 1, "first": 0.5, "optimized": True},
    ),
    (
        local.RepeatedUnary,
        {"epsilon": 2, "first": 0.5, "optimized": False},
        {"epsilon": 2, "first": 0.6, "optimized": False},
    ),
]


@pytest.mark.parametrize(("kind", "given", "wrong"), BITS)
def test_all_rows_of_bits_follow_the_law(device, site, kind, given, wrong):
    randomiser, value = kind(domain=9, **given), 8
    rows = sent_by(device, site, randomiser, [value])
    counts = np.bincount(rows.astype(np.int64) @ [1, 256], minlength=2**9)
    assert chance_of(counts, bits_law(randomiser, value)) >= FALSE_ALARM
    assert chance_of(counts, bits_law(kind(domain=9, **wrong), value)) < FALSE_ALARM
    assert chance_of(counts, bits_law(randomiser, 0)) < FALSE_ALARM


def bits_law(randomiser, value):
    """Return the exact chances of all rows of bits, which are independent."""
    hit, miss = randomiser.support.hit, randomiser.support.miss
    coins = [hit if one == value else miss for one in range(randomiser.domain)]
    return [
        prod(coin if code >> one & 1 else 1 - coin for one, coin in enumerate(coins))
        for code in range(2**randomiser.domain)
    ]


def test_all_sets_follow_the_law(device, site):
    randomiser, value = SubsetSelection(domain=9, epsilon=1), 8
    rows = sent_by(device, site, randomiser, [value])
    counts = np.bincount(rows.astype(np.int64) @ [1, 256], minlength=2**9)
    sets = [code for code in range(2**9) if code.bit_count() == randomiser.size]
    assert counts[sets].sum() == REPORTS
    assert chance_of(counts[sets], sets_law(randomiser, sets, value)) >= FALSE_ALARM
    wrong = SubsetSelection(domain=9, epsilon=1.1)
    assert wrong.size == randomiser.size
    assert chance_of(counts[sets], sets_law(wrong, sets, value)) < FALSE_ALARM
    assert chance_of(counts[sets], sets_law(randomiser, sets, 0)) < FALSE_ALARM


def sets_law(randomiser, sets, value):
    own, keep = [one >> value & 1 for one in sets], randomiser.law.keep_chance
    return [keep / sum(own) if is_in else (1 - keep) / (len(own) - sum(own)) for is_in in own]


@pytest.mark.parametrize("kind", [local.HadamardResponse, ProjectiveResponse])
def test_python_estimates_what_browsers_sent(device, site, module, kind):
    randomiser = kind(domain=1_000_000, epsilon=2)
    values = [0, 1, 524_287, 999_999]
    reports = sent_by(device, site, randomiser, values, module=module)
    low, high = randomiser.estimate(reports).interval(confidence=1 - Fraction(1, 10**9))
    truth = np.zeros(randomiser.domain)
    truth[values] = REPORTS // len(values)
    assert np.all(low <= truth)
    assert np.all(truth <= high)
    assert low[values].min() > 0  # and what is there is seen


def test_a_large_function_of_ones_own_is_read(device, site):
    """Numbers beyond 2**53, which a browser's usual ones do not hold."""
    randomiser = LocalHashing(domain=2**24, epsilon=2)
    assert randomiser.outputs > 2**53
    reports = sent_by(device, site, randomiser, [2**24 - 1])
    cells = randomiser.family.cells
    own = randomiser.family.cell(reports // cells, np.full(REPORTS, 2**24 - 1)) == reports % cells
    hit = float(randomiser.support.hit)
    assert chance_of(np.array([own.sum(), (~own).sum()]), [hit, 1 - hit]) >= FALSE_ALARM
    assert len(np.unique(reports // cells)) > REPORTS * 0.999
