"""What every loss can say about itself."""

from fractions import Fraction
from typing import Protocol, runtime_checkable

from discreet._exact import Number

__all__ = ["Loss"]


@runtime_checkable
class Loss(Protocol):
    """The privacy cost of one operation, as plain immutable data.

    A loss stands for every pair of output distributions that neighbouring inputs can give. Unless
    a class says otherwise it holds for whichever neighbouring relation its parameters (the
    sensitivity behind a noise multiplier) were computed for, and in both directions.

    >>> from discreet.accounting import PureLoss
    >>> isinstance(PureLoss(epsilon=1), Loss)
    True
    """

    @property
    def epsilon_pure(self) -> Fraction | float:
        """The smallest epsilon proved at delta = 0, exactly; ``math.inf`` if there is none."""
        ...

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return a certified upper bound on delta at an ``epsilon`` of at least 0."""
        ...
