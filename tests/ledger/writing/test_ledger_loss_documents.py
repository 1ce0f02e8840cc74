"""What is written of a loss depends on that loss alone."""

from fractions import Fraction

import pytest

from discreet.accounting import GaussianLoss, PureLoss
from discreet.errors import ParameterError
from discreet.ledger.writing.request import loss_document


@pytest.mark.parametrize("around", [lambda x: x, lambda x: x.sampled(rate=0.5), lambda x: x * 2])
def test_equal_losses_keep_their_own_texts(around):
    numbers = [1, 1.0, Fraction(1)]
    for order in (numbers, numbers[::-1]):
        texts = [repr(loss_document(around(PureLoss(epsilon=number)))) for number in order]
        again = [repr(loss_document(around(PureLoss(epsilon=number)))) for number in numbers]
        assert sorted(texts) == sorted(again)
        assert len(set(texts)) == 3


def test_numbers_too_long_to_write_are_refused():
    long = GaussianLoss(noise_multiplier=Fraction(10**5000 + 1, 10**5000))
    with pytest.raises(ParameterError, match="too long"):
        loss_document(long)
