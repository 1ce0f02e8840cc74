"""Two clouds of points in the plane, for examples of a classifier that can be seen."""

from discreet._exact import whole
from discreet.datasets._dice import Dice, Table


def clusters(n: int = 400, *, seed: int = 0) -> Table:
    """Generate n points of two groups that overlap a little; the same ones for the same arguments.

    Columns: ``x`` and ``y`` (most of them from -4 to 4, in thousandths) and ``group`` (0 or 1). The
    best straight line has about 19 of 20 points on the right side.

    >>> points = clusters()
    >>> list(points), len(points["group"])
    (['x', 'y', 'group'], 400)
    """
    n = whole(n, name="n", hint="It is the number of points to generate.")
    dice = Dice(seed=seed)
    group = dice.below(2, size=n)
    along, across = dice.bell(size=n), dice.bell(size=n)
    side = 2 * group - 1
    # Longer one way than the other, and tilted, so that a line between them has to turn.
    return {
        "x": (1300 * side + (8 * across + 4 * along) // 10) / 1000,
        "y": (1000 * side + (10 * along - 4 * across) // 10) / 1000,
        "group": group,
    }
