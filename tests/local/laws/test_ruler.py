"""Numbers on a ruler: exact coins for every double, and nothing raised by one device's value."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import DataError, ParameterError
from discreet.local.laws.ruler import Ruler, as_numbers
from discreet.noise import SYSTEM


class Recorded:
    """The system's randomness, with what was read."""

    is_secure = True

    def __init__(self):
        self.read_bytes = b""

    def read(self, n, /):
        drawn = SYSTEM.read(n)
        self.read_bytes += drawn
        return drawn


class Constant:
    """A source whose words all are the same: the worst cases of rounding."""

    is_secure = False

    def __init__(self, byte):
        self.byte = byte

    def read(self, n, /):
        return bytes([self.byte]) * n


RULERS = [
    Ruler(low=-1, high=1, steps=1),
    Ruler(low=-1, high=1, steps=40_000),
    Ruler(low=0.1, high=0.7, steps=3),
    Ruler(low=Fraction(1, 3), high=Fraction(2, 3), steps=7),
    Ruler(low=10**15, high=10**15 + 1, steps=8),  # doubles cannot place these: fractions do
    Ruler(low=-(2.0**900), high=1e-300, steps=5),
]


def hard_numbers(ruler):
    rng = np.random.default_rng(3)
    low, high = float(ruler.low), float(ruler.high)
    points = [float(ruler.low + ruler.step * k) for k in range(min(ruler.steps, 50) + 1)]
    near = [np.nextafter(p, s * np.inf) for p in points for s in (-1, 1)]
    return np.array([*points, *near, *(low + (high - low) * rng.random(300)), low, high])


@pytest.mark.parametrize("ruler", RULERS)
def test_points_are_the_ceiling_of_position_minus_the_uniform_number_that_was_read(ruler):
    numbers = hard_numbers(ruler)
    source = Recorded()
    points = ruler.place(numbers, source=source)
    words = np.frombuffer(source.read_bytes[: 8 * numbers.size], dtype="<u8")
    for number, word, point in zip(numbers, words, points, strict=True):
        position = ruler.position(float(number))
        # With 64 bits known, the uniform number lies in this interval; ties have chance 2**-64.
        ends = position - Fraction(int(word) + 1, 1 << 64), position - Fraction(int(word), 1 << 64)
        assert math.ceil(ends[0]) <= point <= math.ceil(ends[1])
        assert 0 <= point <= ruler.steps


@pytest.mark.parametrize("ruler", RULERS)
@pytest.mark.parametrize("byte", [0, 255])
def test_the_extreme_uniform_numbers_stay_on_the_ruler(ruler, byte):
    numbers = np.array([float(ruler.low), float(ruler.high), -math.inf, math.inf, math.nan])
    if byte == 0:  # uniform number 0: any fraction rounds up
        expected = [math.ceil(ruler.position(float(number))) for number in numbers]
    else:  # close to 1: only whole positions stay
        expected = [math.floor(ruler.position(float(number))) for number in numbers]
    # A position whose fraction is exactly what was read so far is decided by further bits.
    points = ruler.place(numbers, source=Constant(byte))
    assert points.tolist() == expected


def test_the_mean_of_points_is_the_number():
    ruler, n = Ruler(low=0, high=1, steps=3), 400_000
    points = ruler.place(np.full(n, 0.4), source=SYSTEM)  # position 1.2
    assert set(points) == {1, 2}
    band = math.sqrt(math.log(2 / 1e-9) / (2 * n))  # Hoeffding
    assert abs((points == 2).mean() - 0.2) < band
    assert abs((points == 2).mean() - 0.21) > band / 2


def test_no_value_stops_a_release():
    ruler = Ruler(low=0, high=10, steps=2)
    numbers = as_numbers([None, "x", 10**400, -(10**400), 4, np.float32(2), math.nan, object()])
    assert numbers[2:5].tolist() == [math.inf, -math.inf, 4]
    points = ruler.place(numbers, source=SYSTEM)
    assert points[[0, 1, 2, 3, 6, 7]].tolist() == [1, 1, 2, 0, 1, 1]
    assert ruler.place([], source=SYSTEM).size == 0
    assert ruler.place(np.array([True, False]), source=SYSTEM).size == 2


@pytest.mark.parametrize("values", ["text", ["a"], [[1.0]], 1.0, np.array(["2020-01-01"], "M8[D]")])
def test_what_is_no_array_of_numbers_is_refused_before_noise(values, no_randomness):
    with pytest.raises(DataError, match="array of numbers"):
        Ruler(low=0, high=1, steps=1).place(values, source=no_randomness)


@pytest.mark.parametrize(
    ("low", "high"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (0, 10**400), (0, 5e-324)]
)
def test_bad_bounds_are_refused(low, high):
    with pytest.raises(ParameterError, match=r"low|high"):
        Ruler(low=low, high=high, steps=1)
