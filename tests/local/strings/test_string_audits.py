"""The auditor finds nothing in what is released, and finds each broken variant."""

from collections import Counter

import numpy as np
import pytest

from discreet import audit, local
from discreet.noise import SYSTEM
from discreet.testing import SeededSource

pytestmark = pytest.mark.slow

EPSILON = 1
RANDOMISERS = {
    "rappor": lambda epsilon: local.Rappor(bits=4, hashes=1, cohorts=2, epsilon=epsilon, key=b"k"),
    "count mean": lambda epsilon: local.CountMeanSketch(
        functions=2, width=4, epsilon=epsilon, key=b"k"
    ),
    "hadamard": lambda epsilon: local.HadamardSketch(
        functions=2, width=4, epsilon=epsilon, key=b"k"
    ),
    "hunt": lambda epsilon: local.HeavyHitters(
        length=1, steps=2, epsilon=epsilon, key=b"k", functions=2
    ),
    "tree": lambda epsilon: local.PrefixTree(
        length=1, levels=2, epsilon=epsilon, key=b"k", functions=2, width=4
    ),
}


def audited(release, pair=("a", "\xff")):
    def reports(value, n):
        drawn = release([value] * n)
        return [tuple(row) for row in drawn.reshape(n, -1).tolist()]

    return audit.mechanism(
        reports, pair=pair, epsilon=EPSILON, delta=0, samples=100_000, batch=True
    )


@pytest.mark.parametrize("name", RANDOMISERS)
def test_what_is_released_passes(name):
    found = audited(RANDOMISERS[name](EPSILON).release)
    assert found.passed
    assert found.epsilon_lower > 0.5 * EPSILON


@pytest.mark.parametrize("name", RANDOMISERS)
def test_coins_of_twice_the_epsilon_are_flagged(name):
    assert not audited(RANDOMISERS[name](2 * EPSILON).release).passed


@pytest.mark.parametrize("name", RANDOMISERS)
def test_a_seed_used_again_is_flagged(name):
    randomiser = RANDOMISERS[name](EPSILON)
    again = (
        randomiser.release(["a"], source=SeededSource(1)),
        randomiser.release(["\xff"], source=SeededSource(1)),
    )
    seeds = [s for s in range(20) if differ(randomiser, s)]
    assert seeds, again
    assert not audited(
        lambda values: np.repeat(
            randomiser.release(values[:1], source=SeededSource(seeds[0])), len(values), axis=0
        )
    ).passed


def differ(randomiser, seed):
    one = randomiser.release(["a"], source=SeededSource(seed))
    return (one != randomiser.release(["\xff"], source=SeededSource(seed))).any()


def test_a_device_that_reports_at_every_step_is_flagged():
    hunt = RANDOMISERS["hunt"](EPSILON)

    def every(values):
        prefixes = hunt._reports.prefixes
        padded = local.strings.text.as_padded(values, length=1)
        rows = []
        for step in range(prefixes.steps):
            here = np.full(len(values), step)
            hashed = prefixes.digests(prefixes.cut(padded, here), here)
            rows.append(hunt._reports.hashed.release(hashed, source=SYSTEM))
        return np.stack(rows, axis=1)

    assert not audited(every).passed


def test_each_device_takes_part_in_one_step_drawn_uniformly():
    hunt = RANDOMISERS["hunt"](EPSILON)
    steps = Counter((hunt.release(["a"] * 10_000) // hunt._reports.hashed.outputs).tolist())
    assert abs(steps[0] - 5000) < 6.2 * 50  # 1e-9
