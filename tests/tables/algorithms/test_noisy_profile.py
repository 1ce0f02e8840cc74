"""Noisy profiles: one unit moves one bin, and people are found only where they are."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.errors import DataError
from discreet.privacy import Neighbours
from discreet.tables.algorithms import noisy_profile
from discreet.tables.algorithms.noise import Noise
from discreet.tables.algorithms.noisy_profile import (
    LONGEST,
    NoisyProfile,
    enough_units,
    release_profile,
)
from discreet.tables.model.bounds import WEIGHT_STEPS, Norm, sensitivity

EDGES = tuple(Fraction(n) for n in (1, 2, 4, 8))


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1, 3])
def test_bins_move_by_at_most_the_sensitivity_and_some_by_all_of_it(neighbours, order, size):
    """Every way for ``size`` units to come, go or move among three bins."""
    reach = sensitivity(Norm(limit=1, order=1), order=order, neighbours=neighbours, group_size=size)
    places = range(3)
    moves = [*places] if neighbours is not Neighbours.replace_one else [*product(places, places)]
    largest = 0.0
    for chosen in product(moves, repeat=size):
        before, after = np.zeros(3), np.zeros(3)
        for one in chosen:
            gone, come = one if isinstance(one, tuple) else (one, None)
            before[gone] += 1
            if come is not None:
                after[come] += 1
        largest = max(largest, float(np.linalg.norm(before - after, ord=order)))
    assert largest == pytest.approx(float(reach))


def test_counts_are_cut_off_before_they_overflow(monkeypatch):
    seen = []

    def add(self, values, *, sensitivity, source):
        seen.append(values)
        return values

    monkeypatch.setattr(Noise, "add", add)
    noise = Noise(kind="laplace", multiplier=1)
    bins = np.array([0, 1, 2**41, 2**62, 7], dtype=np.int64)
    release_profile(bins, edges=EDGES, noise=noise, sensitivity=Fraction(1))
    assert (seen[0] == np.array([0, 1, 2**40, 2**40, 7]) * WEIGHT_STEPS).all()


def test_bad_bins_are_refused():
    noise = Noise(kind="laplace", multiplier=1)
    for wrong in (np.zeros(4, dtype=np.int64), np.zeros(5), np.full(5, -1)):
        with pytest.raises(DataError):
            release_profile(wrong, edges=EDGES, noise=noise, sensitivity=Fraction(1))


@pytest.mark.parametrize("length", range(2, LONGEST + 1))
def test_the_law_of_a_sum_of_laplace_noise(length):
    """Against the Fourier transform of (1 + w**2)**-length, integrated numerically."""
    for t in (0.0, 0.7, 3.0, 9.0):
        w = np.linspace(1e-9, 400, 400_001)
        inner = np.sin(w * t) / w / (1 + w**2) ** length
        # Pr[sum > t] = 1/2 - 1/pi times the integral of sin(w t) / w times the transform.
        area = float(((inner[1:] + inner[:-1]) / 2 * np.diff(w)).sum())
        found = math.exp(-t) * noisy_profile._laplace_factor(t, length)
        assert found == pytest.approx(0.5 - area / math.pi, abs=1e-5)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_thresholds_of_runs_are_exceeded_as_rarely_as_they_say(kind):
    """And not much more rarely; 200,000 sums, each law within six deviations."""
    noise, miss, count = Noise(kind=kind, multiplier=3), Fraction(1, 50), 200_000
    for length in (1, 2, LONGEST):
        zeros = np.zeros((count, length), dtype=np.int64)
        sums = noise.add(zeros, sensitivity=Fraction(2)).sum(axis=1) / WEIGHT_STEPS
        reach = noisy_profile._run_reach(noise, Fraction(2), length, miss)
        slack = 6 * math.sqrt(0.02 / count)
        assert 0.02 - slack <= (sums > reach).mean() <= 0.02 + slack


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_nobody_is_found_where_nobody_is(kind):
    """At most 1/200 of 2,000 empty profiles: Binomial(2000, 1/200) exceeds 40 below 1e-12."""
    noise = Noise(kind=kind, multiplier=5)
    noisy = noise.add(np.zeros((2000, 152), dtype=np.int64), sensitivity=Fraction(1))
    edges = tuple(Fraction(n) for n in range(151))
    found = [
        NoisyProfile(
            edges=edges, bins=bins / WEIGHT_STEPS, noise=noise, sensitivity=Fraction(1)
        ).hull
        for bins in noisy
    ]
    assert sum(one is not None for one in found) <= 40


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_enough_people_are_found_however_they_are_spread(kind):
    """In 95% of cases at least: of 400, fewer than 340 with a chance below 1e-12."""
    noise, bins = Noise(kind=kind, multiplier=7), 152
    enough = math.ceil(enough_units(noise, 1, bins=bins))
    edges = tuple(Fraction(n) for n in range(bins - 1))
    rng = np.random.default_rng()
    found = 0
    for _ in range(400):
        counts = np.zeros(bins, dtype=np.int64)
        spread = rng.multinomial(enough, rng.dirichlet(np.ones(LONGEST)))
        at = int(rng.integers(0, bins - LONGEST + 1))
        counts[at : at + LONGEST] = spread
        profile = release_profile(counts, edges=edges, noise=noise, sensitivity=Fraction(1))
        found += profile.hull is not None
    assert found >= 340
    # Twice the noise takes twice as many.
    assert enough_units(noise, 2, bins=bins) == pytest.approx(2 * enough, rel=0.02)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_what_is_no_whole_person_is_not_found(kind):
    """However little noise there is: a part of a unit in a far bin is nobody."""
    noise = Noise(kind=kind, multiplier=Fraction(1, 10**6))
    bins = np.zeros(len(EDGES) + 1)
    bins[1], bins[4] = 900, 0.4
    profile = NoisyProfile(edges=EDGES, bins=bins, noise=noise, sensitivity=Fraction(1))
    assert profile.hull == (1, 1)
