"""Both bounds of every loss against operations that are enumerated outcome by outcome."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FinitePairLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RandomizedResponseLoss,
    SampledGroupLoss,
    ShuffledLoss,
    TruncatedPoissonLoss,
    WithoutReplacementLoss,
    ZCDPLoss,
    bracket,
    delta,
    epsilon,
    losses,
    profile,
)
from discreet.accounting.losses.certified import delta_bracket

CLOSE = 1e-6  # of the enumeration, in epsilon and relatively in delta


def hockey_stick(law, e):
    p, q = law
    return float(np.maximum(0.0, p - math.exp(min(e, 700)) * q).sum())


def both_ways(*laws):
    return [way for p, q in laws for way in ((p, q), (q, p))]


def smallest_epsilon(laws, target):
    """Bisect for the epsilon at which the worst of the laws reaches ``target``."""
    if max(hockey_stick(law, 600.0) for law in laws) > target:
        return math.inf
    low, high = 0.0, 600.0
    if max(hockey_stick(law, 0.0) for law in laws) <= target:
        return 0.0
    for _ in range(45):
        middle = (low + high) / 2
        is_enough = max(hockey_stick(law, middle) for law in laws) <= target
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def response(own, failure=0.0, others=1):
    """Reveal the input with chance ``failure``, else answer by randomized response."""
    weights = np.array([math.exp(own), 1.0, *[1.0] * (others - 1)])
    p = (1 - failure) * weights / weights.sum()
    q = p[[1, 0, *range(2, p.size)]]
    return both_ways((np.append(p, [failure, 0.0]), np.append(q, [0.0, failure])))


def in_cells(noise, width):
    """Cut a continuous law and its shift by 1 into cells, which a post-processing could do."""
    edges = np.concatenate([[-np.inf], np.linspace(-width, width + 1, 60_001), [np.inf]])
    # From both ends, so that small chances keep their digits.
    p, q = (
        np.where(edges[1:] > at, -np.diff(noise.sf(edges - at)), np.diff(noise.cdf(edges - at)))
        for at in (0, 1)
    )
    return both_ways((p, q))


def gaussian(m):
    return in_cells(stats.norm(scale=m), 8 * m)


def laplace(m):
    return in_cells(stats.laplace(scale=m), 20 * m)


def shifted(weight, shift, reach):
    """Enumerate <d, noise> for integer noise on each coordinate: it holds the whole loss."""
    line = np.arange(-reach, reach + 1)
    single = weight(line) / weight(line).sum()
    law = np.ones(1)
    for d in shift:
        spread = np.zeros(2 * reach * d + 1)
        spread[::d] = single
        law = np.convolve(law, spread)
    return law


def discrete_gaussian(sigma, squared, dimension):
    """Enumerate every integer shift of at most this squared norm, up to order and sign."""
    found = []
    reach, root = math.ceil(9 * sigma) + 1, math.isqrt(squared)
    for d in itertools.combinations_with_replacement(range(root + 1), dimension):
        norm = sum(x * x for x in d)
        if 0 < norm <= squared:
            p = shifted(lambda k: np.exp(-((k / sigma) ** 2) / 2), [x for x in d if x], reach)
            place = np.arange(p.size) - p.size // 2
            found.append((p, p * np.exp((2 * place - norm) / (2 * sigma**2))))
    return both_ways(*found)


def discrete_laplace(m, shift):
    k = np.arange(-60 * shift, 61 * shift + 1)
    p, q = (np.exp(-np.abs(k - at) / (m * shift)) for at in (0, shift))
    return both_ways((p / p.sum(), q / q.sum()))


def two_points(own, t):
    """The two-point law whose loss is t or t - own."""
    high = -math.expm1(t - own) / (math.exp(t) - math.exp(t - own))
    q = np.array([high, 1 - high])
    return q * np.exp([t, t - own]), q


def bounded_range(own):
    below = np.append(np.linspace(0, 1, 1201)[1:-1], np.logspace(-4, -1, 300))
    return both_ways(*(two_points(own, own * (1 - u)) for u in below))


def sampled(laws, rate):
    return both_ways(*((rate * p + (1 - rate) * q, q) for p, q in laws))


def mixture(m, rate, size):
    """Gaussian noise around how many of some units are drawn, and around minus those of others."""
    edges = np.concatenate([[-np.inf], np.linspace(-8 * m - size, 8 * m + size, 60_001), [np.inf]])

    def law(count, sign):
        chances = stats.binom.pmf(np.arange(count + 1), count, rate)
        return sum(
            chance * np.where(edges[1:] > sign * i, -np.diff(stats.norm.sf(edges, sign * i, m)),
                              np.diff(stats.norm.cdf(edges, sign * i, m)))
            for i, chance in enumerate(chances)
        )  # fmt: skip

    return both_ways(*((law(up, 1), law(size - up, -1)) for up in range(size + 1)))


def shuffled(own, n):
    """Shuffle n binary randomized responses, of which the others' true answers are all 0."""

    def count(ones):
        law = np.ones(1)
        for i in range(n):
            yes = 1 / (1 + math.exp(-own if i < ones else own))
            law = np.convolve(law, [1 - yes, yes])
        return law

    return both_ways((count(0), count(1)))


