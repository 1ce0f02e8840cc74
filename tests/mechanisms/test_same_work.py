"""A release does the same work whatever the value is: the same steps, on numbers of the same width.

No clock is read here; ``tests/mechanisms/test_timing.py`` does that, in ``make audit``.
"""

import sys

import numpy as np
import pytest

from discreet import mechanisms as m
from discreet.mechanisms.additive.continuous import release_rounded
from discreet.mechanisms.values.grid import Grid
from discreet.mechanisms.values.grid_steps import clamped_step
from discreet.noise import SYSTEM
from discreet.noise.additive import _sampler
from discreet.testing import SeededSource

INTEGERS = [0, 1, -1, 2, 7, 255, 256, 257, -5, -6, 2**30 - 1, 2**30, -(2**30), 10**15, -(2**59)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-9, 0.1, 2.0**30, 1e9, -1e15, 1e18, 1e40, -1e300]
SCORES = np.array([3.0, 1.0, 2.5, 2.0, 0.25])


def with_one(outlier):
    scores = SCORES.copy()
    scores[3] = outlier
    return scores


FAR = [SCORES, with_one(1e13), with_one(-1e13), with_one(1e30), with_one(-1e300), with_one(2.9)]
WHOLE = [np.array(row) for row in ([3, 1, 2], [3, 2**62, 2], [3, -(2**63), 2], [0, 0, 0])]


def steps_taken(call):
    """Return every bytecode instruction of the package that runs: (function, place)."""
    taken = []

    def trace(frame, event, _argument):
        # Other people's functions may run at any moment: collecting garbage calls some.
        if not frame.f_globals["__name__"].startswith("discreet."):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            taken.append((frame.f_code.co_name, frame.f_lasti))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return taken


laplace, gaussian = m.Laplace(sensitivity=1, scale=3), m.Gaussian(sensitivity=1, sigma=3)
coarse = m.Laplace(sensitivity=64, scale=64, grid=16)
integer_laplace = m.DiscreteLaplace(sensitivity=1, scale=3)
integer_gaussian = m.DiscreteGaussian(sensitivity=1, sigma=3)
watch = m.AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1)
choice = {"epsilon": 1, "sensitivity": 1}


def ask(value, source):
    # Far below: the answer, on which the time may depend, is the same for all.
    assert not watch.start(source=source).ask(-abs(value) - 10_000)


CASES = {
    "laplace, integers": (laplace.release, INTEGERS),
    "laplace, floats": (laplace.release, FLOATS[:-2]),  # the last two are beyond 2**100 steps
    "laplace on a coarse grid": (coarse.release, INTEGERS),
    "gaussian, integers": (gaussian.release, INTEGERS),
    "gaussian, floats": (gaussian.release, FLOATS[:-2]),
    "laplace, arrays": (laplace.release, [np.array([x, 1.0]) for x in FLOATS]),
    "discrete laplace": (integer_laplace.release, INTEGERS),
    "discrete laplace, arrays": (integer_laplace.release, [np.array([x, 1]) for x in INTEGERS]),
    "discrete gaussian": (integer_gaussian.release, INTEGERS),
    "sparse vector, integers": (ask, INTEGERS),
    "sparse vector, floats": (ask, FLOATS[:-2]),
    "noisy max": (m.NoisyMax(**choice).select, FAR),
    "noisy max, integers": (m.NoisyMax(**choice).select, WHOLE),
    "exponential": (m.Exponential(**choice).select, FAR),
    "permute and flip": (m.PermuteAndFlip(**choice).select, FAR),
    "peeling": (m.TopK(k=2, **choice).select, FAR),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_instructions_run_for_every_value(name):
    release, values = CASES[name]
    paths = {}
    for value in values:
        outcome = release(value, source=SeededSource(1))  # fills the caches, too
        path = steps_taken(lambda value=value: release(value, source=SeededSource(1)))
        # What was chosen is public, and the last steps may depend on it.
        chosen = str(outcome) if "select" in release.__name__ else None
        paths.setdefault(chosen, []).append(path)
    assert any(len(alike) > 1 for alike in paths.values())
    for alike in paths.values():
        assert len(alike[0]) > 20
        assert all(path == alike[0] for path in alike)


def width(number):
    return sys.getsizeof(number)  # of an integer: a few bytes for every digit


@pytest.mark.parametrize("exponent", [-40, -3, 0, 1, 20])
@pytest.mark.parametrize("values", [INTEGERS, FLOATS], ids=["integers", "floats"])
def test_steps_have_one_width_on_every_grid(values, exponent):
    for raise_it in (Grid(exponent).raised, lambda value: clamped_step(Grid(exponent), value)):
        raised = [raise_it(value) for value in values]
        assert len({width(steps) for steps, _ in raised}) == 1
        assert len({base for _, base in raised}) == 1


def test_what_meets_the_noise_has_one_width():
    widths = set()

    def draw(_scale, *, centre, source):
        widths.add(width(centre))
        return centre

    for value in FLOATS:
        release_rounded(value, noise_for=laplace._noise, draw=draw, source=SYSTEM)
    assert len(widths) == 1


@pytest.mark.parametrize("scale", [0.3, 3, 2.0**34, 2**50, 2**90])
@pytest.mark.parametrize("kind", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_noise_waits_at_one_width_and_so_does_its_sum_with_any_value(shape, kind, scale):
    """Its own width would tell how large the noise is, and so where the value lies."""
    sampler = _sampler(shape, scale, *kind)
    pool = sampler._raised(2000, SYSTEM)
    assert len({width(sample) for sample in pool}) == 1
    assert len({width(pool[0] + value) for value in INTEGERS}) == 1
    assert len({width(min(pool) + value) for value in INTEGERS}) == 1
    assert len({width(max(pool) + value) for value in INTEGERS}) == 1
