"""Laplace and Gaussian mechanisms, discrete and real: loss, law, errors, bad input, attacks."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import audit
from discreet import mechanisms as m
from discreet.accounting import delta as delta_of
from discreet.accounting import epsilon as epsilon_of
from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.mechanisms.values.grid import Grid
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9
scales = st.fractions(min_value=Fraction(1, 20), max_value=1000, max_denominator=1000)

EVERY = [
    m.Laplace(sensitivity=1, scale=2),
    m.Gaussian(sensitivity=1, sigma=2),
    m.DiscreteLaplace(sensitivity=1, scale=2),
    m.DiscreteGaussian(sensitivity=1, sigma=2),
]


# The loss is the truth ------------------------------------------------------------------------


@given(scale=scales, sensitivity=st.integers(1, 50), k=st.integers(-999, 999), shift=st.data())
def test_no_integer_output_leaks_more_than_claimed(scale, sensitivity, k, shift):
    mechanism = m.DiscreteLaplace(sensitivity=sensitivity, scale=scale)
    moved = shift.draw(st.integers(-sensitivity, sensitivity))
    gain = mechanism.log_weight(k) - mechanism.log_weight(k - moved)
    assert gain <= mechanism.loss.epsilon_pure  # exact rational arithmetic


@given(scale=scales, x=st.fractions(-999, 999), share=st.fractions(-1, 1))
def test_no_real_output_leaks_more_than_claimed(scale, x, share):
    mechanism = m.Laplace(sensitivity=3, scale=scale)
    gain = mechanism.log_weight(x) - mechanism.log_weight(x - 3 * share)
    assert gain <= mechanism.loss.epsilon_pure  # exact rational arithmetic


def test_the_weights_of_real_noise_are_those_of_its_law():
    for mechanism, law in [(m.Laplace(sensitivity=1, scale=2), stats.laplace(scale=2)),
                           (m.Gaussian(sensitivity=1, sigma=2), stats.norm(scale=2))]:  # fmt: skip
        for x in (0.0, 0.3, -5.0):
            expected = law.logpdf(x) - law.logpdf(0)
            assert float(mechanism.log_weight(x)) == pytest.approx(expected, rel=1e-8)


def hockey_stick(weights_p, weights_q, epsilon):
    """Sum of max(0, p - e^eps q) for two laws on the same points."""
    return np.maximum(weights_p - math.exp(epsilon) * weights_q, 0).sum()


def discrete_gaussian_law(sigma, shift, reach):
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-((k - shift) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize("sigma", [0.7, 2.0, 5.3])
@pytest.mark.parametrize(("sensitivity", "shift"), [(1, 1), (3, 3), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_scalar_discrete_gaussian_costs_what_its_loss_says(sigma, sensitivity, shift, epsilon):
    loss = m.DiscreteGaussian(sensitivity=sensitivity, sigma=sigma, dimension=1).loss
    reach = int(12 * sigma) + 10
    law = [discrete_gaussian_law(sigma, s, reach) for s in (0, shift)]
    truth = hockey_stick(*law, epsilon)
    assert truth <= delta_of(loss, epsilon=epsilon) + 1e-15
    if shift == sensitivity:
        assert delta_of(loss, epsilon=epsilon) == pytest.approx(truth, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("sigma", [0.8, 2.5])
@pytest.mark.parametrize("sensitivity", [1, math.sqrt(2), 2, math.sqrt(5)])
def test_no_integer_vector_within_the_norm_costs_more(sigma, sensitivity):
    loss = m.DiscreteGaussian(sensitivity=sensitivity, sigma=sigma).loss
    reach = int(9 * sigma) + 6
    for x, y in itertools.product(range(4), repeat=2):
        if 0 < x * x + y * y <= sensitivity**2 * (1 + 1e-12):
            at_zero, at_x, at_y = (discrete_gaussian_law(sigma, s, reach) for s in (0, x, y))
            p, q = np.outer(at_zero, at_zero), np.outer(at_x, at_y)
            for epsilon in (0.05, 0.5, 1.5, 4.0):
                truth = hockey_stick(p, q, epsilon)
                assert truth <= delta_of(loss, epsilon=epsilon) + 1e-13


def moved_steps(grid, pairs):
    left, right = (grid.steps(np.array(side)).tolist() for side in zip(*pairs, strict=True))
    return [a - b for a, b in zip(left, right, strict=True)]


@pytest.mark.lengthy
@given(
    pairs=st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=6),
    multiplier=scales,
    exponent=st.integers(-20, 3),
)
@settings(max_examples=300)
def test_rounding_to_the_grid_is_paid_for(pairs, multiplier, exponent):
    """In steps, distance over noise never exceeds what the loss states, whatever is rounded."""
    apart = [Fraction(a) - Fraction(b) for a, b in pairs]
    assume(any(abs(d) > 1e-6 for d in apart))
    l1 = sum(map(abs, apart))
    assume(2.0**exponent <= 4 * multiplier * l1 <= 2.0 ** (exponent + 49))
    laplace = m.Laplace(sensitivity=l1, scale=multiplier * l1, grid=2.0**exponent)
    grid, noise = laplace._noise(len(pairs))
    distance = sum(map(abs, moved_steps(grid, pairs)))
    assert distance / Fraction(noise) <= laplace.loss.epsilon_pure

    l2 = Fraction(math.hypot(*map(float, apart))) * Fraction(1 + 2**-40)  # not below the truth
    gaussian = m.Gaussian(sensitivity=l2, sigma=multiplier * l2, grid=2.0**exponent)
    grid, noise = gaussian._noise(len(pairs))
    distance_squared = sum(d * d for d in moved_steps(grid, pairs))
    assert distance_squared <= (Fraction(noise) / gaussian.loss.noise_multiplier) ** 2


# The law of what comes out --------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.5, 8.0])
@pytest.mark.parametrize(
    ("make", "law"),
    [
        (lambda s: m.Laplace(sensitivity=1, scale=s), stats.laplace),
        (lambda s: m.Gaussian(sensitivity=1, sigma=s), stats.norm),
    ],
)
def test_real_releases_follow_the_law_and_a_wrong_scale_would_show(make, law, scale):
    samples = 100_000
    band = dkw_band(samples, false_alarm=FALSE_ALARM)
    released = make(scale).release(np.full(samples, 1e6)) - 1e6
    # In units of 2**-20, far coarser than the grid: the rounding is invisible at this band.
    steps = np.floor(released * 2**20).astype(np.int64)

    def cdf(at):
        return lambda k: law.cdf((k + 1) * 2.0**-20 / at)

    assert cdf_gap(steps, cdf(scale)) <= band
    assert cdf_gap(steps, cdf(0.8 * scale)) > band
    assert cdf_gap(steps, cdf(1.2 * scale)) > band


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_scalars_and_arrays_come_back_as_they_went_in(mechanism):
    kind = int if "Discrete" in type(mechanism).__name__ else float
    assert type(mechanism.release(kind(5))) is kind
    assert type(mechanism.release(np.array([5], dtype=np.int32)[0])) is kind
    assert type(mechanism.release(np.array(5))) is kind
    dtype = np.int64 if kind is int else np.float64
    for shape in [(0,), (3,), (2, 3), (2, 0, 3)]:
        released = mechanism.release(np.zeros(shape, dtype=np.int16))
        assert released.shape == shape
        assert released.dtype == dtype
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        full = np.full(3, np.iinfo(name).max, dtype=name)
        assert (mechanism.release(full) > np.iinfo(name).max // 4096).all() or name in ("i1", "u1")
    assert mechanism.release([1, 2, 3]).shape == (3,)
    strided = np.arange(20).reshape(4, 5)[::2, ::-1]
    before = strided.copy()
    assert mechanism.release(strided).shape == (2, 5)
    np.testing.assert_array_equal(strided, before)


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_error_bar_covers_as_often_as_it_says(mechanism, confidence):
    samples = 40_000
    bar = mechanism.error(confidence=confidence)
    covered = np.mean(np.abs(mechanism.release(np.zeros(samples, dtype=np.int64))) <= bar)
    spread = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * samples))  # Hoeffding
    assert covered >= confidence - spread
    if not isinstance(mechanism.release(0), int):
        assert covered <= confidence + spread


# Numbers at the edge --------------------------------------------------------------------------


def test_integer_arrays_saturate_and_never_wrap():
    top, bottom = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    values = np.array([top] * 500 + [bottom] * 500)
    for mechanism in (
        m.DiscreteLaplace(sensitivity=1, scale=1000),
        m.DiscreteGaussian(sensitivity=1, sigma=1000),
        m.DiscreteLaplace(sensitivity=1, scale=2.0**51),
        m.DiscreteGaussian(sensitivity=1, sigma=10**30),
    ):
        released = mechanism.release(values)
        assert top in released
        assert bottom in released
        if mechanism.error(confidence=0.999) < 2**62:  # wrapping would change the sign
            assert (released[:500] > 0).all()
            assert (released[500:] < 0).all()
    assert m.DiscreteLaplace(sensitivity=1, scale=1).release(2**80) > 2**79
    unsigned = m.DiscreteLaplace(sensitivity=1, scale=1).release(np.array([2**64 - 1], dtype="u8"))
    assert unsigned[0] > 2**62


def test_real_releases_keep_their_sense_from_tiny_to_huge():
    for value in (0.0, 1e-300, -1e-12, 1e12, -1e15, 1e18):
        for mechanism in (m.Laplace(sensitivity=1, scale=1), m.Gaussian(sensitivity=1, sigma=1)):
            tolerance = 60 + abs(value) * 1e-15
            assert abs(mechanism.release(value) - value) < tolerance
            assert (np.abs(mechanism.release(np.full(50, value)) - value) < tolerance).all()
    assert np.isfinite(
        m.Laplace(sensitivity=1, scale=1e-9).release(np.array([1e308, -1e308]))
    ).all()


def test_integers_are_released_exactly_however_large():
    for mechanism in (m.Laplace(sensitivity=1, scale=1), m.Gaussian(sensitivity=1, sigma=1)):
        big = 10**18 + 1
        assert abs(mechanism.release(big) - big) < 1000  # a double near 1e18 has steps of 128
        released = mechanism.release(np.array([big, -big, 2**63 - 1], dtype=np.int64))
        np.testing.assert_allclose(released, [big, -big, 2.0**63], rtol=1e-15)
    coarse = m.Laplace(sensitivity=64, scale=64, grid=16)
    assert abs(coarse.release(10**18) - 10**18) < 10**5
    assert set((coarse.release(np.arange(100)) % 16).tolist()) == {0.0}


@given(value=st.integers(-(2**63), 2**63 - 1), exponent=st.integers(-45, 20))
def test_integers_and_exact_fractions_round_alike(value, exponent):
    grid = Grid(exponent)
    exact = math.floor(value / grid.spacing + Fraction(1, 2))
    high, low = (int(part[0]) for part in grid._limbs(np.array([value])))
    if abs(value) <= 2**57:  # beyond, the finest grids clamp
        assert (high << 40) + low == exact
    assert grid.lowered(*grid.raised(value)) == float(exact * grid.spacing)


@given(value=st.integers(-(2**63), 2**63 - 2), exponent=st.integers(-45, 70))
def test_steps_of_neighbours_stay_neighbours_up_to_the_ends(value, exponent):
    """Rounding and saturation together move nothing further apart than it was."""
    steps = Grid(exponent).steps(np.array([value, value + 1])).tolist()
    assert 0 <= steps[1] - steps[0] <= max(1, 2**-exponent)
    assert max(map(abs, steps)) <= 2**62


def test_numpy_scalars_are_fine_as_parameters():
    for number in (np.float32(0.1), np.float64(0.5), np.int8(2), np.longdouble(0.3)):
        for mechanism in (
            m.Laplace(sensitivity=number, scale=number),
            m.Gaussian(sensitivity=1, sigma=number),
        ):
            assert np.isfinite(mechanism.release(1.0))
            assert "np." not in repr(mechanism)
        assert isinstance(m.DiscreteLaplace(sensitivity=1, scale=number).release(3), int)
        assert isinstance(m.DiscreteGaussian(sensitivity=1, sigma=number).release(3), int)


def test_error_bars_at_the_ends():
    almost = 1 - Fraction(1, 10**400)
    for mechanism in (*EVERY, m.DiscreteLaplace(sensitivity=1, scale=10**400)):
        assert mechanism.error(confidence=almost) > 0
        for bad in (0, 1, -0.1, float("nan")):
            with pytest.raises(ParameterError, match="confidence must be"):
                mechanism.error(confidence=bad)
    many = m.Laplace(sensitivity=1, scale=1e6)
    released = many.release(np.zeros(100_000))
    bar = many.error(confidence=0.9, coordinates=100_000)
    assert np.mean(np.abs(released) <= bar) == pytest.approx(0.9, abs=0.01)
    assert bar < 1.01 * many.error(confidence=0.9)


@pytest.mark.parametrize("widest", [3, 2**45, 2**60], ids=["none", "narrow", "wide"])
@pytest.mark.parametrize("exponent", [-900, -36, 0, 20, 60, 900])
def test_scalar_and_array_releases_are_the_same_function_of_the_sum(exponent, widest):
    grid = Grid(exponent)
    rng = np.random.default_rng(5)
    tiny = -(10.0 ** -np.arange(10, 320, 10))  # just below 0, where a rest is rounded to 1
    halves = (np.arange(-50, 50) + 0.5) * 2.0**exponent
    values = np.concatenate([rng.normal(size=100) * 10.0**e for e in range(-12, 16)])
    values = np.concatenate([values, tiny, -tiny, halves, [0.0, -0.0, 0.49999999999999994]])
    if widest > 2**53:  # added in limbs, which round twice beyond 2**93 steps
        values = values[np.abs(values) < 2.0 ** (exponent + 93)]
    noise = rng.integers(-widest, widest, values.size)
    by_array = grid.add(values, noise)
    raised = [grid.raised(value) for value in values.tolist()]
    by_scalar = [
        grid.lowered(steps + n, base)
        for (steps, base), n in zip(raised, noise.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(by_array, by_scalar)


@given(
    value=st.floats(-1e15, 1e15),
    noise=st.integers(-(2**55), 2**55),
    exponent=st.integers(-40, 10),
    carry=st.integers(-(2**40), 2**40),
)
def test_the_float_depends_on_the_exact_sum_alone(value, noise, exponent, carry):
    """Moving steps from the value to the noise changes nothing: low bits cannot tell them apart."""
    grid = Grid(exponent)
    step = int(grid.steps(np.array([value]))[0])
    moved = float((step + carry) * grid.spacing)
    if Fraction(moved) != (step + carry) * grid.spacing or abs(step) > 2**61:
        return
    one, other = (
        grid.add(np.array([v]), np.array([n])) for v, n in ((value, noise), (moved, noise - carry))
    )
    assert one[0] == other[0]


# Low-order bits -------------------------------------------------------------------------------


def textbook_laplace(value, n):
    return value + np.random.default_rng().laplace(size=n)


def last_bits(released):
    """The set of last four mantissa bits of answers in a window that 0 and 1 both reach."""
    inside = released[(released > 1 / 16) & (released < 1 / 8)]
    assert inside.size > 1000
    return set((inside.view(np.int64) & 15).tolist())


def test_low_order_bits_of_neighbours_have_the_same_patterns():
    def textbook(value):
        return textbook_laplace(value, 200_000)

    # Near 0.1, noise around 0 has all its bits, while noise around -0.9 has lost the last three.
    assert last_bits(textbook(0.0)) != last_bits(textbook(1.0))
    for mechanism in EVERY[:2]:
        released = [mechanism.release(np.full(200_000, value)) for value in (0.0, 1.0)]
        assert last_bits(released[0]) == last_bits(released[1]) == {0}
        # The last bits that do vary, those on the grid, take every value from both inputs. Each
        # of 256 is missed by 200,000 draws with a chance below exp(-700).
        step = float(mechanism._noise(200_000)[0].spacing)
        assert [set((part / step % 256).tolist()) for part in released] == [set(range(256))] * 2


@pytest.mark.parametrize("mechanism", EVERY[:2], ids=lambda mechanism: type(mechanism).__name__)
def test_an_audit_of_the_low_bits_finds_nothing(mechanism):
    def release(value, n):
        return mechanism.release(np.full(n, value))

    claim = epsilon_of(mechanism.loss, delta=1e-6)
    found = audit.low_bits(
        release, pair=(0.0, 1.0), epsilon=claim, delta=1e-6, batch=True, confidence=1 - FALSE_ALARM
    )
    assert found.epsilon_lower < 0.2, found


def test_an_audit_of_the_low_bits_breaks_the_textbook():
    found = audit.low_bits(
        textbook_laplace, pair=(0.0, 1.0), epsilon=1, delta=0, batch=True, confidence=1 - 1e-9
    )
    assert found.epsilon_lower > 3, found


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_every_mechanism_passes_the_audit_and_shows_most_of_its_loss(mechanism):
    kind = np.int64 if "Discrete" in type(mechanism).__name__ else np.float64

    def release(value, n):
        return mechanism.release(np.full(n, value, dtype=kind))

    pure = "Laplace" in type(mechanism).__name__
    claimed_delta = 0 if pure else 1e-3
    claim = epsilon_of(mechanism.loss, delta=claimed_delta)
    found = audit.mechanism(
        release,
        pair=(0, 1),
        epsilon=claim,
        delta=claimed_delta,
        samples=200_000,
        batch=True,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > (0.85 if pure else 0.3) * claim, found


def test_the_audit_would_notice_noise_that_is_a_fifth_too_small():
    short = m.Laplace(sensitivity=1, scale=0.8)
    found = audit.mechanism(
        lambda value, n: short.release(np.full(n, value)),
        pair=(0.0, 1.0),
        epsilon=1,
        delta=0,
        samples=200_000,
        batch=True,
        confidence=1 - FALSE_ALARM,
    )
    assert not found.passed, found


# Calibration and printed figures --------------------------------------------------------------


def test_printed_figures():
    assert m.Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1).sigma == pytest.approx(
        3.7306, abs=5e-5
    )
    count = m.DiscreteLaplace.calibrated(epsilon=1, sensitivity=1)
    released = count.release(np.zeros(200_000, dtype=np.int64))
    # The printed s.d. is the real Laplace's sqrt(2); the discrete one is a little smaller.
    assert released.std() == pytest.approx(1.357, abs=0.03)
    assert m.Laplace.calibrated(epsilon=1, sensitivity=1).release(
        np.zeros(200_000)
    ).std() == pytest.approx(math.sqrt(2), abs=0.03)
    tail = m.Laplace.calibrated(epsilon=0.1, sensitivity=1).error(confidence=0.95)
    assert tail == pytest.approx(30, abs=0.1)


@given(
    epsilon=st.floats(0.01, 20),
    delta=st.floats(1e-12, 0.1),
    sensitivity=st.floats(0.01, 1e6),
)
@settings(max_examples=40, deadline=None)
def test_calibration_keeps_the_promise_and_wastes_nothing(epsilon, delta, sensitivity):
    gaussian = m.Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert delta_of(gaussian.loss, epsilon=epsilon) <= delta
    smaller = m.Gaussian(sensitivity=sensitivity, sigma=gaussian.sigma * 0.999)
    assert delta_of(smaller.loss, epsilon=epsilon) > delta
    laplace = m.Laplace.calibrated(epsilon=epsilon, sensitivity=sensitivity)
    assert Fraction(0.999999) * Fraction(epsilon) < laplace.loss.epsilon_pure <= Fraction(epsilon)
    whole = m.DiscreteLaplace.calibrated(epsilon=epsilon, sensitivity=7)
    assert Fraction(0.999999) * Fraction(epsilon) < whole.loss.epsilon_pure <= Fraction(epsilon)


def test_the_discrete_gaussian_is_calibrated_for_scalars_and_vectors():
    for options in ({"dimension": 1, "sensitivity": 3}, {"sensitivity": 1}, {"sensitivity": 3}):
        mechanism = m.DiscreteGaussian.calibrated(epsilon=1, delta=1e-6, **options)
        assert delta_of(mechanism.loss, epsilon=1) <= 1e-6
    exact = m.DiscreteGaussian.calibrated(epsilon=1, delta=1e-6, sensitivity=3, dimension=1)
    any_shape = m.DiscreteGaussian.calibrated(epsilon=1, delta=1e-6, sensitivity=3)
    assert exact.sigma <= any_shape.sigma <= 1.1 * exact.sigma


# Bad input ------------------------------------------------------------------------------------

BAD_NUMBERS = [0, -1, -0.0, float("nan"), float("inf"), True, "1", None, 1j]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (m.Laplace, ("sensitivity", "scale")),
        (m.Gaussian, ("sensitivity", "sigma")),
        (m.DiscreteLaplace, ("sensitivity", "scale")),
        (m.DiscreteGaussian, ("sensitivity", "sigma")),
    ],
)
def test_bad_parameters_are_named(make, names, bad):
    for name in names:
        with pytest.raises(ParameterError, match=f"{name} must be a .*number") as caught:
            make(**{**dict.fromkeys(names, 1), name: bad})
        assert caught.value.parameter == name
        assert isinstance(caught.value, DiscreetError)


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_bad_budgets_are_named(bad):
    for make in (m.Laplace, m.DiscreteLaplace):
        with pytest.raises(ParameterError, match="epsilon must be"):
            make.calibrated(epsilon=bad, sensitivity=1)
    for make in (m.Gaussian, m.DiscreteGaussian):
        with pytest.raises(ParameterError, match="epsilon must be"):
            make.calibrated(epsilon=bad, delta=1e-6, sensitivity=1)
    for bad_delta in (0, 1, 1.5, -1e-9, float("nan")):
        with pytest.raises(ParameterError, match="delta must be"):
            m.Gaussian.calibrated(epsilon=1, delta=bad_delta, sensitivity=1)


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize(
    "bad",
    [
        float("nan"),
        float("inf"),
        np.array([1.0, np.nan]),
        np.array([1.0, -np.inf]),
        "text",
        None,
        True,
        np.array([True]),
        np.array(["a"]),
        [[1, 2], [3]],
        np.array([1 + 2j]),
        np.ma.array([1, 2], mask=[False, True]),
        np.array([1, 2], dtype="timedelta64[s]"),
        object(),
    ],
    ids=lambda bad: "object" if type(bad) is object else repr(bad),
)
def test_bad_values_are_refused_before_noise_is_drawn(mechanism, bad, no_randomness):
    with pytest.raises(DataError, match=r"values must (not )?be"):
        mechanism.release(bad, source=no_randomness)


def test_integer_mechanisms_refuse_floats_and_name_the_way_out(no_randomness):
    for mechanism in EVERY[2:]:
        for value in (2.0, np.array([2.0])):
            with pytest.raises(DataError, match="Laplace, Gaussian"):
                mechanism.release(value, source=no_randomness)


def test_errors_never_show_a_value():
    secret = 123456.789
    for value in (np.array([secret, np.nan]), [secret, None]):
        with pytest.raises(DataError) as caught:
            m.Laplace(sensitivity=1, scale=1).release(value)
        assert "123456" not in str(caught.value)


def test_grids():
    with pytest.raises(ParameterError, match="power of two"):
        m.Laplace(sensitivity=1, scale=1, grid=0.3)
    with pytest.raises(ParameterError, match="grid must be between"):
        m.Gaussian(sensitivity=1, sigma=1, grid=2.0**-60)
    with pytest.raises(ParameterError, match="2\\*\\*-900"):
        m.Laplace(sensitivity=1, scale=1e-300)
    with pytest.raises(ParameterError, match="grid must be between"):
        m.Laplace(sensitivity=1000, scale=1, grid=1024)
    with pytest.raises(ParameterError, match="sensitivity must be at least"):
        m.Laplace(sensitivity=1e-20, scale=1)
    with pytest.raises(DataError, match="Release fewer at a time"):
        m.Laplace(sensitivity=1e-14, scale=1).release(np.zeros(10**6))
    coarse = m.Laplace(sensitivity=1, scale=1, grid=2)
    assert set((coarse.release(np.zeros(1000)) % 2).tolist()) == {0.0}
    assert coarse.error(confidence=0.9) > m.Laplace(sensitivity=1, scale=1).error(confidence=0.9)


def test_halves_round_up_so_that_one_step_stays_one_step():
    """Half-even rounding would take 0.5 to 0 and 1.5 to 2: two steps for a distance of one."""
    halves = np.arange(-9, 10) + 0.5
    steps = Grid(0).steps(halves)
    assert (np.diff(steps) == 1).all()
    assert (np.diff(np.rint(halves)) == 2).any()
    big = 2.0**52 + 1
    assert Grid(0).steps(np.array([big, -big])).tolist() == [2**52 + 1, -(2**52) - 1]
