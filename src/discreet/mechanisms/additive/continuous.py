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
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.values.arrays import as_real, as_reals
from discreet.mechanisms.values.grid import Grid
from discreet.noise import Source
from discreet.noise.source import in_parts

__all__ = ["check_grid", "release_rounded", "widened"]

FINENESS: Final = 34  # bits between the default grid and the noise or the sensitivity
_FINEST: Final = 50  # bits between any grid and the noise; more would not fit 64-bit words
_COARSEST: Final = 8  # noise may be this many times finer than a declared grid


def check_grid(scale: Number, sensitivity: Number, grid: Number | None) -> None:
    """Refuse a grid that is not a power of two, or too fine or coarse for the noise."""
    noise, chosen = Fraction(scale), grid_for(scale, sensitivity, grid)
    if not chosen.spacing / _COARSEST <= noise <= chosen.spacing * (1 << _FINEST):
        raise ParameterError(
            f"grid must be between 2**-{_FINEST} and {_COARSEST} times the noise, "
            f"got {show(grid)}. Leave it out for a good one.",
            parameter="grid",
        )
    if chosen.spacing > Fraction(sensitivity) and grid is None:
        raise ParameterError(
            f"sensitivity must be at least 2**-{_FINEST} times the noise, got "
            f"{show(sensitivity)}: an epsilon that small cannot be told from 0. Use less noise.",
            parameter="sensitivity",
        )


def grid_for(scale: Number, sensitivity: Number, grid: Number | None) -> Grid:
    """Return the declared grid, or one so fine that its rounding drowns in noise and sensitivity.

    >>> grid_for(2, 1, None), grid_for(2, 1, 0.5)
    (Grid(exponent=-34), Grid(exponent=-1))
    """
    if grid is not None:
        return Grid.of(grid)
    noise = Fraction(scale)
    by_sensitivity = Grid.below(min(noise, Fraction(sensitivity)), bits=FINENESS)
    return max(by_sensitivity, Grid.below(noise, bits=_FINEST - 1), key=lambda one: one.exponent)


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
    lattice = grid_for(scale, sensitivity, grid)
    reach = Fraction(sensitivity) / lattice.spacing + rounding
    steps = float_up(Fraction(scale) / Fraction(sensitivity) * reach)
    if steps >= 2.0**51:
        raise DataError(
            "so many values cannot be released together at so small an epsilon: rounding them to "
            "the grid would drown the sensitivity. Release fewer at a time, or use integers with "
            "DiscreteLaplace or DiscreteGaussian."
        )
    return lattice, steps


def release_rounded(
    value: Any,
    *,
    noise_for: Callable[[int], tuple[Grid, float]],
    draw: Callable[..., Any],
    source: Source,
) -> float | npt.NDArray[np.float64]:
    """Add grid noise to a number or an array; ``noise_for`` plans it for so many coordinates."""
    one = as_real(value)
    if one is not None:
        return _release_one(one, noise_for(1), draw, source)
    values = as_reals(value)
    grid, steps = noise_for(max(1, values.size))
    flat = np.ascontiguousarray(values).reshape(-1)
    out = np.empty(flat.size)

    def fill(part: slice) -> None:
        places = flat[part]
        out[part] = grid.add(places, draw(steps, places.size, source=source))

    in_parts(fill, flat.size, source=source)
    return out.reshape(values.shape)


def _release_one(
    value: float, plan: tuple[Grid, float], draw: Callable[..., Any], source: Source
) -> float:
    """Do the same for one number, with the same work for every one."""
    grid, steps = plan
    raised, base = grid.raised(value)
    return grid.lowered(draw(steps, centre=raised, source=source), base)
