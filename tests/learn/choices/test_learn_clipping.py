"""Clipping: no unit exceeds its norm, whatever its gradient is, and the adaptive count is paid."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.accounting import GaussianLoss, delta, epsilon
from discreet.errors import ParameterError
from discreet.learn import Adaptive, Automatic, Clipping, Flat, PerLayer
from discreet.learn.choices.adaptive import AdaptiveState, as_clipping
from discreet.learn.gradients.engine import GradientEngine
from discreet.testing import SeededSource, cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct sampler fails its test

bounds = st.floats(2.0**-60, 2.0**60) | st.floats(0.01, 100)
singles = st.floats(width=32, min_value=0)  # infinity included
doubles = st.floats(min_value=0)


def exact_products(factors: torch.Tensor, norms: torch.Tensor) -> list[Fraction]:
    return [
        Fraction(f) * Fraction(n)
        for f, n in zip(factors.flatten().tolist(), norms.flatten().tolist(), strict=True)
        if math.isfinite(n)
    ]


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(
    bound=bounds | st.fractions(Fraction(1, 100), 100),
    norms=st.lists(singles, min_size=1),
    scale=st.floats(0.5, 2),
)
def test_flat_factors_never_let_a_norm_exceed_the_bound(dtype, bound, norms, scale):
    values = torch.tensor([[n] for n in [*norms, float(bound) * scale, float(bound)]], dtype=dtype)
    factors = Flat(norm=bound).factors(values)
    assert factors.dtype == dtype
    assert ((factors >= 0) & (factors <= 1)).all()
    assert all(product <= Fraction(bound) for product in exact_products(factors, values))


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(bound=bounds, stability=bounds, norms=st.lists(singles, min_size=1))
def test_automatic_factors_never_let_a_norm_exceed_the_bound(dtype, bound, stability, norms):
    values = torch.tensor([[n] for n in norms], dtype=dtype)
    factors = Automatic(norm=bound, stability=stability).factors(values)
    assert torch.isfinite(factors).all()
    assert all(product <= Fraction(bound) for product in exact_products(factors, values))


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(
    table=st.lists(st.tuples(bounds, singles), min_size=1, max_size=6),
    total=bounds,
)
def test_per_layer_contributions_never_exceed_the_sensitivity(dtype, table, total):
    values = torch.tensor([[n for _, n in table]], dtype=dtype)
    norms = {f"layer{i}": c for i, (c, _) in enumerate(table)}
    for clipping in (PerLayer(norms=norms), PerLayer(norm=total)):
        products = exact_products(clipping.factors(values), values)
        assert sum(product**2 for product in products) <= Fraction(clipping.sensitivity) ** 2
    assert Fraction(PerLayer(norms=norms).sensitivity) ** 2 >= sum(
        Fraction(c) ** 2 for c, _ in table
    )


@given(bound=st.floats(0.01, 100), norm=st.floats(2.0**-13, 2.0**13, width=32))
def test_factors_are_hardly_smaller_than_they_may_be(bound, norm):
    values = torch.tensor([[norm]])
    flat = Flat(norm=bound).factors(values).item()
    assert flat >= min(1, bound / norm) * (1 - 1e-6)
    assert (flat == 1) == (norm <= bound * (1 - 2.0**-22)) or abs(norm / bound - 1) < 1e-6
    automatic = Automatic(norm=bound, stability=0.5).factors(values).item()
    assert automatic == pytest.approx(bound / (norm + 0.5), rel=1e-6)


@pytest.mark.parametrize("clipping", [Flat(norm=1), PerLayer(norm=1), Automatic(norm=1)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_norms_that_are_no_numbers_get_the_factor_zero(clipping, dtype):
    bad = torch.tensor([[math.nan], [math.inf], [-math.nan], [0.5]], dtype=dtype)
    factors = clipping.factors(bad)
    assert factors[:3].flatten().tolist() == [0, 0, 0]
    assert factors[3].item() > 0.49
    assert factors.dtype == torch.promote_types(dtype, torch.float32)


def test_a_quotient_below_the_normal_range_becomes_zero():
    # 2**-60 / 2**100 is subnormal in single precision, where rounding is coarse.
    assert Flat(norm=2.0**-60).factors(torch.tensor([[2.0**100]])).item() == 0
    assert Flat(norm=2.0**-60).factors(torch.tensor([[2.0**60]])).item() > 0


def test_layers_are_the_modules_that_own_the_parameters():
    model = torch.nn.ModuleDict(
        {"body": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 3))}
    )
    model.register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
    names = [name for name, _ in model.named_parameters()]
    layers = ["", "body.0", "body.0", "body.1", "body.1"]
    assert [name.rpartition(".")[0] for name in names] == layers
    assert PerLayer(norm=1).groups(names) == (0, 1, 1, 2, 2)
    order = {"body.1": 1.0, "": 2.0, "body.0": 3.0}  # groups follow the mapping
    assert PerLayer(norms=order).groups(names) == (1, 2, 2, 0, 0)
    assert Flat(norm=1).groups(names) == Automatic(norm=1).groups(names) == (0,) * 5


def test_layers_and_norms_must_match():
    with pytest.raises(ParameterError, match=r"'body' is missing, 'tail' has none"):
        PerLayer(norms={"head": 1, "tail": 1}).groups(["head.weight", "body.weight"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Flat(norm=0),
        lambda: Flat(norm=-1),
        lambda: Flat(norm=math.nan),
        lambda: Flat(norm=math.inf),
        lambda: Flat(norm=2.0**61),
        lambda: Flat(norm=True),
        lambda: PerLayer(),
        lambda: PerLayer(norm=1, norms={"a": 1}),
        lambda: PerLayer(norms={}),
        lambda: PerLayer(norms={"a": 0}),
        lambda: PerLayer(norms=3),
        lambda: Automatic(norm=1, stability=0),
        lambda: Adaptive(initial=0, count_noise=1),
        lambda: Adaptive(initial=1, count_noise=0),
        lambda: Adaptive(initial=1, count_noise=math.inf),
        lambda: Adaptive(initial=1, count_noise=1, quantile=1),
        lambda: Adaptive(initial=1, count_noise=1, learning_rate=-1),
        lambda: Adaptive(initial=1, count_noise=1).gradient_noise(0),
        lambda: Adaptive(initial=1, count_noise=1).gradient_noise(2),
        lambda: Adaptive(initial=1, count_noise=1).start().update(math.nan),
        lambda: as_clipping("1"),
        lambda: as_clipping(None),
        lambda: as_clipping(Flat),
        lambda: as_clipping(math.inf),
    ],
)
def test_wrong_parameters_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_a_bad_expected_size_is_refused_before_anything_is_drawn():
    class Untouched:
        is_secure = False

        def read(self, n: int, /) -> bytes:
            raise AssertionError("randomness was drawn")

    state = Adaptive(initial=1, count_noise=1).start()
    with pytest.raises(ParameterError):
        state.release(expected=0, source=Untouched())


def test_what_clip_may_be():
    own = PerLayer(norm=2)
    assert as_clipping(2) == Flat(norm=2)
    assert as_clipping(own) is own
    started = as_clipping(Adaptive(initial=3, count_noise=5))
    assert isinstance(started, AdaptiveState)
    assert isinstance(started, Clipping)
    assert not isinstance(Adaptive(initial=3, count_noise=5), Clipping)  # it must be started


# --- adaptive clipping


@given(z=st.floats(0.1, 20), ratio=st.floats(0.51, 1000))
def test_gradient_and_count_together_cost_exactly_what_was_asked(z, ratio):
    sigma = Adaptive(initial=1, count_noise=z * ratio).gradient_noise(z)
    # The count has the sensitivity 1/2, so its noise multiplier is 2 sigma_b. Both are Gaussian,
    # so the joint noise multiplier follows from the sum of the inverse squares: exactly here.
    together = 1 / Fraction(sigma) ** 2 + 1 / (2 * Fraction(z * ratio)) ** 2
    assert together <= 1 / Fraction(z) ** 2
    assert float(together) == pytest.approx(z**-2, rel=1e-12)


@pytest.mark.parametrize(("z", "sigma_b"), [(1.0, 0.8), (0.7, 2.0), (3.0, 2.0)])
def test_the_accountant_agrees_with_the_theorem(z, sigma_b):
    adaptive = Adaptive(initial=1, count_noise=sigma_b)
    gradient = GaussianLoss(noise_multiplier=adaptive.gradient_noise(z))
    count = GaussianLoss(noise_multiplier=2 * sigma_b)
    both, one = gradient + count, GaussianLoss(noise_multiplier=z)
    assert epsilon(both, delta=1e-6) == pytest.approx(epsilon(one, delta=1e-6), rel=1e-3)
    assert delta(both, epsilon=1) == pytest.approx(delta(one, epsilon=1), rel=1e-3)
    # A count that nobody paid for would show.
    unpaid = GaussianLoss(noise_multiplier=z) + count
    assert epsilon(unpaid, delta=1e-6) > 1.01 * epsilon(one, delta=1e-6)


@given(norms=st.lists(doubles | st.just(math.nan), max_size=20), cut=st.integers(0, 20))
def test_one_unit_moves_the_tally_by_one_half(norms, cut):
    def tally(values: list[float]) -> int:
        state = Adaptive(initial=2, count_noise=1).start()
        for some in (values[:cut], values[cut:]):  # micro-batches do not matter
            state.observe(torch.tensor(some, dtype=torch.float64).reshape(-1, 1))
        return int(state.tally.item())

    for i in range(len(norms)):
        halves = tally(norms) - tally(norms[:i] + norms[i + 1 :])
        assert halves == (0 if norms[i] == 0 else 1 if norms[i] <= 2 else -1)
        # Zeroed out it adds to the count what it adds to the gradient: nothing.
        assert tally([*norms[:i], 0.0, *norms[i + 1 :]]) == tally(norms) - halves


@pytest.mark.lengthy
def test_the_count_has_the_noise_it_states_and_another_scale_would_show():
    n, sigma, expected = 20_000, 3.0, 10
    state = Adaptive(initial=1, count_noise=sigma).start()
    draws = np.empty(n)
    for i in range(n):
        state.observe(torch.tensor([[0.5], [0.5], [0.5], [2.0]]))  # 3 - 4/2 = 1 of 10, plus 1/2
        draws[i] = (state.release(expected=expected) - 0.6) * expected
    assert state.tally is None

    def gap(scale: float) -> float:
        hundredths = np.floor(draws * 100 + 0.5).astype(int)
        return cdf_gap(hundredths, lambda k: ndtr((k + 0.5) / (100 * scale)))

    band = dkw_band(n, false_alarm=FALSE_ALARM)
    assert gap(sigma) <= band
    # The true gap of scales 20% apart is about 0.05, more than twice the band.
    assert gap(0.8 * sigma) > band
    assert gap(1.25 * sigma) > band


def test_the_norm_follows_the_quantile():
    norms, source = torch.linspace(0, 10, 1001).reshape(-1, 1), SeededSource(7)
    for quantile in (0.2, 0.5, 0.9):
        state = Adaptive(initial=0.1, count_noise=1, quantile=quantile, learning_rate=0.3).start()
        for _ in range(120):
            state.observe(norms)
            state.update(state.release(expected=1001, source=source))
        assert state.norm == pytest.approx(10 * quantile, rel=0.05)
        assert state.clipping == Flat(norm=state.norm)
        assert state.sensitivity == state.norm


def test_wild_shares_leave_a_usable_norm():
    state = Adaptive(initial=1, count_noise=1, learning_rate=5).start()
    for share in (1e300, -1e300, *[1e9] * 100):
        state.update(share)
        assert state.clipping.norm > 0
    assert state.norm == 2.0**-60


def test_an_empty_batch_releases_noise_alone():
    state = Adaptive(initial=1, count_noise=2.0**-10).start()
    assert state.release(expected=100) == pytest.approx(0.5, abs=0.001)
    state.observe(torch.empty(0, 1))
    assert state.tally.item() == 0


def test_a_state_starts_again_where_a_checkpoint_left_it():
    settings = Adaptive(initial=1, count_noise=1)
    state = settings.start()
    state.update(0.0)
    again = settings.start(norm=state.norm)
    assert again.norm == state.norm != 1
    assert repr(again).startswith("AdaptiveState(norm=1.1")


def test_a_unit_without_a_gradient_has_no_length_although_its_bound_is_not_zero():
    """Else adaptive clipping would count one that is zeroed out, twice as far as accounted."""
    model = torch.nn.Linear(3, 1)
    state = Adaptive(initial=1, count_noise=1).start()
    engine = GradientEngine(model, clipping=state, is_checked=False)
    rows, weights = torch.randn(3, 3), torch.tensor([1.0, 0.0, 1.0])

    def loss(model, batch):
        return model(batch[0]).squeeze(1) * batch[1]

    found = engine.accumulate(loss, (rows, weights), units=3)
    assert (found.norms > 0).all()  # allow for what underflows
    assert (found.lengths > 0).flatten().tolist() == [True, False, True]
