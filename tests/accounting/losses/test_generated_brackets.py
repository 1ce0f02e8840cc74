"""Both bounds of losses drawn at random, against operations enumerated with forty digits."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from exact_operations import (
    SLACK,
    Delta,
    Operation,
    composed,
    delta_of,
    discrete_gaussian,
    discrete_laplace,
    exact,
    gaussian_cells,
    gaussian_delta,
    integer_shifts,
    laplace_cells,
    laplace_delta,
    mixture_cells,
    response,
    sampled,
    sampled_delta,
    shuffled,
    swapped,
    two_points,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FinitePairLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    PureLoss,
    RandomizedResponseLoss,
    SampledGroupLoss,
    SampledLoss,
    ShuffledLoss,
    TruncatedPoissonLoss,
    WithoutReplacementLoss,
    ZCDPLoss,
    bracket,
    compose,
    losses,
)
from discreet.accounting.losses.certified import delta_bracket
from discreet.privacy import Neighbours

DELTAS = (0.3, 0.02, 1e-3, 1e-6, 1e-12)
EPSILONS = (0, Fraction(1, 10), 1, 3, 10)


@dataclass(frozen=True)
class Case:
    """A loss and what is known of the operations it describes."""

    loss: Loss
    operations: tuple[Operation, ...]  # some of them
    worst: Delta | None  # the delta of the worst of all, None if not known

    def __repr__(self) -> str:
        return repr(self.loss)


def whole(loss: Loss, *operations: Operation) -> Case:
    """A loss of which the worst operations are these."""
    return Case(loss, operations, delta_of(operations))


def numbers(least: float, most: float):
    """Draw numbers evenly by their size, as floats or as fractions."""
    drawn = st.floats(math.log(least), math.log(most)).map(math.exp)
    return st.one_of(drawn, drawn.map(lambda x: Fraction(x).limit_denominator(1000) or x))


failures = st.one_of(
    st.just(0), numbers(1e-12, 0.5), numbers(1e-12, 0.5).map(lambda x: 1 - Fraction(x))
)
rates = st.one_of(numbers(1e-4, 0.999), st.just(1))


def pure(e) -> Case:
    return whole(PureLoss(epsilon=e), response(e))


def approximate(e, failure) -> Case:
    return whole(ApproximateLoss(epsilon=e, delta=failure), response(e, failure=failure))


def many_answers(e, k) -> Case:
    return whole(RandomizedResponseLoss(epsilon=e, categories=k), response(e, categories=k))


def bounded_range(e) -> Case:
    own = exact(e)

    def worst(at) -> mpf:
        x = exact(at)
        return delta_of([two_points(own, (x + own) / 2)])(at) if x < own else mpf(0)

    some = [two_points(own, own * k / 8) for k in range(1, 8)]
    return Case(BoundedRangeLoss(epsilon=e), tuple(some), worst)


def gaussian(m) -> Case:
    return Case(GaussianLoss(noise_multiplier=m), (gaussian_cells(m),), gaussian_delta(m))


def laplace(m) -> Case:
    return Case(LaplaceLoss(noise_multiplier=m), (laplace_cells(m),), laplace_delta(m))


def two_sided_geometric(m, shift) -> Case:
    loss = DiscreteLaplaceLoss(noise_multiplier=m, sensitivity=shift)
    return whole(loss, discrete_laplace(m, shift))


def integer_gaussian(sigma, squared, dimension) -> Case:
    loss = DiscreteGaussianLoss(
        sigma=sigma, sensitivity=math.sqrt(squared + 1e-6), dimension=dimension
    )
    shifts = integer_shifts(squared, dimension)
    return whole(loss, *(discrete_gaussian(sigma, shift) for shift in shifts))


def finite(weights) -> Case:
    p, q = ([Fraction(w[i], sum(x[i] for x in weights)) for w in weights] for i in (0, 1))
    loss = FinitePairLoss(p=p, q=q)
    return whole(loss, [(exact(a), exact(b)) for a, b in zip(p, q, strict=True)])


def concentrated(rho, failure) -> Case:
    """Gaussian noise is one operation of many; the worst is not known."""
    noise = gaussian_cells(Fraction(math.sqrt(1 / (2 * rho)) * (1 + 1e-12)))
    fail, zero = exact(failure), mpf(0)
    mixed = [((1 - fail) * p, (1 - fail) * q) for p, q in noise]
    loss = ZCDPLoss(rho=rho, delta=failure)
    return Case(loss, ([*mixed, (fail, zero), (zero, fail)],), None)


def mixed(e, n) -> Case:
    return Case(ShuffledLoss(epsilon0=e, n=n), (shuffled(e, n),), None)


def inside(case: Case, loss: Loss, rate) -> Case:
    """An operation on a sample, in which the unit is with chance ``rate``."""
    every = (*case.operations, *map(swapped, case.operations))
    worst = None if case.worst is None else sampled_delta(case.worst, rate)
    return Case(loss, tuple(sampled(one, rate) for one in every), worst)


def several_drawn(m, rate, size) -> Case:
    """Units that all pull one way; which of the ways to split them is the worst is not known."""
    loss = SampledGroupLoss(noise_multiplier=m, rate=rate, size=size)
    return Case(loss, tuple(mixture_cells(m, rate, up, size - up) for up in range(size + 1)), None)


def truncated(case: Case, rate, batch, population) -> Case:
    """The worst is not known, unless nothing is ever cut: then it is plain sampling."""
    loss = TruncatedPoissonLoss(inner=case.loss, rate=rate, batch=batch, population=population)
    found = inside(case, loss, rate)
    return found if batch >= population else Case(loss, found.operations, None)


SINGLE = {
    PureLoss: st.builds(pure, numbers(1e-3, 12)),
    ApproximateLoss: st.builds(approximate, numbers(1e-3, 8), failures),
    RandomizedResponseLoss: st.builds(many_answers, numbers(1e-2, 8), st.integers(2, 10**6)),
    BoundedRangeLoss: st.builds(bounded_range, numbers(1e-2, 8)),
    GaussianLoss: st.builds(gaussian, numbers(0.05, 50)),
    LaplaceLoss: st.builds(laplace, numbers(0.05, 50)),
    DiscreteLaplaceLoss: st.builds(two_sided_geometric, numbers(0.1, 20), st.integers(1, 12)),
    DiscreteGaussianLoss: st.builds(
        integer_gaussian,
        numbers(0.15, 3),
        st.integers(1, 6),
        st.sampled_from([None, None, 1, 2, 3]),
    ),
    FinitePairLoss: st.builds(
        finite,
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=5).filter(
            lambda rows: all(any(row[i] for row in rows) for i in (0, 1))
        ),
    ),
    ZCDPLoss: st.builds(concentrated, numbers(1e-4, 20), failures),
    ShuffledLoss: st.builds(mixed, numbers(0.1, 4), st.integers(2, 30)),
    SampledGroupLoss: st.builds(several_drawn, numbers(0.2, 20), rates, st.integers(1, 3)),
}
anything = st.one_of(*SINGLE.values())


def for_one(relation: Neighbours):
    return anything.filter(
        lambda case: case.loss.neighbours in (None, relation) and not case.loss.mixed_pairs()
    )


with_and_without = for_one(Neighbours.add_remove)
STRATEGIES = {
    **SINGLE,
    SampledLoss: st.builds(
        lambda case, rate: inside(case, case.loss.sampled(rate=rate), rate),
        with_and_without,
        rates,
    ),
    TruncatedPoissonLoss: st.builds(
        lambda case, rate, batch, more: truncated(case, rate, batch, batch + more),
        with_and_without,
        rates,
        st.integers(1, 60),
        st.sampled_from([0, 0, 1, 20]),
    ),
    WithoutReplacementLoss: st.builds(
        lambda case, batch, more: inside(
            case,
            WithoutReplacementLoss(inner=case.loss, batch=batch, population=batch + more),
            Fraction(batch, batch + more),
        ),
        for_one(Neighbours.replace_one),
        st.integers(1, 50),
        st.integers(0, 1000),
    ),
}


def check(case: Case) -> None:
    """Hold both bounds, of epsilon and of delta, against what was enumerated."""
    known = [delta_of(case.operations), *([case.worst] if case.worst is not None else [])]
    for target in DELTAS:
        found = bracket(case.loss, delta=target)
        assert 0 <= found.lower <= found.upper
        for truth in known:
            if found.upper < math.inf:
                assert truth(found.upper) <= exact(target) + SLACK, (target, found)
        if case.worst is not None and found.lower > 0:
            at = exact(found.lower)
            assert case.worst(at) >= exact(target) - SLACK, (target, found)
    for at in EPSILONS:
        both = delta_bracket(case.loss, epsilon=Fraction(at))
        for truth in known:
            assert truth(at) <= exact(both.upper) + SLACK, (at, both)
        if case.worst is not None:
            assert exact(both.lower) <= case.worst(at) + SLACK, (at, both)


def grouped(case: Case) -> bool:
    """Whether the operation for k units is known: noise moved k times as far."""
    return isinstance(case.loss, GaussianLoss | DiscreteLaplaceLoss | LaplaceLoss)


def group(case: Case, k: int) -> Case:
    loss = case.loss
    if isinstance(loss, GaussianLoss):
        found = gaussian(Fraction(loss.noise_multiplier) / k)
    elif isinstance(loss, LaplaceLoss):
        found = laplace(Fraction(loss.noise_multiplier) / k)
    else:
        assert isinstance(loss, DiscreteLaplaceLoss)
        found = two_sided_geometric(Fraction(loss.noise_multiplier) / k, loss.sensitivity * k)
    return Case(loss.group(k), found.operations, found.worst)


small = st.one_of(
    *(SINGLE[kind] for kind in (PureLoss, ApproximateLoss, RandomizedResponseLoss)),
    st.builds(two_sided_geometric, numbers(0.1, 20), st.integers(1, 3)),
    st.builds(lambda case, rate: inside(case, case.loss.sampled(rate=rate), rate),
              st.builds(approximate, numbers(1e-2, 6), failures), rates),
)  # fmt: skip
rough = st.one_of(
    st.builds(integer_gaussian, numbers(0.2, 0.7), st.integers(1, 4), st.sampled_from([None, 1])),
    SINGLE[FinitePairLoss],
    SINGLE[ZCDPLoss],
    SINGLE[BoundedRangeLoss],
    st.builds(gaussian, numbers(0.2, 20)),
    st.builds(laplace, numbers(0.2, 20)),
)


def together(cases: list[Case]) -> Case:
    """Do several things: the worst is known where the worst of each is one operation."""
    every = [composed(chosen) for chosen in itertools.product(*(c.operations for c in cases))]
    is_known = all(len(c.operations) <= 2 and c.worst is not None for c in cases) and not any(
        isinstance(c.loss, GaussianLoss | LaplaceLoss | BoundedRangeLoss) for c in cases
    )
    loss = compose([(case.loss, 1) for case in cases])
    return Case(loss, tuple(every), delta_of(every) if is_known else None)


def is_one_relation(cases: list[Case]) -> bool:
    return len({c.loss.neighbours for c in cases} - {None}) < 2


compositions = st.one_of(
    st.lists(small, min_size=2, max_size=4),
    st.tuples(small, rough).map(list),
    small.map(lambda case: [case] * 4),
).filter(is_one_relation)


def few_outcomes(cases: list[Case]) -> bool:
    return math.prod(sum(map(len, c.operations)) for c in cases) < 6000


def test_every_kind_of_loss_is_drawn():
    kinds = {
        kind
        for kind in map(vars(losses).get, losses.__all__)
        if isinstance(kind, type) and issubclass(kind, Loss)
    }
    assert set(STRATEGIES) == kinds - {Loss, losses.ComposedLoss}


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", STRATEGIES, ids=lambda kind: kind.__name__)
def test_one_operation_lies_between_its_bounds(kind):
    @settings(max_examples=6)
    @given(STRATEGIES[kind])
    def hold(case):
        check(case)

    hold()


@pytest.mark.lengthy
@settings(max_examples=6)
@given(compositions.filter(few_outcomes))
def test_several_operations_lie_between_their_bounds(cases):
    check(together(cases))


@pytest.mark.lengthy
@settings(max_examples=6)
@given(anything.filter(grouped), st.integers(1, 4))
def test_groups_lie_between_their_bounds(case, k):
    check(group(case, k))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STRATEGIES, ids=lambda kind: kind.__name__)
def test_many_operations_drawn_lie_between_their_bounds(kind):
    @settings(max_examples=60)
    @given(STRATEGIES[kind])
    def hold(case):
        check(case)

    hold()


@pytest.mark.slow
@settings(max_examples=60)
@given(compositions.filter(few_outcomes))
def test_many_compositions_drawn_lie_between_their_bounds(cases):
    check(together(cases))
