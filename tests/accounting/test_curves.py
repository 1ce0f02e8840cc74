"""Profiles and trade-off curves: above and below the truth, and close to it."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import plotting
from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    curves,
    delta,
)
from discreet.accounting.curves import profile, tradeoff
from discreet.accounting.losses.certified import delta_bracket
from discreet.errors import MissingExtra, ParameterError

EPSILONS = [0, 0.01, 0.1, 0.3, 0.7, 1, 2, 3, 5]
RATES = [0, 1e-6, 0.001, 0.01, 0.05, 0.2, 0.5, 0.9, 1]


def normal_cdf(x):
    return math.erfc(-x / math.sqrt(2)) / 2


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "loss",
    [
        GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000,
        GaussianLoss(noise_multiplier=1.1).sampled(rate=256 / 60_000) * 14_062,
        PureLoss(epsilon=0.01) * 10_000,
        PureLoss(epsilon=0.1) * 10 + LaplaceLoss(noise_multiplier=3),
        GaussianLoss(noise_multiplier=1) + LaplaceLoss(noise_multiplier=1),
        ApproximateLoss(epsilon=0.1, delta=1e-7) * 20,
        BoundedRangeLoss(epsilon=0.1) * 100,
    ],
    ids=lambda loss: type(loss.parts[0][0]).__name__,
)
def test_a_profile_is_above_the_lower_bound_and_near_single_evaluations(loss):
    found = profile(loss, epsilons=EPSILONS)
    for e, d in zip(EPSILONS, found, strict=True):
        lower = delta_bracket(loss, epsilon=Fraction(e)).lower
        assert d >= lower
        assert d <= delta(loss, epsilon=e) * (1 + 2e-3) + 1e-30
    assert (np.diff(found) <= 0).all()


@pytest.mark.lengthy
@settings(max_examples=15, deadline=None)
@given(multiplier=st.floats(20, 200), steps=st.integers(2, 2000), first=st.floats(0, 3))
def test_many_gaussians_and_one_more_loss_stay_above_gaussians_alone(multiplier, steps, first):
    # A pure loss of nearly nothing keeps the accountant from joining all into one closed form.
    loss = GaussianLoss(noise_multiplier=multiplier) * steps + PureLoss(epsilon=1e-9)
    at = [first, first + 0.5]
    exact = [
        GaussianLoss(noise_multiplier=multiplier / math.sqrt(steps) * (1 + 1e-12)).delta_upper(
            epsilon=e
        )
        for e in at
    ]
    found = profile(loss, epsilons=at)
    assert (found >= np.array(exact) * (1 - 1e-9)).all()
    assert (found <= np.array(exact) * 1.01 + 1e-28).all()


def test_beyond_the_pure_epsilon_delta_is_zero_and_order_does_not_matter():
    loss = PureLoss(epsilon=0.5) * 2
    assert profile(loss, epsilons=[1, 0.2, 3]).tolist()[::2] == [0, 0]
    mixed = profile(loss, epsilons=[0.9, 0.1, 0.4])
    assert mixed.tolist() == profile(loss, epsilons=[0.1, 0.4, 0.9])[[2, 0, 1]].tolist()
    assert profile(loss, epsilons=[]).size == 0


@pytest.mark.parametrize("multiplier", [0.3, 1, 4])
def test_the_gaussian_curve_is_the_textbook_one(multiplier):
    found = tradeoff(GaussianLoss(noise_multiplier=multiplier), false_positive_rates=RATES)
    from scipy.stats import norm

    truth = norm.cdf(norm.ppf(1 - np.array(RATES)) - 1 / multiplier)
    assert (found <= truth + 1e-12).all()
    assert found == pytest.approx(truth, abs=1e-5)


def test_the_pure_curve_has_two_straight_pieces():
    e, a = 1.0, np.array(RATES)
    found = tradeoff(PureLoss(epsilon=e), false_positive_rates=RATES)
    truth = np.maximum.reduce([0 * a, 1 - math.e * a, (1 - a) / math.e])
    assert (found <= truth).all()
    assert found == pytest.approx(truth, abs=1e-9)


def test_a_composed_curve_is_close_below_that_of_the_limit():
    # 40,000 weak sampled steps are all but one Gaussian, whose curve is known.
    loss = GaussianLoss(noise_multiplier=10).sampled(rate=0.005) * 40_000
    mu = 0.005 * 200 * math.sqrt(math.expm1(0.01))
    found = tradeoff(loss, false_positive_rates=[0.01, 0.1, 0.5])
    limit = [normal_cdf(z - mu) for z in (2.326348, 1.281552, 0.0)]
    assert found == pytest.approx(limit, abs=2e-3)


@pytest.mark.lengthy
@settings(max_examples=20, deadline=None)
@given(
    a=st.floats(0, 1),
    b=st.floats(0, 1),
    loss=st.sampled_from(
        [
            GaussianLoss(noise_multiplier=1),
            LaplaceLoss(noise_multiplier=2),
            ApproximateLoss(epsilon=0.5, delta=0.01),
            PureLoss(epsilon=0.1) * 20,
        ]
    ),
)
def test_misses_fall_and_never_beat_guessing(a, b, loss):
    low, high = sorted((a, b))
    first, second = tradeoff(loss, false_positive_rates=[low, high])
    assert 1 - low >= first >= second - 1e-12
    assert second >= 0


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "some"])
def test_bad_rates_and_epsilons_are_refused(bad):
    with pytest.raises(ParameterError, match="false_positive_rates"):
        tradeoff(PureLoss(epsilon=1), false_positive_rates=[0.1, bad])
    if bad != 1.1:
        with pytest.raises(ParameterError, match="epsilons"):
            profile(PureLoss(epsilon=1), epsilons=[bad])


PLOTS = [curves.plot_profile, curves.plot_tradeoff]


@pytest.mark.parametrize("plot", PLOTS)
def test_without_matplotlib_the_extra_is_named(plot, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pip install 'discreet\[plot\]'"):
        plot(PureLoss(epsilon=1), path=tmp_path / "x.png")


@pytest.mark.lengthy
@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_has_one_line_for_each_loss(plot, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plotting, "save", lambda figure, path: drawn.append(figure))
    plot({"one": GaussianLoss(noise_multiplier=1), "two": PureLoss(epsilon=1)}, path=tmp_path)
    (axes,) = drawn[0].axes
    assert [line.get_label() for line in axes.lines][:2] == ["one", "two"]
    assert len({line.get_color() for line in axes.lines[:2]}) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()][:2] == ["one", "two"]
    assert axes.get_title(loc="left")


@pytest.mark.lengthy
@pytest.mark.parametrize("plot", PLOTS)
def test_a_real_picture(plot, tmp_path):
    written = plot(GaussianLoss(noise_multiplier=1), path=tmp_path / "x.png")
    assert written.read_bytes().startswith(b"\x89PNG")
