"""Estimates of strings against formulas on small cases, and against simulation on large ones."""

import secrets
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import ndtri
from scipy.stats import binom, chi2

from discreet import local
from discreet.local.strings.decoding import CohortCounts, decode
from discreet.local.strings.readings import Readings
from discreet.testing import SeededSource

FALSE_ALARM = 1e-9  # chance that a correct estimator fails a simulation, taking sums for normal


def sketches(key):
    return [
        local.CountMeanSketch(functions=8, width=16, epsilon=2, key=key),
        local.HadamardSketch(functions=8, width=16, epsilon=2, key=key),
    ]


def names(count, prefix="s"):
    return [f"{prefix}{i}" for i in range(count)]


def test_a_sketch_answers_as_apples_formula_does():
    randomiser = local.CountMeanSketch(functions=5, width=8, epsilon=2, key=b"k")
    reports = randomiser.release(names(7) * 40)
    sketch = randomiser.sketch(reports)
    scale = 1 / (2 * float(randomiser.support.inner.hit) - 1)
    signs = 2 * np.unpackbits(reports[:, 1:], axis=1, bitorder="little").astype(int) - 1
    rows = np.zeros((5, 8))
    np.add.at(rows, reports[:, 0], 5 * (scale / 2 * signs + 0.5))
    table = sketch.family.table(local.strings.hashing.digests([b"s0", b"elsewhere"]))
    mean = rows[np.arange(5)[:, None], table].mean(axis=0)
    expected = 8 / 7 * (mean - len(reports) / 8)
    np.testing.assert_allclose(sketch.estimate(["s0", "elsewhere"]).counts, expected)


def test_hadamard_reports_add_up_to_what_each_supports():
    randomiser = local.HadamardSketch(functions=3, width=8, epsilon=1, key=b"k")
    reports = randomiser.release(names(5) * 20)
    sketch = randomiser.sketch(reports)
    expected = np.zeros((3, 8), dtype=int)
    for report in reports.tolist():
        function, inner = divmod(report, 16)
        for code in range(8):
            expected[function, code] += ((inner >> 1 & code).bit_count() & 1) == (inner & 1)
    assert (sketch.supports == expected).all()
    assert sketch.n == len(reports)


def test_counts_that_nobody_turned_round_are_decoded_exactly():
    rng = np.random.default_rng()
    filters = (rng.random((6, 8, 5)) < 0.3).astype(float)
    devices = np.array([40, 60, 50, 50, 0, 100])
    counts = np.array([100.0, 0.0, 30.0, 60.0, 110.0])
    ones = np.round(1000 * (filters @ counts) * devices[:, None] / 300).astype(int)
    counted = CohortCounts(
        devices=devices * 1000,
        ones=ones,
        hashes=1,
        bit=local.Support(hit=Fraction(1), miss=Fraction(0)),
    )
    # Without coins only the division over cohorts is uncertain.
    estimate = decode(counted, filters, tuple(b"abcde"[i : i + 1] for i in range(5)))
    np.testing.assert_allclose(estimate.unbiased, 1000 * counts, atol=5)
    np.testing.assert_allclose(estimate.counts, 1000 * counts, atol=5)


def test_least_squares_are_scipys_over_all_rows():
    randomiser = local.Rappor(bits=16, hashes=2, cohorts=4, epsilon=3, key=b"k")
    reports = randomiser.release(names(6) * 50, source=SeededSource(1))
    candidates = names(12)
    estimate = randomiser.estimate(reports, candidates)
    devices, ones = randomiser._reports.count(reports)
    counted = CohortCounts(devices=devices, ones=ones, hashes=2, bit=randomiser.bit)
    filters = randomiser._filters(local.strings.hashing.digests([c.encode() for c in candidates]))
    others = np.full((4, 16, 1), 1 - (15 / 16) ** 2)
    columns = np.concatenate([filters, others], axis=2) * np.sqrt(devices)[:, None, None] / 300
    expected, _ = nnls(
        columns.reshape(64, -1), (counted.set_bits / np.sqrt(devices)[:, None]).ravel()
    )
    np.testing.assert_allclose(estimate.counts, expected[:12], atol=1e-6)
    assert (estimate.counts >= 0).all()


