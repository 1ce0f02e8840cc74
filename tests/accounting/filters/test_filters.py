"""Filters add exactly, refuse without a trace, and hold against an adversary."""

import copy
import importlib.util
import json
import math
import pickle
import threading
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    Filter,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    PureLoss,
    RandomizedResponseLoss,
    ZCDPLoss,
    delta,
    epsilon,
    renyi,
)
from discreet.accounting.renyi.quick import laplace_upper, pure_upper
from discreet.errors import BudgetExceeded, NotCopyable, ParameterError
from discreet.privacy import Guarantee

KINDS = ["basic", "zcdp", "renyi", "combined"]
PROMISE = Guarantee(epsilon=3, delta=1e-6)
EXAMPLE = Path(__file__).parents[3] / "examples" / "adaptive_adversary.py"

small = st.floats(1e-9, 2, allow_subnormal=False)
losses = st.one_of(
    st.builds(PureLoss, epsilon=small),
    st.builds(LaplaceLoss, noise_multiplier=st.floats(1, 1e9)),
    st.builds(GaussianLoss, noise_multiplier=st.floats(2, 1e9)),
    st.builds(ZCDPLoss, rho=st.fractions(0, Fraction(1, 10), max_denominator=997)),
    st.builds(BoundedRangeLoss, epsilon=small),
    st.builds(ApproximateLoss, epsilon=small, delta=st.floats(0, 1e-9)),
)
kinds = st.sampled_from(KINDS)


class Stated(Loss):
    """A loss that says whatever it is told to say."""

    kind = "stated"

    def __init__(self, pure, zcdp=None):
        self.pure, self.stated = pure, zcdp

    @property
    def epsilon_pure(self):
        return self.pure

    @property
    def zcdp(self):
        return self.stated or (math.inf, Fraction(0))

    def delta_upper(self, *, epsilon):
        return 1.0


def charged(promise, sequence, **options):
    f = Filter(promise, **options)
    for loss in sequence:
        if f.ask(loss):
            f.charge(loss)
    return f


# Limits


@pytest.mark.parametrize("epsilon_", [0.01, 0.5, 3, 20])
@pytest.mark.parametrize("delta_", [1e-3, 1e-6, 1e-12])
def test_limits_prove_the_guarantee_and_nothing_much_larger_would(epsilon_, delta_):
    promise = Guarantee(epsilon=epsilon_, delta=delta_)
    certain = Fraction(delta_) * 7 / 8
    rho, failure = Filter(promise, kind="zcdp").limits
    assert delta(ZCDPLoss(rho=rho), epsilon=epsilon_) + failure <= delta_
    assert failure == Fraction(delta_) / 8
    assert delta(ZCDPLoss(rho=rho * (1 + Fraction(1, 10**6))), epsilon=epsilon_) > certain
    f = Filter(promise, kind="renyi")
    limit, failure = f.limits
    with mpmath.workdps(50):
        a, r = (mpmath.mpf(x.numerator) / x.denominator for x in (f.order, limit))
        proved = mpmath.exp((a - 1) * (r - epsilon_)) * (1 - 1 / a) ** a / (a - 1)
        assert certain * (1 - Fraction(1, 10**6)) <= Fraction(str(proved)) <= certain
    # The default order serves Gaussians as well as zCDP does, but for the rounding of the order.
    assert float(rho) * 0.999 <= float(limit / f.order) <= float(rho) * (1 + 1e-9)


def test_the_basic_filter_has_the_guarantee_as_its_limits():
    assert Filter(Guarantee(epsilon=2, delta=0.25), kind="basic").limits == (2, Fraction(1, 4))


