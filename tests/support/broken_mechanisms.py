"""Mechanisms that break their claim, each beside a twin that keeps it.

All take ``(value, n)`` and return n outputs, unless ``batch`` is false. The noise is NumPy's: good
enough to test an auditor with, and nothing else.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

rng = np.random.default_rng()


@dataclass(frozen=True)
class Suspect:
    """A broken mechanism and its twin, with the pair and the claim of both."""

    name: str
    broken: Callable[..., Any]
    twin: Callable[..., Any]
    pair: tuple[Any, Any] = (0, 1)
    epsilon: float = 1
    delta: float = 0
    samples: int = 200_000
    batch: bool = True
    low_bits: bool = False


def laplace(value, n, scale=1.0):
    return value + rng.laplace(scale=scale, size=n)


def geometric(size, epsilon):
    """Two-sided geometric noise."""
    p = -math.expm1(-epsilon)
    return rng.geometric(p, size) - rng.geometric(p, size)


# ---------------------------------------------------------------- additive noise


def gaussian_sigma(epsilon, delta):
    """Return the exact sigma for sensitivity 1."""
    from discreet.mechanisms import Gaussian

    return float(Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=1).sigma)


SIGMA = gaussian_sigma(1, 0.05)


def gaussian(value, n, sigma):
    return value + rng.normal(scale=sigma, size=n)


def vectors(value, n, scale):
    return np.asarray(value) + rng.laplace(scale=scale, size=(n, len(value)))


def whole_cells(value, n, epsilon):
    return np.asarray(value) + geometric((n, len(value)), epsilon)


def rejected_below_zero(value, n):
    """Draw again until the answer is positive: how often depends on the value."""
    noisy = laplace(value, 4 * n)
    return noisy[noisy >= 0][:n]


def seeded_by_the_data(value, n):
    return np.full(n, value + np.random.default_rng(value).laplace())


def reused_noise(value, n):
    noise = geometric(n, 0.5)
    return np.stack([value + noise, noise], axis=1)


def sampled_half(value, n, scale):
    """Answer with noise from a sample that has each record with probability 1/2."""
    return laplace(value * rng.integers(0, 2, n), n, scale)


ADDITIVE = [
    Suspect("Laplace, 10% short", partial(laplace, scale=0.9), laplace),
    Suspect("Laplace, sensitivity forgotten", laplace, partial(laplace, scale=3), pair=(0, 3)),
    Suspect(
        "Gaussian, a quarter short",
        partial(gaussian, sigma=0.75 * SIGMA),
        partial(gaussian, sigma=SIGMA),
        delta=0.05,
    ),
    Suspect(
        "Gaussian, root of sigma",
        partial(gaussian, sigma=math.sqrt(SIGMA)),
        partial(gaussian, sigma=SIGMA),
        delta=0.05,
    ),
    Suspect(
        "Laplace vector, 20% short",
        partial(vectors, scale=0.8),
        partial(vectors, scale=1),
        pair=([0.0] * 5, [0.0, 1.0, 0.0, 0.0, 0.0]),
    ),
    Suspect(
        "cells under replacement",
        partial(whole_cells, epsilon=1),
        partial(whole_cells, epsilon=0.5),
        pair=([1, 0], [0, 1]),
    ),
    Suspect(
        "geometric, epsilon doubled",
        lambda value, n: value + geometric(n, 2),
        lambda value, n: value + geometric(n, 1),
    ),
    Suspect(
        "truncated towards zero",
        lambda value, n: value + np.trunc(rng.laplace(size=n)),
        lambda value, n: np.floor(laplace(value, n)),
    ),
    Suspect(
        "whole noise on a fraction",
        lambda value, n: value + np.rint(rng.laplace(size=n)),
        lambda value, n: np.rint(laplace(value, n)),
        pair=(0.0, 0.5),
    ),
    Suspect(
        "low bits of floats",
        laplace,
        lambda value, n: np.rint(laplace(value, n) * 2**20) / 2**20,
        pair=(0.0, 1.0),
        low_bits=True,
    ),
    Suspect("drawn again below zero", rejected_below_zero, laplace),
    Suspect(
        "one-sided noise",
        lambda value, n: value + rng.exponential(size=n),
        laplace,
    ),
    Suspect(
        "uniform noise",
        lambda value, n: value + rng.uniform(-5, 5, n),
        laplace,
    ),
    Suspect("seeded by the data", seeded_by_the_data, laplace),
    Suspect(
        "noise used twice",
        reused_noise,
        lambda value, n: np.stack([value + geometric(n, 0.5), geometric(n, 0.5)], axis=1),
    ),
    Suspect(
        "sampling accounted as q epsilon",
        partial(sampled_half, scale=1),
        partial(sampled_half, scale=1 / math.log1p(2 * math.expm1(0.5))),
        epsilon=0.5,
    ),
    Suspect(
        "told outright too often",
        lambda value, n: np.where(rng.random(n) < 0.02, 10 + value, rng.integers(0, 2, n)),
        lambda value, n: np.where(rng.random(n) < 0.01, 10 + value, rng.integers(0, 2, n)),
        epsilon=0.1,
        delta=0.011,
    ),
]

# ---------------------------------------------------------------- sparse vectors


def sparse(values, n, *, bar, noise, positives):
    """Return the answers as a number with a digit for each query: 0 not asked, 1 below, 2 above."""
    threshold = rng.laplace(scale=bar, size=n)
    left, code = np.full(n, positives), np.zeros(n, dtype=np.int64)
    for value in values:
        noisy = value + (rng.laplace(scale=noise, size=n) if noise else 0.0)
        above = noisy >= threshold
        code = 3 * code + np.where(left > 0, 1 + above, 0)
        left -= above & (left > 0)
    return code


def sparse_with_values(values, n):
    """Return the noisy value that was above, where it came last: otherwise when it came."""
    threshold = rng.laplace(scale=2, size=n)
    out, going = np.full(n, 1000.0), np.ones(n, dtype=bool)
    for place, value in enumerate(values):
        noisy = value + rng.laplace(scale=2, size=n)
        above = going & (noisy >= threshold)
        shown = noisy if place == len(values) - 1 else 1000.0 + place
        out = np.where(above, shown, out)
        going &= ~above
    return out


def correct_sparse(positives):
    return partial(sparse, bar=2, noise=4 * positives, positives=positives)


RUN = ([1] * 10 + [0], [0] * 10 + [1])
RUNS = ([1] * 6 + [0] * 3, [0] * 6 + [1] * 3)

SPARSE = [
    Suspect(
        "sparse vector as printed",
        partial(sparse, bar=2, noise=4 / 3, positives=1),
        correct_sparse(1),
        pair=RUN,
    ),
    Suspect(
        "sparse vector as printed, 3 positives",
        partial(sparse, bar=2, noise=4 / 3, positives=3),
        correct_sparse(3),
        pair=RUNS,
    ),
    Suspect(
        "Lyu-Su-Li algorithm 3",
        sparse_with_values,
        correct_sparse(1),
        pair=([1] * 10 + [0], [0] * 10 + [1]),
    ),
    Suspect(
        "Lyu-Su-Li algorithm 4",
        partial(sparse, bar=4, noise=4 / 3, positives=3),
        correct_sparse(3),
        pair=RUNS,
    ),
    Suspect(
        "Lyu-Su-Li algorithm 5",
        partial(sparse, bar=2, noise=0, positives=99),
        correct_sparse(1),
        pair=([0, 1], [1, 0]),
    ),
    Suspect(
        "Lyu-Su-Li algorithm 6",
        partial(sparse, bar=2, noise=2, positives=99),
        correct_sparse(4),
        pair=([0] * 8, [1] * 4 + [-1] * 4),
    ),
]

# ---------------------------------------------------------------- choosing


def noisy_scores(scores, n, scale):
    return np.asarray(scores) + rng.laplace(scale=scale, size=(n, len(scores)))


def noisy_max(scores, n, scale):
    return noisy_scores(scores, n, scale).argmax(axis=1)


def exponential(scores, n, rate):
    return (rate * np.asarray(scores) + rng.gumbel(size=(n, len(scores)))).argmax(axis=1)


def answered(value, n, *, categories, truth):
    """Tell the truth with some probability, otherwise one of the other categories."""
    others = (value + rng.integers(1, categories, n)) % categories
    return np.where(rng.random(n) < truth, value, others)


def two_reports(value, n, epsilon):
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    first, second = (answered(value, n, categories=2, truth=truth) for _ in range(2))
    return first + second


def median_scores(values):
    """Return how badly each point from 0 to 10 misses the median, in records."""
    points, data = np.arange(11)[:, None], np.asarray(values)[None, :]
    return -np.abs((data < points).sum(axis=1) - (data > points).sum(axis=1)) / 2


def local_noise(values, n):
    """Add noise for how far this median could move here, rather than anywhere."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    reach = max(ordered[middle] - ordered[middle - 1], ordered[middle + 1] - ordered[middle])
    return ordered[middle] + reach * rng.laplace(size=n)


