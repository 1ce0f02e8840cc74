"""Thresholds for keys that nobody listed: against brute force, and the theorem itself."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from discreet.errors import ParameterError
from discreet.tables.algorithms.key_threshold import (
    default_least,
    reach,
    shown_chance,
    shown_from,
    threshold,
)
from discreet.tables.algorithms.noise import Noise
from discreet.tables.model.bounds import WEIGHT_STEPS, Groups, Norm, sensitivity

LAWS = {"laplace": stats.laplace(), "gaussian": stats.norm()}
KINDS = st.sampled_from(["laplace", "gaussian"])


def chance_of(noise, counts, limit, distance):
    """Return the exact chance that one of the counts reaches ``limit``."""
    steps = np.ceil(limit * WEIGHT_STEPS) - np.floor(np.asarray(counts) * WEIGHT_STEPS) - 0.5
    each = LAWS[noise.kind].logcdf(steps / (noise.scale(distance) * WEIGHT_STEPS))
    return -math.expm1(np.sum(each))


@pytest.mark.lengthy
@settings(max_examples=60)
@given(
    kind=KINDS,
    order=st.sampled_from([1, 2]),
    multiplier=st.floats(0.1, 20),
    limit=st.floats(0.6, 30),
    delta=st.sampled_from([0.1, 1e-3, 1e-6, 1e-12]),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    size=st.integers(1, 3),
)
def test_no_unit_exceeds_delta(kind, order, multiplier, limit, delta, shares, size):
    noise, bounding = Noise(kind=kind, multiplier=multiplier), Norm(limit=limit, order=order)
    distance = Fraction(limit) * size
    least = default_least(bounding)
    found = threshold(
        noise, sensitivity=distance, bounding=bounding, least=least, delta=delta,
        neighbours="add_remove", group_size=size,
    )  # fmt: skip
    most = size * math.floor((Fraction(limit) / least) ** order)
    counts = np.array(shares[:most]) ** 3
    norm = np.linalg.norm(counts, order)
    if norm > 0:
        filled = counts / norm * limit * size
        assert chance_of(noise, filled, float(found), distance) <= delta
    # Equal counts on as many keys as possible are often the worst.
    for keys in {1, min(2, most), min(4, most), most}:
        equal = np.full(keys, limit * size / keys ** (1 / order))
        assert chance_of(noise, equal, float(found), distance) <= delta


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("multiplier", [0.3, 1, 5])
def test_the_bound_is_close_to_the_best_vector(kind, order, multiplier):
    """Two sizes on a fine grid (k keys of one count, the rest of another) nearly attain it."""
    noise, bounding = Noise(kind=kind, multiplier=multiplier), Norm(limit=4, order=order)
    able = reach(bounding, least=default_least(bounding))
    found = threshold(
        noise, sensitivity=4, bounding=bounding, least=default_least(bounding), delta=1e-6,
        neighbours="add_remove",
    )  # fmt: skip
    best = 0.0
    for keys in range(1, able.keys):
        rest = able.keys - keys
        for part in np.linspace(0, 1, 21):
            high = (4**order * part / keys) ** (1 / order)
            low = (4**order * (1 - part) / rest) ** (1 / order)
            tails = LAWS[kind].sf((float(found) - np.array([high, low])) / noise.scale(4))
            best = max(best, keys * tails[0] + rest * tails[1])
    assert best <= 1e-6
    # The bound gives away less than 3% of the noise, which a shift of the threshold shows.
    lost = 0.03 * noise.scale(4)
    ratio = LAWS[kind].sf((float(found) - 4 - lost) / noise.scale(4)) / LAWS[kind].sf(
        (float(found) - 4) / noise.scale(4)
    )
    assert best * max(ratio, 1.02) * 1.15 >= 1e-6


def test_groups_and_rows_have_closed_forms():
    noise = Noise(kind="laplace", multiplier=2)
    for bounding, keys, rows in ((Groups(groups=3, rows=2), 3, 2), (None, 1, 1)):
        found = threshold(
            noise, sensitivity=6, bounding=bounding, least=None, delta=1e-6, neighbours="add_remove"
        )
        wanted = rows + 12 * math.log(keys / (2 * 1e-6))
        assert float(found) == pytest.approx(wanted, abs=1e-4 * 12)
        assert float(found) >= wanted


def test_dual_bound_agrees_with_a_linear_program():
    noise, able = Noise(kind="gaussian", multiplier=1), reach(Norm(limit=3, order=2), least=0.5)
    count = 15.0
    grid = np.linspace(0, 3, 301)
    height = stats.norm.sf((count - grid) / 3)
    solved = optimize.linprog(
        -height, A_ub=[np.ones(grid.size), grid**2], b_ub=[able.keys, 9], method="highs"
    )
    bound = shown_chance(noise, count, sensitivity=3, able=able)
    assert -solved.fun <= bound <= -solved.fun * 1.05


@given(
    kind=KINDS,
    base=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    first=st.lists(st.integers(0, 1), min_size=3, max_size=3),
    second=st.lists(st.integers(0, 1), min_size=3, max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_theorem_on_all_outcomes_of_small_tables(kind, base, first, second):
    """Which keys are shown is (epsilon, delta)-DP for replaced units, with one unit's delta."""
    cap, multiplier, delta = 2, 1.0, 0.01
    bounding = Groups(groups=cap, rows=1)
    noise = Noise(kind=kind, multiplier=multiplier)
    distance = sensitivity(bounding, order=noise.order, neighbours="replace_one")
    found = threshold(
        noise, sensitivity=distance, bounding=bounding, least=None, delta=delta,
        neighbours="replace_one",
    )  # fmt: skip
    from discreet.accounting import ApproximateLoss, compose
    from discreet.accounting import delta as delta_of

    loss = compose([(noise.loss, 1), (ApproximateLoss(epsilon=0, delta=delta), 1)])
    laws = []
    for unit in (first, second):
        kept, left = [], cap
        for one in unit:
            kept.append(min(one, left))
            left -= kept[-1]
        counts = np.array(base) + kept
        shown = np.where(
            counts > 0, LAWS[kind].sf((float(found) - counts) / noise.scale(distance)), 0.0
        )
        laws.append(
            [
                math.prod(p if bit else 1 - p for p, bit in zip(shown, bits, strict=True))
                for bits in itertools.product([0, 1], repeat=3)
            ]
        )
    for epsilon in (0.0, 0.3, 1.0):
        allowed = delta_of(loss, epsilon=epsilon)
        for p, q in itertools.permutations(laws):
            excess = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))
            assert excess <= allowed + 1e-9


