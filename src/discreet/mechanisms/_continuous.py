"""What the Laplace and Gaussian mechanisms share: real noise, rounded, on a grid.

The value is rounded to the grid and continuous noise, rounded to the same grid, is added. Rounding
after adding the noise to a grid point is the same thing, so the release is a post-processing of the
textbook mechanism on rounded values. Rounding the values can move neighbours further apart: by at
most one step in every coordinate. The noise is widened by that proportion, so that the loss is
precisely the one that ``scale`` and ``sensitivity`` state. (docs/proofs/rounding_to_a_grid.md)
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, float_up, show
from discreet.errors import ParameterError
from discreet.mechanisms._grid import Grid
from discreet.mechanisms._values import as_floats, is_scalar
from discreet.noise import Source

__all__ = ["check_grid", "grid_for", "release_rounded", "widened"]

FINENESS: Final = 36  # bits between the noise and the default grid; low bits then fit 32-bit words
_FINEST: Final = 50  # bits; beyond, noise would not fit the words it is held in
_CHUNK: Final = 1 << 15


def grid_for(scale: Number, grid: Number | None) -> Grid:
    """Return the declared grid, or one so fine that its rounding drowns in the noise.

    >>> grid_for(2, None), grid_for(2, 0.5)
    (Grid(exponent=-35), Grid(exponent=-1))
    """
    return Grid.below(Fraction(scale), bits=FINENESS) if grid is None else Grid.of(grid)


def check_grid(scale: Number, grid: Number | None) -> None:
    """Refuse a grid that is not a power of two, or too fine for the noise."""
    if grid_for(scale, grid).spacing * (1 << _FINEST) < Fraction(scale):
        raise ParameterError(
            f"grid must be at least 2**-{_FINEST} times the noise, got {show(grid)}. Leave it out "
            f"for a grid 2**-{FINENESS} times the noise.",
            parameter="grid",
        )


@lru_cache(maxsize=1024, typed=True)
def widened(
    scale: Number, sensitivity: Number, grid: Number | None, rounding: int
) -> tuple[Grid, float]:
    """Return the grid, and the noise in steps after paying for ``rounding`` steps.

    The sensitivity in steps is at most sensitivity / spacing + rounding, and the noise keeps its
    proportion to that.

    >>> widened(2, 1, 0.5, 1)
    (Grid(exponent=-1), 6.0)
    """
    lattice = grid_for(scale, grid)
    reach = Fraction(sensitivity) / lattice.spacing + rounding
    return lattice, float_up(Fraction(scale) / Fraction(sensitivity) * reach)


def release_rounded(
    value: Any,
    *,
    noise_for: Callable[[int], tuple[Grid, float]],
    draw: Callable[..., Any],
    source: Source,
) -> float | npt.NDArray[np.float64]:
    """Add grid noise to a number or an array; ``noise_for`` plans it for so many coordinates."""
    if type(value) is float and -1e308 < value < 1e308:
        grid, steps = noise_for(1)
        return grid.add_one(value, draw(steps, source=source))
    values = as_floats(value)
    if is_scalar(value):
        grid, steps = noise_for(1)
        return grid.add_one(float(values), draw(steps, source=source))
    grid, steps = noise_for(max(1, values.size))
    noise = draw(steps, values.size, source=source)
    flat = np.ascontiguousarray(values).reshape(-1)
    out = np.empty(flat.size)
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = grid.add(flat[part], noise[part])
    return out.reshape(values.shape)