third = Fraction(1, 3)
FINITE = FinitePairLoss(p=(third, third, third, 0), q=(Fraction(1, 2), third, 0, Fraction(1, 6)))
# (loss, operations it describes, whether the worst of all is among them)
CASES = {
    "pure": (PureLoss(epsilon=0.7), response(0.7), True),
    "approximate": (ApproximateLoss(epsilon=0.7, delta=0.01), response(0.7, 0.01), True),
    "approximate near 1": (ApproximateLoss(epsilon=1, delta=0.9995), response(1, 0.9995), True),
    "response": (RandomizedResponseLoss(epsilon=2, categories=4), response(2, others=3), True),
    "range": (BoundedRangeLoss(epsilon=1.5), bounded_range(1.5), True),
    "gaussian": (GaussianLoss(noise_multiplier=1.5), gaussian(1.5), True),
    "laplace": (LaplaceLoss(noise_multiplier=0.8), laplace(0.8), True),
    "discrete laplace": (
        DiscreteLaplaceLoss(noise_multiplier=0.8, sensitivity=3), discrete_laplace(0.8, 3), True),
    "finite": (
        FINITE, both_ways((np.array(FINITE.p, float), np.array(FINITE.q, float))), True),
    "sampled": (PureLoss(epsilon=2).sampled(rate=0.25), sampled(response(2), 0.25), True),
    "without replacement": (
        WithoutReplacementLoss(inner=PureLoss(epsilon=2), batch=2, population=8),
        sampled(response(2), 0.25), True),
    "truncated": (
        TruncatedPoissonLoss(inner=PureLoss(epsilon=2), rate=0.25, batch=3, population=3),
        sampled(response(2), 0.25), True),
    "sampled group": (
        SampledGroupLoss(noise_multiplier=0.7, rate=0.3, size=3), mixture(0.7, 0.3, 3), True),
    "shuffled": (ShuffledLoss(epsilon0=1, n=40), shuffled(1, 40), False),
    "zcdp": (ZCDPLoss(rho=0.3), gaussian(math.sqrt(1 / 0.6)), False),
    **{
        f"discrete gaussian {sigma} {squared} {dimension}": (
            DiscreteGaussianLoss(
                sigma=sigma, sensitivity=math.sqrt(squared + 1e-6), dimension=dimension),
            discrete_gaussian(sigma, squared, dimension or squared), True)
        for sigma, squared, dimension in [
            (0.6, 1, None), (0.6, 4, None), (0.6, 4, 1), (1.0, 3, None), (1.0, 3, 2),
            (1.2, 5, None), (1.5, 4, None), (3.0, 2, None), (3.0, 3, 2), (3.0, 4, None),
            (2.0, 6, 2),
        ]
    },
}  # fmt: skip


def test_every_kind_of_loss_is_enumerated():
    names = {name for name in losses.__all__ if name.endswith("Loss")} - {"Loss", "ComposedLoss"}
    assert {type(loss).__name__ for loss, _, _ in CASES.values()} == names


