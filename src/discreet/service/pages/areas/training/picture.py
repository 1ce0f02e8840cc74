"""The points as a picture, and where a line between them runs."""

from functools import cache
from typing import Any, Final

from discreet.datasets import clusters
from discreet.service.pages.areas.training.plan import POINTS

__all__ = ["REACH", "SEED", "boundary", "clouds"]

SEED: Final = 7
REACH: Final = 5.0  # the picture goes from -5 to 5, both ways


@cache
def clouds() -> list[str]:
    """Return the points of each group as one path, in which each point is a stroke of no length."""
    table = clusters(POINTS, seed=SEED)
    rows = list(zip(table["group"].tolist(), table["x"].tolist(), table["y"].tolist(), strict=True))
    return [
        "".join(f"M{x:.2f} {-y:.2f}h0" for one, x, y in rows if one == group) for group in (0, 1)
    ]


def boundary(across: float, up: float, offset: float) -> list[float] | None:
    """Return the two ends, in the picture, of the line where a classifier changes its mind.

    None where it does so nowhere in the picture. Heights are as pictures have them, downwards.

    >>> boundary(1, 0, 2)
    [-2.0, 5.0, -2.0, -5.0]
    >>> boundary(0, 0, 1) is None
    True
    """
    ends: list[tuple[float, float]] = []
    for side in (-REACH, REACH):
        if up:
            ends.append((side, -(across * side + offset) / up))
        if across:
            ends.append((-(up * side + offset) / across, side))
    inside = sorted({(x, y) for x, y in ends if max(abs(x), abs(y)) <= REACH * (1 + 1e-9)})
    if len(inside) < 2:
        return None
    (x1, y1), (x2, y2) = inside[0], inside[-1]
    found: list[Any] = [round(one, 4) + 0.0 for one in (x1, -y1, x2, -y2)]
    return found
