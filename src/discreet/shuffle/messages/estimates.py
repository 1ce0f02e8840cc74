"""What counted messages say, of which some are dummies of a known law."""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet.errors import DataError

__all__ = ["DummyEstimate", "SumEstimate"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DummyEstimate:
    """Hold how many true messages there are of each kind, as far as the counts of all tell.

    ``seen[v]`` counts the messages of kind v; ``true`` of all messages are no dummies. All else
    follows from it, so it is post-processing and costs nothing.

    Claim: ``counts`` are unbiased and add up to ``true``. Each is off by a number whose law is
    known whatever the data: that of a binomial number of as many trials as there are dummies and
    chance one by the number of kinds, around its mean. ``standard_error`` and :meth:`interval` are
    therefore exact, as long as all devices follow the protocol.

    Why: whoever sees the number of dummies, which is what is left of all messages, sees dummies
    whose kinds are independent and equally likely.

    >>> DummyEstimate(seen=np.array([710, 330]), true=1000)
    DummyEstimate(true=1000, counts=[690 ± 3.2, 310 ± 3.2])
    """

    seen: npt.NDArray[np.int64]
    true: int

    def __post_init__(self) -> None:
        if self.dummies < 0:
            raise DataError(
                "messages must be at least as many as those of n devices without dummies, but are "
                "fewer. Pass as n how many devices' messages are in the batch."
            )

    @property
    def dummies(self) -> int:
        """How many messages are dummies."""
        return int(self.seen.sum()) - self.true

    @property
    def counts(self) -> Floats:
        """The estimated number of true messages of each kind."""
        return np.asarray(self.seen - self.dummies / self.seen.size)

    @property
    def standard_error(self) -> Floats:
        """The standard error of each count; the same for all."""
        share = 1 / self.seen.size
        return np.full(self.seen.size, np.sqrt(self.dummies * share * (1 - share)))

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends between which the true counts lie with at least this confidence.

        All of them at once, unless ``simultaneous`` is false: then each by itself.

        Why: the chances of all misses add up to at most 1 - confidence.

        >>> estimate = DummyEstimate(seen=np.array([710, 330]), true=1000)
        >>> low, high = estimate.interval(confidence=0.95)
        >>> low, high
        (array([683., 303.]), array([697., 317.]))
        """
        failing = (1 - probability(confidence, name="confidence")) / 2
        if simultaneous:
            failing /= self.seen.size
        fewest, most = _ends(self.dummies, Fraction(1, self.seen.size), failing)
        clip = 0.0, float(self.true)
        return np.clip(self.seen - most, *clip), np.clip(self.seen - fewest, *clip)

    def __repr__(self) -> str:
        pairs = zip(self.counts[:_SHOWN], self.standard_error[:_SHOWN], strict=True)
        shown = [f"{count:.0f} ± {error:.2g}" for count, error in pairs]
        if self.seen.size > _SHOWN:
            shown.append(f"... {self.seen.size - _SHOWN} more")
        return f"DummyEstimate(true={self.true}, counts=[{', '.join(shown)}])"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SumEstimate:
    """Hold the sum of the devices' numbers, as far as counted messages tell.

    Each of ``n`` devices sent ``largest`` true messages, a one for every unit of its number and
    zeros otherwise, and dummies that are either with equal chance. It is a :class:`DummyEstimate`
    of two kinds, and exact in the same way.

    >>> estimate = SumEstimate(zeros=330, ones=710, n=100, largest=10)
    >>> estimate
    SumEstimate(n=100, sum=690 ± 3.2)
    >>> estimate.mean
    6.9
    """

    zeros: int
    ones: int
    n: int
    largest: int

    def __post_init__(self) -> None:
        self._kinds  # noqa: B018 - refuses what cannot be

    @property
    def _kinds(self) -> DummyEstimate:
        seen = np.array([self.zeros, self.ones])
        return DummyEstimate(seen=seen, true=self.n * self.largest)

    @property
    def sum(self) -> float:
        """The estimated sum."""
        return float(self._kinds.counts[1])

    @property
    def mean(self) -> float:
        """The estimated mean."""
        return self.sum / self.n

    @property
    def standard_error(self) -> float:
        """The standard error of the sum."""
        return float(self._kinds.standard_error[1])

    def interval(self, *, confidence: Number) -> tuple[float, float]:
        """Return ends between which the true sum lies with at least this confidence.

        >>> SumEstimate(zeros=330, ones=710, n=100, largest=10).interval(confidence=0.95)
        (684.0, 696.0)
        """
        low, high = self._kinds.interval(confidence=confidence, simultaneous=False)
        return float(low[1]), float(high[1])

    def __repr__(self) -> str:
        return f"SumEstimate(n={self.n}, sum={self.sum:.0f} ± {self.standard_error:.2g})"


def _ends(trials: int, chance: Fraction, failing: Fraction) -> tuple[int, int]:
    """Return numbers such that fewer heads, and more heads, have at most this chance each."""
    from scipy.special import bdtr, bdtrc

    p, miss, heads = float(chance), float(failing), range(trials + 1)
    fewest = bisect_left(heads, True, key=lambda k: bdtr(k, trials, p) > miss)
    return fewest, bisect_left(heads, True, key=lambda k: bdtrc(k, trials, p) <= miss)
