"""The additive samplers follow their laws, for every scale, by the fast way and the exact one."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import noise
from discreet.errors import ParameterError
from discreet.noise.rejection import RejectionSampler
from discreet.testing import SeededSource, cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one of these tests
SAMPLES = 100_000


def discrete_laplace_cdf(scale):
    p = np.exp(-1 / scale)

    def cdf(k):
        k = k.astype(float)
        below = np.exp(np.minimum(k, 0) / scale) / (1 + p)
        return np.where(k < 0, below, 1 - p * np.exp(-np.maximum(k, 0) / scale) / (1 + p))

    return cdf


def discrete_gaussian_cdf(sigma):
    reach = int(12 * sigma) + 2
    k = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(np.exp(-(k**2) / (2 * sigma**2)))
    cumulative /= cumulative[-1]
    return lambda at: cumulative[np.clip(at + reach, 0, 2 * reach)] * (at >= -reach)


def geometric_cdf(scale):
    return lambda k: np.where(k < 0, 0.0, 1 - np.exp(-(np.maximum(k, 0) + 1.0) / scale))


def rounded_cdf(law):
    return lambda scale: lambda k: law.cdf((k + 0.5) / scale)


LAWS = {
    "discrete_laplace": discrete_laplace_cdf,
    "discrete_gaussian": discrete_gaussian_cdf,
    "geometric": geometric_cdf,
    "rounded_laplace": rounded_cdf(stats.laplace),
    "rounded_gaussian": rounded_cdf(stats.norm),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("scale", [1.0, 3.7, 40.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("name", LAWS)
def test_samples_follow_the_law_and_a_wrong_scale_would_show(name, scale):
    draws = getattr(noise, name)(scale, SAMPLES)
    band = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)
    assert cdf_gap(draws, LAWS[name](scale)) <= band
    # The true gaps at these scales exceed 2 * band, so a miss is as rare as a false alarm.
    assert cdf_gap(draws, LAWS[name](scale * 0.8)) > band
    assert cdf_gap(draws, LAWS[name](scale * 1.25)) > band


@pytest.mark.parametrize("name", LAWS)
def test_scalar_draws_follow_the_law(name):
    draws = [getattr(noise, name)(5) for _ in range(SAMPLES)]
    assert all(type(draw) is int for draw in draws[:100])
    assert cdf_gap(draws, LAWS[name](5.0)) <= dkw_band(SAMPLES, false_alarm=FALSE_ALARM)


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_small_scales_are_mostly_zero_in_the_right_proportion(name):
    draws = getattr(noise, name)(Fraction(1, 2), SAMPLES)
    assert cdf_gap(draws, LAWS[name](0.5)) <= dkw_band(SAMPLES, false_alarm=FALSE_ALARM)
    assert not getattr(noise, name)(Fraction(1, 1000), 1000).any()
    assert not getattr(noise, name)(1e-300, 1000).any()


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", [{}, {"smooth": True}, {"one_sided": True}])
@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(7), Fraction(100), Fraction(12345), Fraction(2**40 + 1)]
)
def test_doubles_and_integers_decide_alike_for_the_same_random_string(shape, scale, kind):
    """Whatever doubles decide from the bits drawn first, integers decide with more bits, too."""
    fast = RejectionSampler(shape, scale, **kind)
    forced = RejectionSampler(shape, scale, **kind, margin=float("inf"))
    rng = np.random.default_rng(7)
    is_open = fast._table == np.iinfo(np.int64).min
    is_open[fast._tail_slot] = False  # drawn bit by bit, and tested below
    slot = rng.choice(np.flatnonzero(is_open), 5000).astype(np.uint16)
    low = rng.integers(0, 1 << fast._shift, slot.size)
    for seed in range(3):
        by_doubles = fast._settle(slot, low, SeededSource(seed))
        by_integers = forced._settle(slot, low, SeededSource(seed))
        np.testing.assert_array_equal(by_doubles[0], by_integers[0])
        np.testing.assert_array_equal(by_doubles[1], by_integers[1])
        assert 0 < by_doubles[0].mean() < 1


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("scale", [Fraction(3), Fraction(2**40 + 1)])
def test_doubles_and_integers_decide_alike_in_the_tail(shape, smooth, scale):
    fast = RejectionSampler(shape, scale, smooth=smooth)
    forced = RejectionSampler(shape, scale, smooth=smooth, margin=float("inf"))
    for seed in range(200):
        assert fast._tail(SeededSource(seed)) == forced._tail(SeededSource(seed))


@pytest.mark.lengthy
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(9), Fraction(40)])
def test_every_outcome_has_its_share(shape, smooth, scale):
    """Pearson's test on all outcomes at once, which sees what a distribution function blurs.

    Cells expect 100 or more each, the rest is one cell, so the statistic is chi-square to a few
    parts in a thousand even where a correct sampler fails with FALSE_ALARM.
    """
    if smooth and scale < 1:
        scale = 3 * scale
    sampler = RejectionSampler(shape, scale, smooth=smooth)
    count = 4_000_000
    drawn = sampler.draw(count, source=noise.SYSTEM)
    reach = int(40 * scale) + 3
    k = np.arange(-reach, reach + 1)
    if smooth:
        law = stats.laplace if shape == "laplace" else stats.norm
        share = np.diff(law.cdf((np.append(k, reach + 1) - 0.5) / float(scale)))
    else:
        relative = np.abs(k / float(scale))
        share = np.exp(-(relative if shape == "laplace" else relative**2 / 2))
        share /= share.sum()
    seen = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=k.size)
    is_cell = share * count >= 100
    expected = np.append(share[is_cell], 1 - share[is_cell].sum()) * count
    found = np.append(seen[is_cell], count - seen[is_cell].sum())
    if expected[-1] < 100:
        expected = np.append(expected[1:-1], expected[0] + expected[-1])
        found = np.append(found[1:-1], found[0] + found[-1])
    statistic = ((found - expected) ** 2 / expected).sum()
    assert statistic <= stats.chi2.isf(FALSE_ALARM, expected.size - 1)
    assert expected.size >= 3


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("smooth", [False, True])
def test_the_integer_sampler_alone_follows_the_law(shape, smooth):
    sampler = RejectionSampler(shape, Fraction(50), smooth=smooth)
    count = 20_000
    draws = np.array([sampler._draw_exactly(noise.SYSTEM) for _ in range(count)])
    law = LAWS[f"{'rounded' if smooth else 'discrete'}_{shape}"]
    assert cdf_gap(draws, law(50.0)) <= dkw_band(count, false_alarm=FALSE_ALARM)


@pytest.mark.lengthy
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_the_tail_slot_has_the_tail_s_law(shape, one_sided):
    """Given that the tail slot accepts, what it gives is the law beyond the table."""
    sampler = RejectionSampler(shape, Fraction(3), one_sided=one_sided)
    tries = 100_000
    found = [sampler._tail(noise.SYSTEM) for _ in range(tries)]
    draws = np.array([draw for draw in found if draw is not None])
    start = sampler._buckets
    assert ((draws >= start) | (draws < -start)).all()
    right = draws[draws >= 0]
    k = np.arange(start, start + 200)
    weight = np.exp(-k / 3 if shape == "laplace" else -(k**2) / 18)
    # A try stands for one slot's worth of area; count how often the right tail's share is hit.
    expected = sampler._top * weight.sum()
    spread = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * tries))  # Hoeffding
    assert abs(right.size / tries - expected) <= spread
    if right.size > 500:
        cumulative = np.cumsum(weight) / weight.sum()

        def cdf(at):
            return np.where(at < start, 0.0, cumulative[np.clip(at - start, 0, 199)])

        assert cdf_gap(right, cdf) <= dkw_band(right.size, false_alarm=FALSE_ALARM)


def test_huge_scales_give_unbounded_integers():
    scale = 10**40
    draws = noise.discrete_gaussian(scale, 2000)
    assert draws.dtype == object
    assert max(draws) > 10**39 > -(10**39) > min(draws)
    share = np.mean([abs(draw) <= scale for draw in draws])
    assert abs(share - 0.6827) <= np.sqrt(np.log(2 / FALSE_ALARM) / (2 * 2000))


@pytest.mark.lengthy
@given(
    scale=st.fractions(min_value=Fraction(1, 50), max_value=10**9, max_denominator=10**6),
    shape=st.sampled_from(["laplace", "gaussian"]),
    smooth=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_staircase_covers_the_curve_and_certain_slots_lie_under_it(scale, shape, smooth):
    """The two facts the proof leans on, checked with exact bounds at every bucket's ends."""
    sampler = RejectionSampler(shape, scale, smooth=smooth)
    width = 1 << sampler._shift
    half = Fraction(1, 2) if smooth else Fraction(0)
    slots = np.diff([*sampler._starts, sampler._tail_slot])
    certain = np.array(
        [
            int((sampler._table[a : a + n] != np.iinfo(np.int64).min).sum())
            for a, n in zip(sampler._starts, slots, strict=True)
        ]
    )
    from discreet.noise.enclosure import exp_bounds

    for i in range(0, len(slots), max(1, len(slots) // 40)):
        low = (sampler._first_bucket + i) * width - half
        high = low + width - 1 + 2 * half
        near, far = max(low, -high, Fraction(0)), max(abs(low), abs(high))
        tallest = exp_bounds(sampler._phi_exact(near), 100)[1]
        lowest = exp_bounds(sampler._phi_exact(far), 100)[0]
        assert int(slots[i]) << 100 >= sampler._top * tallest
        assert int(certain[i]) << 100 <= sampler._top * lowest


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_bad_scales_are_refused_before_anything_is_drawn(name, bad, no_randomness):
    with pytest.raises(ParameterError, match="must be a finite number above 0"):
        getattr(noise, name)(bad, 3, source=no_randomness)


def test_sizes():
    assert noise.geometric(2, 0).shape == (0,)
    assert noise.geometric(2, (3, 0)).shape == (3, 0)
    assert noise.discrete_laplace(200, (2, 3, 4)).shape == (2, 3, 4)
    with pytest.raises(ParameterError, match="size"):
        noise.geometric(2, -1)


class _Recorder:
    """A source that remembers what it gave, so that samples can be decoded by hand."""

    is_secure = False

    def __init__(self, seed):
        self._inner, self.given = SeededSource(seed), []

    def read(self, n, /):
        self.given.append(self._inner.read(n))
        return self.given[-1]


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "scale", [2**8, 2**13 + 1, 2**21, 2**22 + 5, 2**37, 2**40, 2**49 + 1, 2**50 + 3, 2**51 - 1]
)
def test_every_random_bit_reaches_the_sample(shape, scale):
    """Certain slots give bucket * 2**shift + low bits, to the last bit, at every width of words."""
    sampler = RejectionSampler(shape, Fraction(scale))
    source = _Recorder(1)
    count = 5000
    drawn = sampler.draw(count, source=source)
    slots = np.frombuffer(source.given[0], "<u2").tolist()
    size = len(source.given[1]) // len(slots)
    lows = np.frombuffer(source.given[1], f"<u{size}").tolist()
    mask = (1 << sampler._shift) - 1
    checked = 0
    assert len(slots) == len(lows) >= count  # the surplus replaces what was rejected
    for slot, low, got in zip(slots, lows, drawn.tolist(), strict=False):
        if sampler._table[slot] != np.iinfo(np.int64).min:
            bucket = int(sampler._bucket[slot])
            assert got == (bucket << sampler._shift) + (low & mask)
            checked += 1
    assert checked > 0.9 * count


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian", "rounded_laplace"])
@pytest.mark.parametrize("scale", [2**45, 2**51 - 1])
def test_large_samples_are_as_often_odd_as_even(name, scale):
    draws = getattr(noise, name)(scale, SAMPLES)
    large = draws[np.abs(draws) > scale]
    odd = np.mean(large % 2)
    assert abs(odd - 0.5) <= np.sqrt(np.log(2 / FALSE_ALARM) / (2 * large.size))  # Hoeffding


def test_rounded_noise_needs_a_grid_that_it_can_be_seen_on():
    for name in ("rounded_laplace", "rounded_gaussian"):
        assert getattr(noise, name)(Fraction(1, 8), 1000).shape == (1000,)
        with pytest.raises(ParameterError, match="at least 1/8"):
            getattr(noise, name)(0.002, 1000)