def test_estimates_show_their_strings_and_what_is_sure():
    error = np.array([2.0, 3.0, 2.0])
    estimate = local.StringEstimate(
        values=(b"a", b"\xc3", b"c"),
        n=100,
        counts=np.array([14.0, 90.0, 1.0]),
        readings=Readings(
            estimates=np.array([14.0, 90.0, -3.0]),
            standard_error=error,
            null_error=error,
            reach=np.zeros(3),
        ),
        tested=50,
    )
    assert estimate.strings == ("a", "\ufffd", "c")
    assert estimate.p_values == pytest.approx([np.exp(-24.5), np.exp(-450), 1])
    assert estimate.found(confidence=0.95).values == (b"\xc3", b"a")
    assert estimate.found(confidence=1 - 1e-12).values == (b"\xc3",)
    low, high = estimate.interval(confidence=0.95, simultaneous=False)
    width = np.sqrt(2 * np.log(40))
    assert low == pytest.approx([14 - 2 * width, 90 - 3 * width, 0])
    assert high == pytest.approx([14 + 2 * width, 90 + 3 * width, 2 * width - 3])
    wide, _ = estimate.interval(confidence=0.95)
    assert wide[0] == pytest.approx(14 - 2 * np.sqrt(2 * np.log(2000)))
    assert repr(estimate.found(confidence=0.95)) == (
        "StringEstimate(n=100, '\ufffd': 90 ± 3, 'a': 14 ± 2)"
    )


def test_the_most_frequent_strings_are_found():
    values = ["home"] * 8000 + ["café"] * 6000 + ["homes"] * 4000 + names(2000, "x")
    hunt = local.HeavyHitters(length=5, steps=5, epsilon=4, key=b"k", functions=256)
    found = hunt.estimate(hunt.release(values, source=SeededSource(2))).found(confidence=0.99)
    assert set(found.strings) == {"home", "café", "homes"}
    assert abs(found.counts - [8000, 6000, 4000]).max() < 6 * found.standard_error.max()


def test_a_tree_stops_where_nothing_is_sure():
    values = [f"ab{i:03d}" for i in range(1000)] * 20
    tree = local.PrefixTree(length=5, levels=5, epsilon=4, key=b"k", functions=64)
    levels = tree.estimate(tree.release(values, source=SeededSource(3)), confidence=0.99)
    assert [level.strings for level in levels[:2]] == [("a",), ("ab",)]
    assert len(levels) < 5
    assert tree.estimate(tree.release(names(20, "")), confidence=0.999) == ()


def test_a_step_without_reports_is_borne():
    hunt = local.HeavyHitters(length=2, steps=16, epsilon=4, key=b"k", functions=4)
    estimate = hunt.estimate(hunt.release(["a"] * 3))
    assert np.isinf(estimate.standard_error).all() or estimate.n == 3
    assert hunt.estimate(hunt.release(["a"])).found(confidence=0.99).strings == ()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [0, 1])
def test_sketches_have_no_bias_and_the_variance_they_claim(kind):
    counts = np.array([400, 200, 100, 50, 10, 0, 0, 0, 0, 0])
    n, trials, strings = counts.sum(), 4000, names(10)
    values = np.repeat(strings, counts).tolist()
    pairs = [int((counts * (counts - 1)).sum() - c * (c - 1)) for c in counts]
    off, said = np.zeros((trials, 10)), np.zeros((trials, 10))
    for trial in range(trials):
        randomiser = sketches(secrets.token_bytes(8))[kind]
        estimate = randomiser.estimate(randomiser.release(values), strings)
        off[trial], said[trial] = estimate.counts - counts, estimate.standard_error
    support = randomiser.support
    variance = np.array(
        [
            support.variance(n=int(n), count=int(c), pairs=p)
            for c, p in zip(counts, pairs, strict=True)
        ]
    )
    # 40,000 squares of nearly normal numbers: 0.05 is more than 6 of their mean's deviations.
    assert abs((off**2 / variance).mean() - 1) < 0.05
    assert abs((said**2 / variance).mean() - 1) < 0.05
    bias = off.mean(axis=0) / np.sqrt(variance / trials)
    assert (bias**2).sum() < chi2.isf(FALSE_ALARM, 10)
    # Without the pairs that share a hash the claim would fail.
    alone = np.array([support.variance(n=int(n), count=int(c), pairs=0) for c in counts])
    assert (off**2 / alone).mean() > 1.05
    bound = support.error(n=int(n), confidence=0.95)
    assert binom.sf((abs(off) > bound).sum() - 1, off.size, 0.05) > FALSE_ALARM


