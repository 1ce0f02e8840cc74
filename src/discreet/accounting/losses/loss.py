"""What every loss can say about itself, and how losses compose."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from discreet._exact import Number, float_up, whole
from discreet.accounting import renyi
from discreet.accounting.pairs.from_profile import profile_pair
from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.renyi.quick import pure_upper
from discreet.errors import ParameterError
from discreet.privacy import Neighbours

if TYPE_CHECKING:
    from discreet.accounting.losses.composition import ComposedLoss
    from discreet.accounting.losses.sampled import SampledLoss

__all__ = ["Curve", "Loss", "require_loss"]

Curve = Callable[[float], float]
"""A Renyi divergence as a function of its order."""

_NEVER = Fraction(0)

# How a field of a loss answers to a factor on the noise; other fields do not change.
_NOISE: dict[str, Callable[[float, float], float]] = {
    "noise_multiplier": lambda value, factor: value * factor,
    "sigma": lambda value, factor: value * factor,
    "epsilon": lambda value, factor: value / factor,
    "rho": lambda value, factor: value / factor**2,
}


class Loss(ABC):
    """The privacy cost of an operation, as plain immutable data.

    A loss stands for every pair of output distributions that neighbouring inputs can give. Unless
    a class says otherwise it holds for whichever neighbouring relation its parameters (the
    sensitivity behind a noise multiplier) were computed for, and in both directions.

    Losses compose: ``a + b`` is the loss of doing both, ``a * 1000`` of doing one a thousand times,
    each chosen without looking at the other's output. Only a filter licenses adaptive choices of
    parameters.

    A new loss is a frozen dataclass that states ``kind``, ``epsilon_pure`` and ``delta_upper``.
    All else has a default that is safe, and is stated where more is known:

    - what filters add up: ``approximate_dp``, ``zcdp``, ``renyi_upper``, and ``failure``;
    - what numerical composition reads: ``pairs``, ``in_bulk``, ``join``;
    - what bounds from below read, which are 0 otherwise: ``is_tight``, ``attained_pairs``;
    - what other accountants read: ``renyi_curve``, ``least_delta``, ``gaussian_multiplier``,
      ``mu_squared``;
    - what becomes of it: ``group``, ``noisier``, ``sampled``.

    >>> from discreet.accounting import GaussianLoss, PureLoss
    >>> GaussianLoss(noise_multiplier=4) * 10 + PureLoss(epsilon=1)
    ComposedLoss(10 x GaussianLoss(noise_multiplier=4), PureLoss(epsilon=1))
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Its name in JSON, beside its fields; once released, its meaning never changes."""
    neighbours: ClassVar[Neighbours | None] = None
    """The one relation it can hold for; None where the parameters decide."""
    is_composed: ClassVar[bool] = False
    is_slow: ClassVar[bool] = False
    """Whether pricing it may take milliseconds, during which nobody else should wait."""

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
    def parts(self) -> "tuple[tuple[Loss, int], ...]":
        """The single operations it is made of, each with how often: itself, once."""
        return ((self, 1),)

    @property
    def relation(self) -> Neighbours | None:
        """The neighbouring relation its parts agree on, None where parameters decide."""
        return self.neighbours

    @property
    def failure(self) -> Fraction:
        """The chance of an event outside which its divergences hold: 0 for most."""
        return _NEVER

    @property
    def approximate_dp(self) -> tuple[Fraction | float, Fraction]:
        """(epsilon, delta): what it costs where these are added up; epsilon may be ``math.inf``."""
        return self.epsilon_pure, _NEVER

    @property
    def zcdp(self) -> tuple[Fraction | float, Fraction]:
        """(rho, delta): what it costs as approximate zCDP; rho is ``math.inf`` if it is not.

        An epsilon-DP operation is epsilon^2 / 2-zCDP [BS16, Proposition 1.4].
        """
        pure = self.epsilon_pure
        return (pure * pure / 2 if isinstance(pure, Fraction) else math.inf), _NEVER

    def renyi_upper(self, *, order: Fraction) -> Fraction | float:
        """Return a bound on its Renyi divergence, ``math.inf`` if none is known.

        It holds in both directions, but for ``failure``. Filters ask for it before every answer, so
        it is quick, and they use ``zcdp`` where it is infinite.

        >>> from discreet.accounting import PureLoss
        >>> round(float(PureLoss(epsilon=1).renyi_upper(order=Fraction(2))), 4)
        0.7353
        """
        pure = self.epsilon_pure
        return pure_upper(epsilon=pure, order=order) if isinstance(pure, Fraction) else math.inf

    def renyi_curve(self) -> Curve | None:
        """Return its Renyi divergence at any order, as tight as is known, but for ``failure``.

        None where no bound is known.

        >>> from discreet.accounting import ZCDPLoss
        >>> round(ZCDPLoss(rho=0.5).renyi_curve()(8.0), 4)
        4.0
        """
        pure, (rho, delta) = self.epsilon_pure, self.zcdp
        if isinstance(pure, Fraction):  # then zCDP is a weaker statement
            return lambda order: renyi.pure(epsilon=pure, order=order)
        if isinstance(rho, Fraction) and delta == self.failure:
            slope = float_up(rho)
            return lambda order: slope * order * (1 + 4e-16)
        if self.renyi_upper(order=Fraction(2)) < math.inf:
            return lambda order: float_up(Fraction(self.renyi_upper(order=Fraction(order))))
        return None

    @property
    def least_delta(self) -> Fraction:
        """A delta below which it surely has no epsilon at all."""
        return self.failure

    @property
    def gaussian_multiplier(self) -> Number | None:
        """Its noise multiplier if it is Gaussian noise and nothing else."""
        return None

    @property
    def mu_squared(self) -> float | None:
        """The square of its mu in the central limit theorem [BDLS20]; None if there is no such."""
        return None

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

    def mixed_pairs(self) -> tuple[Pair, ...]:
        """Return those for several units of which some are added and others removed, one by one.

        None by default: the loss of a group mostly depends on how many units change, not on how.

        >>> from discreet.accounting import GaussianLoss
        >>> GaussianLoss(noise_multiplier=2).group(3).mixed_pairs()
        ()
        """
        return ()

    @property
    def is_tight(self) -> bool:
        """Whether some operation it describes has this delta at each epsilon, but for rounding.

        Rounding is a billionth of delta and of epsilon at most.
        """
        return False

    def attained_pairs(self) -> tuple[Pair, Pair] | None:
        """Return the pairs of one operation that it describes, None where none is known.

        By default the dominating pairs, if it is tight and has pairs of its own.

        >>> from discreet.accounting import ShuffledLoss
        >>> ShuffledLoss(epsilon0=1, n=100).attained_pairs() is None
        True
        """
        is_own = type(self).pairs is not Loss.pairs
        return self.pairs() if self.is_tight and is_own else None

    @property
    def in_bulk(self) -> "Loss":
        """A statement about the same operation that may be better where many are composed."""
        return self

    @classmethod
    def join(cls, parts: Sequence[tuple[Self, int]]) -> "Loss | None":
        """Return one loss that says of them together what they say of each, None if there is none.

        >>> from discreet.accounting import ZCDPLoss
        >>> ZCDPLoss.join([(ZCDPLoss(rho=1), 2), (ZCDPLoss(rho=3), 1)])
        ZCDPLoss(rho=Fraction(5, 1), delta=Fraction(0, 1))
        """
        return None

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

    def noisier(self, factor: float) -> "Loss | None":
        """Return the loss of the same operation with ``factor`` times the noise, where known.

        By default the names of its fields tell which of them change.

        >>> from discreet.accounting import GaussianLoss, PureLoss
        >>> GaussianLoss(noise_multiplier=2).noisier(1.5)
        GaussianLoss(noise_multiplier=3.0)
        >>> (PureLoss(epsilon=1) * 3).noisier(2.0)
        ComposedLoss(3 x PureLoss(epsilon=0.5))
        """
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Loss):
                changed[field.name] = value.noisier(factor)
            elif field.name in _NOISE:
                changed[field.name] = _NOISE[field.name](float(value), factor)
        if not changed or None in changed.values():
            return None
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]

    def __add__(self, other: object) -> "ComposedLoss":
        from discreet.accounting.losses.composition import compose

        if not isinstance(other, Loss):
            return NotImplemented
        return compose([(self, 1), (other, 1)])

    def __radd__(self, other: object) -> "ComposedLoss":
        from discreet.accounting.losses.composition import compose

        if type(other) is not int or other != 0:  # which sum() begins with
            return NotImplemented
        return compose([(self, 1)])

    def __mul__(self, times: object) -> "ComposedLoss":
        from discreet.accounting.losses.composition import compose

        if not isinstance(times, int):
            return NotImplemented
        return compose([(self, times)])

    __rmul__ = __mul__


def require_loss(loss: object) -> None:
    """Refuse whatever is not a loss."""
    if not isinstance(loss, Loss):
        raise ParameterError(
            f"loss must be a loss such as GaussianLoss(noise_multiplier=...), got an object of "
            f"type {type(loss).__name__}. A mechanism has one as its .loss.",
            parameter="loss",
        )
