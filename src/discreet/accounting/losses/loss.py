"""What every loss can say about itself, and how losses compose."""

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from discreet._exact import Number, whole
from discreet.accounting.pairs.from_profile import profile_pair
from discreet.accounting.pairs.pairs import Pair
from discreet.errors import ParameterError
from discreet.privacy import Neighbours

if TYPE_CHECKING:
    from discreet.accounting.losses.composition import ComposedLoss
    from discreet.accounting.losses.sampled import SampledLoss

__all__ = ["Loss"]


class Loss(ABC):
    """The privacy cost of an operation, as plain immutable data.

    A loss stands for every pair of output distributions that neighbouring inputs can give. Unless
    a class says otherwise it holds for whichever neighbouring relation its parameters (the
    sensitivity behind a noise multiplier) were computed for, and in both directions.

    Losses compose: ``a + b`` is the loss of doing both, ``a * 1000`` of doing one a thousand times,
    each chosen without looking at the other's output. Only a filter licenses adaptive choices of
    parameters.

    >>> from discreet.accounting import GaussianLoss, PureLoss
    >>> GaussianLoss(noise_multiplier=4) * 10 + PureLoss(epsilon=1)
    ComposedLoss(10 x GaussianLoss(noise_multiplier=4), PureLoss(epsilon=1))
    """

    __slots__ = ()

    kind: ClassVar[str]
    neighbours: ClassVar[Neighbours | None] = None
    """The one relation it can hold for; None where the parameters decide."""

    @property
    @abstractmethod
    def epsilon_pure(self) -> Fraction | float:
        """The smallest epsilon proved at delta = 0, exactly; ``math.inf`` if there is none."""

    @abstractmethod
    def delta_upper(self, *, epsilon: Number) -> float:
        """Return a certified upper bound on delta at an ``epsilon`` of at least 0.

        >>> from discreet.accounting import PureLoss
        >>> PureLoss(epsilon=1).delta_upper(epsilon=1)
        0.0
        """

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """(rho, delta): what it costs as approximate zCDP; rho is ``math.inf`` if it is not.

        An epsilon-DP operation is epsilon^2 / 2-zCDP [BS16, Proposition 1.4].
        """
        pure = self.epsilon_pure
        return (pure * pure / 2 if isinstance(pure, Fraction) else math.inf), Fraction(0)

    def pairs(self) -> tuple[Pair, Pair]:
        """Return dominating pairs for removing and for adding a unit, for numerical composition.

        By default the pair whose profile is the chord of this loss's profile between many points.

        >>> from discreet.accounting import ZCDPLoss
        >>> removing, adding = ZCDPLoss(rho=0.1).pairs()
        >>> removing is adding
        True
        """
        pair = profile_pair(self)
        return pair, pair

    def sampled(self, *, rate: Number) -> "SampledLoss":
        """Return the loss when each unit takes part with probability ``rate``, independently.

        >>> from discreet.accounting import GaussianLoss
        >>> GaussianLoss(noise_multiplier=4).sampled(rate=0.01)
        SampledLoss(inner=GaussianLoss(noise_multiplier=4), rate=0.01)
        """
        from discreet.accounting.losses.sampled import SampledLoss

        return SampledLoss(inner=self, rate=rate)

    def group(self, k: int) -> "Loss":
        """Return the loss of k units that change together: not that of k operations.

        >>> from discreet.accounting import GaussianLoss, PureLoss
        >>> PureLoss(epsilon=1).group(3), GaussianLoss(noise_multiplier=6).group(3)
        (PureLoss(epsilon=3), GaussianLoss(noise_multiplier=Fraction(2, 1)))
        """
        pure = self.epsilon_pure
        if not isinstance(pure, Fraction):
            raise ParameterError(
                f"no group bound is known for {type(self).__name__}. Convert it first: "
                "Guarantee(epsilon=..., delta=...).group(k).",
                parameter="loss",
            )
        from discreet.accounting.losses.pure import PureLoss

        total = pure * whole(k, name="k")
        return PureLoss(epsilon=int(total) if total.denominator == 1 else total)

    def __add__(self, other: object) -> "ComposedLoss":
        from discreet.accounting.losses.composition import compose

        if not isinstance(other, Loss):
            return NotImplemented
        return compose([(self, 1), (other, 1)])

    def __mul__(self, times: object) -> "ComposedLoss":
        from discreet.accounting.losses.composition import compose

        if not isinstance(times, int):
            return NotImplemented
        return compose([(self, times)])

    __rmul__ = __mul__