def test_delta_is_shared_out_completely():
    epsilon_, delta_ = Fraction(PROMISE.epsilon), Fraction(PROMISE.delta)
    f = Filter(PROMISE)
    surplus, basic, _, failure = f.limits[0] - epsilon_, *f.limits[1:]
    with mpmath.workdps(50):
        a, r = (mpmath.mpf(x.numerator) / x.denominator for x in (f.order, f.limits[2]))
        renyi_share = mpmath.exp((a - 1) * (r - 3)) * (1 - 1 / a) ** a / (a - 1)
    total = surplus + basic + failure + Fraction(str(renyi_share))
    assert delta_ * (1 - Fraction(1, 10**6)) <= total <= delta_


# Costs


@given(e=st.floats(1e-12, 1e3), a=st.floats(1.001, 1e4))
def test_renyi_costs_are_upper_bounds_and_tight(e, a):
    with mpmath.workdps(60):
        x, o = mpmath.mpf(e), mpmath.mpf(a)
        response = mpmath.log((mpmath.exp(o * x) + mpmath.exp((1 - o) * x)) / (1 + mpmath.exp(x)))
        laplace = mpmath.log(
            o / (2 * o - 1) * mpmath.exp((o - 1) * x) + (o - 1) / (2 * o - 1) * mpmath.exp(-o * x)
        )
        for truth, ours in ((response, pure_upper), (laplace, laplace_upper)):
            exact = truth / (o - 1)
            found = ours(epsilon=Fraction(e), order=Fraction(a))
            bound = mpmath.mpf(found.numerator) / found.denominator
            assert exact <= bound * (1 + mpmath.mpf(10) ** -40)
            assert bound <= exact * (1 + mpmath.mpf(10) ** -3) + 1e-14 * (x + 4 / (o - 1))


@pytest.mark.lengthy
@given(loss=losses)
def test_a_renyi_filter_never_charges_more_than_a_zcdp_filter_of_the_same_loss(loss):
    a = Filter(PROMISE, kind="renyi")
    b = Filter(PROMISE, kind="zcdp")
    assert a.ask(loss).used_after <= b.ask(loss).used_after * 1.001 + 1e-15


def test_each_kind_charges_what_its_page_says():
    gaussian, approximate = (
        GaussianLoss(noise_multiplier=10),
        ApproximateLoss(epsilon=1, delta=1e-8),
    )
    z = Filter(PROMISE, kind="zcdp")
    assert z.ask(gaussian).used_after == pytest.approx(0.005 / float(z.limits[0]))
    r = Filter(PROMISE, kind="renyi", order=8)
    assert r.ask(gaussian).used_after == pytest.approx(0.04 / float(r.limits[0]))
    assert r.charge(approximate).used_after == pytest.approx(
        renyi.pure(epsilon=1, order=8) / float(r.limits[0])
    )
    b = Filter(PROMISE, kind="basic")
    assert b.charge(approximate).used_after == 1 / 3
    assert b.state[1] / b.rules.units[1].limit == pytest.approx(0.01)
    share = b.ask(gaussian).used_after - 1 / 3
    exact = epsilon(gaussian, delta=PROMISE.delta / 1024)
    assert exact <= 3 * share <= 1.15 * exact


def test_a_training_run_is_charged_as_a_whole_to_zcdp_and_step_by_step_to_renyi():
    steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 1000
    promise = Guarantee(epsilon=8, delta=1e-6)
    z = Filter(promise, kind="zcdp")
    quote = z.ask(steps)
    whole = epsilon(steps, delta=1e-6 / 1024)
    assert quote.used_after == pytest.approx(whole**2 / 2 / float(z.limits[0]), rel=1e-6)
    assert z.charge(steps) == quote
    assert z.state[1] * 128 == pytest.approx(Filter(promise, kind="zcdp").rules.units[1].limit)
    r = Filter(promise, kind="renyi", order=8)
    one = renyi.sampled_gaussian(noise_multiplier=4, rate=0.01, order=8)
    assert r.ask(steps).used_after == pytest.approx(1000 * one / float(r.limits[0]))
    assert r.ask(steps).used_after < quote.used_after / 4


# Sums