OPPOSITE = ([1] + [0] * 15, [0] + [1] * 15)
E1 = math.e

CHOOSING = [
    Suspect("noisy max, half the noise", partial(noisy_max, scale=1),
            partial(noisy_max, scale=2), pair=OPPOSITE),
    Suspect("noisy max with its value", lambda scores, n: noisy_scores(scores, n, 1).max(axis=1),
            partial(noisy_max, scale=1), pair=([0] * 5, [1] * 5)),
    Suspect("exponential, factor 2 forgotten", partial(exponential, rate=1),
            partial(exponential, rate=0.5), pair=OPPOSITE),
    Suspect("k-ary response, binary coin",
            partial(answered, categories=5, truth=E1 / (1 + E1)),
            partial(answered, categories=5, truth=E1 / (4 + E1)), pair=(0, 1)),
    Suspect("two reports for one", partial(two_reports, epsilon=1),
            partial(two_reports, epsilon=0.5)),
    Suspect("local sensitivity of a median", local_noise,
            lambda values, n: exponential(median_scores(values), n, 1),
            pair=([5, 5, 5, 5, 9], [5, 5, 5, 9, 9])),
    Suspect("median without noise on ties",
            lambda values, n: (np.full(n, 5.0) if values.count(5) > 2
                               else 5 + rng.laplace(size=n)),
            lambda values, n: exponential(median_scores(values), n, 1),
            pair=([5, 5, 5], [5, 5, 6])),
]  # fmt: skip

