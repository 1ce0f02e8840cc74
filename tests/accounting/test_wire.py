"""Losses survive JSON to the last bit; every released form stays readable."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    WithoutReplacementLoss,
    ZCDPLoss,
    from_json,
    to_json,
)
from discreet.errors import ParameterError

FORMS = Path(__file__).parent / "released_forms.jsonl"

numbers = st.one_of(
    st.integers(1, 100),
    st.floats(0.01, 100),
    st.fractions(Fraction(1, 100), 100),
)
singles = st.one_of(
    st.builds(PureLoss, epsilon=numbers),
    st.builds(ApproximateLoss, epsilon=numbers, delta=st.floats(0, 0.1)),
    st.builds(ZCDPLoss, rho=numbers, delta=st.floats(0, 0.1)),
    st.builds(GaussianLoss, noise_multiplier=numbers),
    st.builds(LaplaceLoss, noise_multiplier=numbers),
    st.builds(DiscreteLaplaceLoss, noise_multiplier=numbers, sensitivity=st.integers(1, 9)),
    st.builds(
        DiscreteGaussianLoss,
        sigma=numbers,
        sensitivity=numbers,
        dimension=st.one_of(st.none(), st.integers(1, 9)),
    ),
    st.builds(BoundedRangeLoss, epsilon=numbers),
)


@pytest.mark.lengthy
@given(parts=st.lists(st.tuples(singles, st.integers(1, 10**6)), min_size=1, max_size=4))
def test_losses_come_back_equal(parts):
    loss = sum((part * times for part, times in parts), start=PureLoss(epsilon=0) * 0)
    assert from_json(to_json(loss)) == loss
    single = parts[0][0]
    assert from_json(to_json(single)) == single
    assert from_json(to_json(single.sampled(rate=0.25))) == single.sampled(rate=0.25)


def test_equal_losses_have_equal_text():
    a, b = PureLoss(epsilon=1), GaussianLoss(noise_multiplier=2)
    assert to_json(a + b) == to_json(b + a)


def test_every_released_form_is_read_as_what_it_meant():
    """This file only ever grows. A line that can no longer be read is a broken ledger."""
    lines = FORMS.read_text().splitlines()
    kinds = set()
    for line in lines:
        record = json.loads(line)
        loss = from_json(json.dumps(record["loss"]))
        assert repr(loss) == record["meant"]
        kinds.add(record["loss"]["kind"])
    assert kinds >= {"pure", "gaussian", "composed", "sampled", "finite_pair", "zcdp"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        '{"kind": "pure", "epsilon": 1}',
        '{"kind": "pure", "epsilon": 1, "version": 2}',
        '{"kind": "novel", "epsilon": 1, "version": 1}',
        '{"kind": "pure", "version": 1}',
        '{"kind": "pure", "epsilon": 1, "delta": 0, "version": 1}',
        '{"kind": "pure", "epsilon": "one", "version": 1}',
        '{"kind": "pure", "epsilon": "1/0", "version": 1}',
        '{"kind": "pure", "epsilon": -1, "version": 1}',
        '{"kind": "pure", "epsilon": NaN, "version": 1}',
        '{"kind": "pure", "epsilon": true, "version": 1}',
        '{"kind": "composed", "parts": [[{"kind": "pure", "epsilon": 1}]], "version": 1}',
        '{"kind": "composed", "parts": [[{"kind": "pure", "epsilon": 1}, -1]], "version": 1}',
        '{"kind": "composed", "parts": {}, "version": 1}',
        '{"kind": "sampled", "inner": 3, "rate": 0.5, "version": 1}',
    ],
)
def test_what_is_not_known_is_refused(text):
    with pytest.raises(ParameterError):
        from_json(text)


def test_other_kinds_too():
    for loss in (
        RandomizedResponseLoss(epsilon=1, categories=3),
        WithoutReplacementLoss(inner=PureLoss(epsilon=1), batch=3, population=10),
        FinitePairLoss(p=(Fraction(1, 3), Fraction(2, 3)), q=(0.5, 0.5)),
    ):
        assert from_json(to_json(loss)) == loss
