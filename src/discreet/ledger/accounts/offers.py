"""Where a loss does not fit: the least noise with which the same release would."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from discreet.accounting import Loss

__all__ = ["NoisierOffer", "least_noise"]

_MOST_NOISE: Final = 1e6  # nobody wants an answer with error bars a million times wider
_TOLERANCE: Final = 1e-6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisierOffer:
    """The same release with the least noise that still fits: ``factor`` times as much.

    ``error`` is the new error bar, where the old one was given. Nothing is charged: to accept an
    offer, charge ``loss``, and release with that noise.

    >>> from discreet.accounting import PureLoss
    >>> print(NoisierOffer(loss=PureLoss(epsilon=0.5), factor=2.0, error=24.0))
    2 times the noise would fit: an error bar of 24
    """

    loss: Loss
    factor: float
    error: float | None = None

    def __str__(self) -> str:
        bar = "" if self.error is None else f": an error bar of {self.error:.4g}"
        return f"{self.factor:.4g} times the noise would fit{bar}"


def least_noise(
    loss: Loss, fits: Callable[[Loss], bool], *, error: float | None = None
) -> NoisierOffer | None:
    """Return the least noise with which ``loss`` fits, to a millionth, or None.

    >>> from discreet.accounting import PureLoss
    >>> offer = least_noise(PureLoss(epsilon=1), lambda loss: loss.epsilon <= 0.5, error=10)
    >>> round(offer.factor, 4), round(offer.error, 3)
    (2.0, 20.0)
    """
    low, high = 1.0, 2.0
    while high <= _MOST_NOISE:
        candidate = loss.noisier(high)
        if candidate is None:
            return None
        if fits(candidate):
            break
        low, high = high, 2 * high
    else:
        return None
    while high / low > 1 + _TOLERANCE:
        middle = (low * high) ** 0.5
        trial = loss.noisier(middle)
        if trial is not None and fits(trial):
            high, candidate = middle, trial
        else:
            low = middle
    return NoisierOffer(loss=candidate, factor=high, error=None if error is None else error * high)
