import math

import numpy as np
import pytest

import discreet
from discreet import mechanisms as m
from discreet.accounting import Filter, TwoSidedLoss, bracket, from_json, to_json

FALSE_ALARM = 1e-9


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.25), (0.9, 0.2), (0.25, 0.5)])
@pytest.mark.parametrize("e", [0, 0.1, 0.5, 1.5])
def test_delta_is_that_of_the_best_event(p, q, e):
    pairs = [(p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)]
    best = max(0, *(a - math.exp(e) * b for a, b in pairs))
    found = TwoSidedLoss(yes_if_yes=p, yes_if_no=q).delta_upper(epsilon=e)
    assert best <= found <= best + 1e-9


def test_it_composes_is_filtered_and_written():
    loss = TwoSidedLoss(yes_if_yes=0.5, yes_if_no=0.25)
    assert from_json(to_json(loss)) == loss
    found = bracket(loss * 20, delta=1e-5)
    assert found.lower <= found.upper < 20 * math.log(2)
    budget = Filter(discreet.Guarantee(epsilon=3, delta=1e-6))
    budget.charge(loss)
    assert 0 < budget.used < 1


def test_reports_follow_their_chances():
    n = 200_000
    reports = m.TwoSidedResponse(yes_if_yes=0.5, yes_if_no=0.25).release(np.arange(n) % 2 == 0)
    band = math.sqrt(math.log(4 / FALSE_ALARM) / n)  # Hoeffding, for each half
    assert abs(reports[::2].mean() - 0.5) <= band
    assert abs(reports[1::2].mean() - 0.25) <= band < 0.05