@pytest.mark.lengthy
@settings(max_examples=60)
@given(sequence=st.lists(losses, max_size=8), kind=kinds, data=st.data())
def test_order_and_grouping_do_not_matter(sequence, kind, data):
    promise = Guarantee(epsilon=100, delta=1e-5)
    shuffled = data.draw(st.permutations(sequence))
    assert (
        charged(promise, sequence, kind=kind).state == charged(promise, shuffled, kind=kind).state
    )
    if sequence and kind in ("zcdp", "renyi"):  # each charge is rounded up by less than a unit
        apart = charged(promise, sequence, kind=kind).state
        whole = charged(promise, [together(sequence)], kind=kind).state
        assert all(0 <= a - w <= len(sequence) for a, w in zip(apart, whole, strict=True))


@pytest.mark.lengthy
@given(epsilons=st.lists(st.fractions(0, 1, max_denominator=10**6), min_size=1, max_size=30))
def test_sums_are_exact_to_the_unit(epsilons):
    promise = Guarantee(epsilon=31)
    f = charged(promise, [PureLoss(epsilon=e) for e in epsilons])
    unit = f.limits[0] / f.rules.units[0].limit
    assert 0 <= f.state[0] * unit - sum(epsilons) < unit * len(epsilons)


@pytest.mark.parametrize("parts", [3, 7, 10, 12, 52, 1000, 1024])
def test_equal_shares_fill_a_filter_to_the_last_unit(parts):
    f = Filter(Guarantee(epsilon=3))
    for _ in range(parts):
        f.charge(PureLoss(epsilon=Fraction(3, parts)))
    assert f.used == 1
    refused = f.ask(PureLoss(epsilon=Fraction(1, 10**300)))
    assert not refused
    assert refused.used_after > 1


def test_floats_that_are_a_little_more_than_a_tenth_fit_ten_times_where_delta_pays_for_it():
    tenth = PureLoss(epsilon=0.1)
    f = Filter(Guarantee(epsilon=1, delta=1e-6))
    for _ in range(10):
        f.charge(tenth)
    assert not f.ask(tenth)
    strict = Filter(Guarantee(epsilon=1))
    for _ in range(9):
        strict.charge(tenth)
    assert not strict.ask(tenth)
    assert strict.ask(PureLoss(epsilon=0.0999))


def test_nothing_small_is_lost():
    f = Filter(Guarantee(epsilon=1))
    for _ in range(1000):
        f.charge(PureLoss(epsilon=1e-300))
    assert f.state[0] == 1000
    assert f.used > 0
    before = f.state
    f.charge(PureLoss(epsilon=0))
    assert f.state == before


# Soundness


def together(plan):
    total = plan[0] * 1
    for loss in plan[1:]:
        total = total + loss
    return total


@pytest.mark.lengthy
@settings(max_examples=30, deadline=None)
@given(multipliers=st.lists(st.floats(2, 30), min_size=30, max_size=60), kind=kinds)
def test_gaussians_that_fill_a_filter_keep_the_guarantee_as_a_fixed_plan(multipliers, kind):
    f = Filter(PROMISE, kind=kind)
    plan = [GaussianLoss(noise_multiplier=m) for m in multipliers]
    accepted = [loss for loss in plan if f.ask(loss) and f.charge(loss)]
    if accepted:
        assert delta(together(accepted), epsilon=PROMISE.epsilon) <= PROMISE.delta


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_that_fills_a_filter_keeps_the_guarantee_as_a_fixed_plan(kind):
    f = Filter(PROMISE, kind=kind)
    plan = [GaussianLoss(noise_multiplier=6), LaplaceLoss(noise_multiplier=4)] * 40
    accepted = [loss for loss in plan if f.ask(loss) and f.charge(loss)]
    assert len(accepted) < len(plan)
    assert delta(together(accepted), epsilon=PROMISE.epsilon) <= PROMISE.delta