@pytest.mark.lengthy
@pytest.mark.parametrize("name", CASES)
def test_one_operation_lies_between_its_bounds(name):
    loss, laws, is_whole = CASES[name]
    for target in (0.3, 0.02, 1e-3, 1e-5):
        truth = smallest_epsilon(laws, target)
        found = bracket(loss, delta=target)
        assert found.lower <= found.upper
        assert truth <= found.upper * (1 + CLOSE) + CLOSE
        if is_whole:
            assert found.lower <= truth * (1 + CLOSE) + CLOSE, target
    for at in (0.0, 0.3, 1.1):
        truth = max(hockey_stick(law, at) for law in laws)
        found = delta_bracket(loss, epsilon=Fraction(at))
        assert truth <= found.upper * (1 + CLOSE) + 1e-12
        if is_whole:
            assert found.lower <= truth * (1 + CLOSE) + 1e-12, at


@pytest.mark.lengthy
@pytest.mark.parametrize("name", [n for n, (_, laws, _) in CASES.items() if laws[0][0].size < 60])
def test_two_operations_lie_between_their_bounds(name):
    loss, laws, is_whole = CASES[name]
    laws = laws if len(laws) < 100 else laws[::130]
    both = [
        (np.outer(p, r).ravel(), np.outer(q, s).ravel())
        for (p, q), (r, s) in itertools.combinations_with_replacement(laws, 2)
    ]
    for target in (0.3, 0.02, 1e-3):
        truth = smallest_epsilon(both, target)
        found = bracket(loss * 2, delta=target)
        assert truth <= found.upper * (1 + CLOSE) + CLOSE
        if is_whole:
            assert found.lower <= truth * (1 + CLOSE) + CLOSE, target


def test_failures_that_add_up_to_one_leave_no_promise():
    # Each of two or more reveals everything with its own chance; the sum must not be cut below 1.
    for loss in (ZCDPLoss(rho=0.01, delta=0.9995), ApproximateLoss(epsilon=0.1, delta=0.9995)):
        for composed in (loss * 2, loss * 10_000, loss * 2 + PureLoss(epsilon=0.1)):
            revealed = 1 - (1 - 0.9995) ** (2 if "2 x" in repr(composed) else 10_000)
            assert epsilon(composed, delta=0.9994) == math.inf
            assert delta(composed, epsilon=400) >= revealed
            assert profile(composed, epsilons=[400])[0] >= revealed
    assert delta(ZCDPLoss(rho=0.01, delta=0.01) * 1000, epsilon=50) >= 1 - 0.99**1000
    mixed = ZCDPLoss(rho=0.01, delta=0.9995) + LaplaceLoss(noise_multiplier=2)
    assert delta(mixed, epsilon=400) >= 0.9995


def test_a_group_too_large_for_its_promise_has_none():
    group = ApproximateLoss(epsilon=1, delta=0.01).group(50)
    assert (group.epsilon, group.delta, delta(group, epsilon=60)) == (50, 1, 1)
    assert epsilon(group, delta=1 - 2**-52) == math.inf
    assert delta(group + PureLoss(epsilon=1), epsilon=100) == 1


@pytest.mark.parametrize("share", [1 - 1e-12, 1 + 1e-12, 1 + 1e-9])
def test_near_an_epsilon_of_zero_the_lower_bound_is_zero(share):
    loss = GaussianLoss(noise_multiplier=1)
    at_zero = math.erf(1 / math.sqrt(8))
    found = bracket(loss, delta=at_zero * share)
    assert found.lower == 0
    assert found.upper < 1e-8


def test_an_epsilon_that_does_not_exist_is_found_to_be_infinite():
    assert epsilon(FINITE, delta=1e-3) == math.inf


def test_brackets_stay_narrow_where_the_worst_operation_is_known():
    for loss in (
        DiscreteGaussianLoss(sigma=3, sensitivity=2),
        BoundedRangeLoss(epsilon=2),
        WithoutReplacementLoss(inner=GaussianLoss(noise_multiplier=1), batch=5, population=50),
        WithoutReplacementLoss(inner=GaussianLoss(noise_multiplier=1), batch=5, population=50) * 9,
    ):
        found = bracket(loss, delta=1e-5)
        assert found.upper * 0.95 < found.lower <= found.upper