def test_result_grows_with_what_units_can_do():
    noise = Noise(kind="gaussian", multiplier=2)

    def at(**changes):
        asked = {
            "sensitivity": 5, "bounding": Norm(limit=5, order=2), "least": 0.5, "delta": 1e-6,
            "neighbours": "add_remove", "group_size": 1,
        } | changes  # fmt: skip
        return threshold(noise, **asked)

    assert at(delta=1e-9) > at()
    assert at(least=0.25) > at() > at(least=2)
    assert at(group_size=2) > at()
    assert at(sensitivity=6) > at()
    assert at(neighbours="replace_one") == at()
    assert at().denominator <= WEIGHT_STEPS


def test_counts_are_shown_with_the_stated_confidence():
    for kind, law in LAWS.items():
        noise = Noise(kind=kind, multiplier=2)
        count = shown_from(noise, threshold=Fraction(40), sensitivity=3, confidence=0.9)
        assert law.sf((40 - count) / 6) == pytest.approx(0.9, abs=1e-4)


def test_bad_parameters_are_refused():
    noise = Noise(kind="laplace", multiplier=1)
    good = {"sensitivity": 1, "bounding": Norm(limit=1, order=1), "least": 0.5, "delta": 1e-6,
            "neighbours": "add_remove"}  # fmt: skip
    for name, bad in (
        ("least", None), ("least", 0), ("least", 2), ("delta", 0), ("delta", 1),
        ("sensitivity", 0), ("neighbours", "twins"), ("group_size", 0),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=name):
            threshold(noise, **(good | {name: bad}))