@pytest.fixture(scope="module")
def game():
    spec = importlib.util.spec_from_file_location("adaptive_adversary", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def true_delta(game, rule, orders):
    p, q = game.play(rule, orders)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    return game._delta(zip(p, q, strict=True))


@pytest.mark.parametrize("order", [7, 9, 16, 30])
def test_a_filter_of_one_order_holds_against_the_adversary(game, order):
    found = true_delta(game, Filter(game.PROMISE, kind="renyi", order=order), [order])
    # Seven eighths are for certain losses; the adversary gets nearly all of it, so that the
    # filter could not be more generous.
    assert 0.8 * game.PROMISE.delta < found <= 0.875 * game.PROMISE.delta


@pytest.mark.lengthy
def test_going_on_while_some_order_still_fits_breaks_the_guarantee(game):
    assert true_delta(game, game.SomeOrderFits(game.ORDERS), game.ORDERS) > 1.5 * game.PROMISE.delta


def test_the_combined_filter_holds_against_an_adversary_who_uses_both_halves(game):
    f = Filter(game.PROMISE)
    order = f.order
    f.charge(game.FIRST)
    left = float(f.limits[2] - order * game.FIRST.zcdp[0]) - 1e-9
    factor = math.exp(game.PROMISE.epsilon)
    total = 0.0
    for p, q in zip(*game.first_answer(), strict=True):
        choices = game.questions({float(order): left}, math.log(p / q))
        # The basic half: reveal all that the sum of epsilons and deltas still allows.
        for share in (0.0, 0.5, 0.999):
            room = f.limits[0] * (1 - Fraction(f.state[0], f.rules.units[0].limit))
            room_delta = f.limits[1] * (1 - Fraction(f.state[1], f.rules.units[1].limit))
            loss = ApproximateLoss(
                epsilon=room * Fraction(999, 1000), delta=room_delta * Fraction(share)
            )
            assert f.ask(loss)
            d, e = float(loss.delta), float(loss.epsilon)
            yes = math.exp(e) / (1 + math.exp(e)) * (1 - d)
            outcomes = [(p * d, 0.0), (0.0, q * d), (p * yes, q * (1 - d - yes))]
            outcomes.append((p * (1 - d - yes), q * yes))
            choices.append(outcomes)
        gains = [
            math.fsum(max(0.0, a - factor * b) for a, b in c)
            for c in (
                c if isinstance(c, list) else game.after(c, p, q) if f.ask(c) else []
                for c in choices
            )
        ]
        total += max([*gains, max(0.0, p - factor * q)])
    assert total <= game.PROMISE.delta


# Refusals, restoring, sharing


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_changes_nothing_and_says_what_was_asked(kind):
    f = Filter(PROMISE, kind=kind)
    f.charge(PureLoss(epsilon=0.25))
    before = f.state
    with pytest.raises(BudgetExceeded, match="Nothing was spent") as caught:
        f.charge(PureLoss(epsilon=50))
    assert f.state == before
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.used, again.would_be) == (f.used, f.ask(PureLoss(epsilon=50)).used_after)
    assert again.would_be > 1
    assert str(again) == str(caught.value)


def test_a_loss_that_is_not_pure_has_no_place_in_a_pure_filter():
    f = Filter(Guarantee(epsilon=1))
    assert f.ask(GaussianLoss(noise_multiplier=100)).used_after == math.inf
    with pytest.raises(BudgetExceeded, match="no finite cost"):
        f.charge(GaussianLoss(noise_multiplier=100))


@pytest.mark.parametrize(
    "loss",
    [
        Stated(Fraction(-1)),
        Stated(math.nan),
        Stated(math.inf, (Fraction(-1), Fraction(0))),
        Stated(math.inf, (math.nan, Fraction(0))),
        Stated(math.inf, (Fraction(1), Fraction(-1))),
        0.5,
        None,
    ],
)
def test_negative_costs_nan_and_strangers_are_refused(loss):
    f = Filter(PROMISE)
    with pytest.raises(ParameterError):
        f.charge(loss)
    assert f.used == 0


