"""The window's law, enumerated."""

from fractions import Fraction

import numpy as np
import pytest
from report_laws import FALSE_ALARM, is_within, misfit, worst_ratio

from discreet.local.laws.window import Window
from discreet.noise import SYSTEM

CASES = [(0.25, 5, 2), (1, 8, 3), (1, 9, 1), (3.0, 12, 2), (8, 30, 1), (Fraction(1, 3), 4, 3)]


@pytest.mark.parametrize(("epsilon", "outputs", "preferred"), CASES)
def test_every_pair_of_positions_has_the_ratio_of_the_law(epsilon, outputs, preferred):
    window = Window.calibrated(epsilon=epsilon, outputs=outputs, preferred=preferred)
    positions = range(window.positions)
    laws = [[window.chance(o, position=g) for o in range(outputs)] for g in positions]
    assert all(sum(law) == 1 for law in laws)
    assert worst_ratio(laws) == window.law.ratio
    assert is_within(window.law.ratio, epsilon)
    for g, law in enumerate(laws):
        mean = sum(o * chance for o, chance in enumerate(law))
        assert window.mean(g) == mean == window.mean(0) + g * window.slope
        assert window.variance(g) == sum(o * o * c for o, c in enumerate(law)) - mean**2
        assert window.variance(g) <= window.variance(0) == window.variance(window.positions - 1)


@pytest.mark.parametrize(("outputs", "preferred"), [(8, 3), (9, 1), (4, 3)])
def test_draws_follow_the_law_and_a_wrong_one_would_show(outputs, preferred):
    window = Window.calibrated(epsilon=1, outputs=outputs, preferred=preferred)
    wrong = Window.calibrated(epsilon=1.2, outputs=outputs, preferred=preferred)
    for position in (0, window.positions - 1):
        draws = window.draw(np.full(100_000, position), source=SYSTEM)
        chances = [window.chance(o, position=position) for o in range(outputs)]
        assert misfit(draws, chances) > FALSE_ALARM
        chances = [wrong.chance(o, position=position) for o in range(outputs)]
        assert misfit(draws, chances) < FALSE_ALARM
