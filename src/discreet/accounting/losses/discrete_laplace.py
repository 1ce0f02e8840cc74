"""The discrete Laplace (two-sided geometric) mechanism, exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet._exact import Number, plain, positive, whole
from discreet._rounding import above, nearest, one_minus_exp
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.pairs.pairs import AtomsPair, Pair

__all__ = ["DiscreteLaplaceLoss"]

_MOST_ATOMS = 10_000  # a wider shift is composed through its profile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceLoss(Loss):
    """Describe integer noise Pr[k] ~ exp(-|k| / s), s = ``noise_multiplier`` * ``sensitivity``.

    Claim: for integer vectors whose L1 distance is at most ``sensitivity`` (a whole number),
    the operation is 1/noise_multiplier-DP, and (e, delta(e))-DP with delta(e) exact for a scalar
    shift of ``sensitivity``. It holds for the neighbouring relation for which the sensitivity was
    computed. At sensitivity 1 this is exactly binary randomized response; only for large
    sensitivities does it come down to the continuous Laplace profile, so the sensitivity is part
    of the loss.

    Why: with D the shift and q = exp(-1/s), the likelihood ratio falls with k, so the best event is
    {noise <= K} with K the last integer below (D - e s) / 2, and
    delta = [1 - exp(e) q^(D-K) + q (1 - q^K)] / (1 + q). A vector shift is dominated by the scalar
    shift of the same L1 norm: see docs/proofs/laplace_vectors.md.

    >>> from discreet.accounting import delta, epsilon
    >>> epsilon(DiscreteLaplaceLoss(noise_multiplier=2), delta=0)
    0.5
    >>> [round(delta(DiscreteLaplaceLoss(noise_multiplier=2, sensitivity=d), epsilon=0.25), 4)
    ...  for d in (1, 2, 100)]
    [0.1377, 0.1244, 0.1175]
    """

    noise_multiplier: Number
    sensitivity: int = 1
    kind: ClassVar[str] = "discrete_laplace"

    def __post_init__(self) -> None:
        positive(self.noise_multiplier, name="noise_multiplier")
        object.__setattr__(
            self, "noise_multiplier", plain(self.noise_multiplier, name="noise_multiplier")
        )
        object.__setattr__(self, "sensitivity", whole(self.sensitivity, name="sensitivity"))

    @property
    def epsilon_pure(self) -> Fraction:
        """One over the noise multiplier."""
        return 1 / Fraction(self.noise_multiplier)

    def group(self, k: int) -> "DiscreteLaplaceLoss":
        """Return the loss for k units: the distance is k times as large.

        >>> DiscreteLaplaceLoss(noise_multiplier=0.5, sensitivity=2).group(2)
        DiscreteLaplaceLoss(noise_multiplier=Fraction(1, 4), sensitivity=4)
        """
        return DiscreteLaplaceLoss(
            noise_multiplier=Fraction(self.noise_multiplier) / whole(k, name="k"),
            sensitivity=self.sensitivity * whole(k, name="k"),
        )

    @property
    def is_tight(self) -> bool:
        """Yes: a shift of one coordinate has this profile."""
        return True

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> loss = DiscreteLaplaceLoss(noise_multiplier=0.5, sensitivity=2)
        >>> round(loss.delta_upper(epsilon=1), 4)
        0.4621
        """
        shift, target = self.sensitivity, Fraction(epsilon)
        if target >= self.epsilon_pure:
            return 0.0
        scale = Fraction(self.noise_multiplier) * shift
        last = math.ceil((shift - target * scale) / 2) - 1
        # Both brackets are sums of positive terms, so nothing cancels.
        q = math.exp(-nearest(1 / scale))
        outer = one_minus_exp(target - (shift - last) / scale)
        inner = one_minus_exp(-last / scale)
        return above((outer + q * inner) / (1 + q), relative=1e-14)

    def renyi_curve(self) -> Curve:
        """Return the divergences of a shift by ``sensitivity``.

        >>> round(DiscreteLaplaceLoss(noise_multiplier=1, sensitivity=9).renyi_curve()(2.0), 4)
        0.621
        """
        m, shift = self.noise_multiplier, self.sensitivity
        return lambda order: renyi.discrete_laplace(
            noise_multiplier=m, sensitivity=shift, order=order
        )

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the pair of one law and its shift by ``sensitivity``, which is symmetric.

        >>> removing, adding = DiscreteLaplaceLoss(noise_multiplier=0.5, sensitivity=2).pairs()
        >>> removing is adding
        True
        """
        shift = self.sensitivity
        if shift > _MOST_ATOMS:
            return Loss.pairs(self)
        step = nearest(1 / (Fraction(self.noise_multiplier) * shift))
        q = math.exp(-step)
        # The loss is (D - 2k) / s at noise k in between, D / s below and -D / s above.
        k = np.arange(shift + 1)
        mass = np.exp(-step * k) * -math.expm1(-step) / (1 + q)
        mass[0], mass[-1] = 1 / (1 + q), math.exp(-step * shift) / (1 + q)
        losses = (shift - 2.0 * k) * step * (1 + 1e-15)
        pair = AtomsPair(losses, mass, lattice=(float(losses[-1]), float(losses[0] - losses[1])))
        return pair, pair

    def attained_pairs(self) -> tuple[Pair, Pair] | None:
        """Return the pair, unless its points are too many to list.

        >>> DiscreteLaplaceLoss(noise_multiplier=1, sensitivity=10**6).attained_pairs() is None
        True
        """
        return self.pairs() if self.sensitivity <= _MOST_ATOMS else None