@pytest.mark.lengthy
@settings(max_examples=40)
@given(sequence=st.lists(losses, max_size=6), later=losses, kind=kinds)
def test_a_restored_filter_goes_on_as_if_nothing_had_happened(sequence, later, kind):
    f = charged(PROMISE, sequence, kind=kind)
    row = json.loads(json.dumps([f.settings, f.state]))
    g = Filter.restored(*row)
    assert (g.state, g.settings, g.used, g.limits) == (f.state, f.settings, f.used, f.limits)
    assert g.ask(later) == f.ask(later)


@pytest.mark.parametrize(
    "damage",
    [
        lambda s, v: (s | {"form": 2}, v),
        lambda s, v: (s | {"kind": "odometer"}, v),
        lambda s, v: (s | {"delta": "1/0"}, v),
        lambda s, v: (s | {"limits": [[e, 2 * n] for e, n in s["limits"]]}, v),
        lambda s, v: (s | {"limits": [[e + 10**6, n] for e, n in s["limits"]]}, v),
        lambda s, v: (s | {"limits": s["limits"][1:]}, v),
        lambda s, v: ({k: x for k, x in s.items() if k != "order"}, v),
        lambda s, v: (s | {"neighbours": "replace_one"}, v),
        lambda s, v: (s, (-1, *v[1:])),
        lambda s, v: (s, (0.0, *v[1:])),
        lambda s, v: (s, (True, *v[1:])),
        lambda s, v: (s, v[1:]),
        lambda s, v: (s, (*v[:-1], 9)),
    ],
)
def test_a_damaged_record_is_refused(damage):
    f = Filter(PROMISE)
    with pytest.raises(ParameterError):
        Filter.restored(*damage(f.settings, f.state))


def test_a_filter_cannot_be_copied():
    f = Filter(PROMISE)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotCopyable):
            attempt(f)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_never_overspend_together(kind):
    f = Filter(Guarantee(epsilon=1, delta=1e-6), kind=kind)
    loss = PureLoss(epsilon=Fraction(1, 100))
    accepted = []

    def spend():
        for _ in range(1000):
            try:
                accepted.append(f.charge(loss).used_after)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = charged(Guarantee(epsilon=1, delta=1e-6), [loss] * 1000, kind=kind)
    assert f.state == alone.state
    assert len(set(accepted)) == len(accepted)
    assert f.ask(loss).fits is False


def test_losses_for_different_relations_do_not_mix():
    sampled = GaussianLoss(noise_multiplier=4).sampled(rate=0.01)
    response = RandomizedResponseLoss(epsilon=0.1, categories=2)
    f = Filter(PROMISE)
    f.charge(PureLoss(epsilon=0.1))
    f.charge(sampled)
    before = f.state
    for refuse in (f.ask, f.charge, Filter.restored(f.settings, f.state).ask):
        with pytest.raises(ParameterError, match="relation"):
            refuse(response)
    assert f.state == before
    with pytest.raises(ParameterError, match="relation"):
        Filter(PROMISE, neighbours="replace_one").charge(sampled * 10)


@pytest.mark.parametrize(
    ("promise", "options"),
    [
        (Guarantee(epsilon=1), {"kind": "zcdp"}),
        (Guarantee(epsilon=1, delta=1), {}),
        (PROMISE, {"kind": "best"}),
        (PROMISE, {"kind": "zcdp", "order": 4}),
        (PROMISE, {"kind": "renyi", "order": 1}),
        (PROMISE, {"kind": "renyi", "order": math.nan}),
        (PROMISE, {"kind": "renyi", "order": 2}),  # cannot prove it
        (PROMISE, {"neighbours": "cousins"}),
        (3, {}),
    ],
)
def test_bad_settings_are_refused(promise, options):
    with pytest.raises(ParameterError):
        Filter(promise, **options)


def test_the_default_kind_suits_the_guarantee():
    assert Filter(Guarantee(epsilon=1)).kind == "basic"
    assert Filter(PROMISE).kind == "combined"
    assert "combined" in repr(Filter(PROMISE))