def rappor_trial(*, epsilon, unknown):
    counts = np.floor(3000 / np.arange(1, 41)).astype(int)
    counts[30:] = 0
    strings = names(40)
    values = np.repeat(strings, counts).tolist() + names(unknown, "u")
    randomiser = local.Rappor(
        bits=32, hashes=2, cohorts=16, epsilon=epsilon, key=secrets.token_bytes(8)
    )
    return counts, randomiser.estimate(randomiser.release(values), strings)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "unknown"), [(4, 0), (4, 3000), (20, 0), (20, 3000)])
def test_decoded_strings_are_as_far_off_as_their_errors_say(epsilon, unknown):
    """Simulated: errors, false finds, and that knowing counts not to be negative helps."""
    trials = 300
    score, better, false, covered = [], 0.0, 0, 0
    for _ in range(trials):
        counts, estimate = rappor_trial(epsilon=epsilon, unknown=unknown)
        score.append((estimate.unbiased - counts) / estimate.standard_error)
        better += ((estimate.unbiased - counts) ** 2).sum() - (
            (estimate.counts - counts) ** 2
        ).sum()
        found = set(estimate.found(confidence=0.95).strings)
        false += bool(found & set(names(40)[30:]))
        low, high = estimate.interval(confidence=0.95)
        covered += bool(((low <= counts) & (counts <= high)).all())
    scores = np.array(score)
    # Least squares follow the noise of one another a little, hence the wider band below.
    assert 0.85 < (scores**2).mean() < 1.1
    assert abs(scores.mean(axis=0)).max() < -ndtri(FALSE_ALARM / 80) * 1.1 / np.sqrt(trials)
    assert better > 0
    assert binom.sf(false - 1, trials, 0.05) > FALSE_ALARM
    assert binom.cdf(covered, trials, 0.95) > FALSE_ALARM


@pytest.mark.slow
def test_hunts_find_what_is_frequent_and_nothing_else():
    strings = [f"{i * 7919 % 99991}.org" for i in range(300)]
    counts = np.floor(12_000 / np.arange(1, 301)).astype(int)
    held = dict(zip(strings, counts.tolist(), strict=True))
    values = np.repeat(strings, counts).tolist()
    false, trials, scores, top = 0, 60, [], 0
    for _ in range(trials):
        key = secrets.token_bytes(8)
        hunt = local.HeavyHitters(length=9, steps=9, epsilon=4, key=key, functions=256, keep=24)
        found = hunt.estimate(hunt.release(values)).found(confidence=0.95)
        false += not set(found.strings) <= set(held)
        top += strings[0] in found.strings
        best = [i for i, name in enumerate(found.strings) if held.get(name, 0) > 5000]
        scores += [
            (found.counts[i] - held[found.strings[i]]) / found.standard_error[i] for i in best
        ]
    assert binom.sf(false - 1, trials, 0.05) > FALSE_ALARM
    assert top == trials  # 17 standard errors from 0
    spread = float(np.square(scores).sum())
    assert chi2.ppf(FALSE_ALARM, len(scores)) < spread < chi2.isf(FALSE_ALARM, len(scores)) * 1.1


@pytest.mark.slow
def test_trees_show_no_prefix_that_nobody_has():
    values = (["news.org"] * 30 + ["news.com"] * 20 + [f"{i}.example"[:8] for i in range(50)]) * 300
    false, trials = 0, 100
    for _ in range(trials):
        tree = local.PrefixTree(
            length=8, levels=8, epsilon=3, key=secrets.token_bytes(8), functions=64, width=256
        )
        levels = tree.estimate(tree.release(values), confidence=0.9)
        held = [{value[: i + 1] for value in values} for i in range(8)]
        assert levels[0].strings[0] == "n"
        false += any(not set(level.strings) <= held[i] for i, level in enumerate(levels))
    assert binom.sf(false - 1, trials, 0.1) > FALSE_ALARM