# ---------------------------------------------------------------- records, keys, failures


def mean_of_exact_count(records, n):
    return laplace(sum(records), n) / len(records)


def mean_of_noisy_count(records, n):
    return laplace(sum(records), n, 2) / np.maximum(1, laplace(len(records), n, 2))


def keys_found(counts, n):
    """Return the noisy count of key b, missing where nobody has it."""
    return laplace(counts["b"], n) if "b" in counts else np.full(n, np.nan)


def keys_listed(counts, n):
    return laplace(counts.get("b", 0), n)


def shown_from(count, n, *, true):
    """Show a noisy count from 5 up, judged by the true count or by the noisy one."""
    noisy = laplace(count, n)
    return np.where((count if true else noisy) >= 5, noisy, -99.0)


def key_order(keys, n, *, sort):
    text = ",".join(sorted({"a", "b"}) if sort else keys)
    return np.array([text] * n)


def mean_or_failure(records):
    return (sum(records) + rng.laplace()) / len(records)


def mean_without_failure(records):
    return (sum(records) + rng.laplace()) / 10


def noisy_records(records):
    """Return each record with noise, and so how many there are."""
    return [record + 10 * rng.laplace() for record in records]


def padded_records(records):
    return [sum(records) / 3 + rng.laplace(), 0.0, 0.0]


RECORDS = [
    Suspect("mean by the exact count", mean_of_exact_count, mean_of_noisy_count,
            pair=([0], [0, 1])),
    Suspect("clipping forgotten", lambda records, n: laplace(sum(records), n),
            lambda records, n: laplace(np.clip(records, 0, 1).sum(), n), pair=([0.5], [0.5, 30])),
    Suspect("keys that exist", keys_found, keys_listed, pair=({"a": 5}, {"a": 5, "b": 1})),
    Suspect("threshold on the true count", partial(shown_from, true=True),
            partial(shown_from, true=False), pair=(4, 5)),
    Suspect("order of arrival", partial(key_order, sort=False), partial(key_order, sort=True),
            pair=(["a", "b"], ["b", "a"]), samples=20_000),
    Suspect("rounded to tens", lambda count, n: np.full(n, 10 * round(count / 10)),
            lambda count, n: 10 * np.rint(laplace(count, n) / 10), pair=(14, 16), epsilon=2),
    Suspect("not a number if empty",
            lambda records, n: laplace(sum(records), n) if records else np.full(n, np.nan),
            lambda records, n: laplace(sum(records), n), pair=([], [1])),
    Suspect("no noise on zero", lambda count, n: laplace(count, n) if count else np.zeros(n),
            laplace),
    Suspect("failure if empty", mean_or_failure, mean_without_failure, pair=([], [0]),
            samples=2_000, batch=False),
    Suspect("as long as the data", noisy_records, padded_records, pair=([1, 1], [1, 1, 1]),
            samples=2_000, batch=False),
]  # fmt: skip

SUSPECTS = [*ADDITIVE, *SPARSE, *CHOOSING, *RECORDS]
