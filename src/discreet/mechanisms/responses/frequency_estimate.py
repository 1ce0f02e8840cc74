"""What randomized reports say about the true frequencies, and how surely."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet.errors import ParameterError

__all__ = ["FrequencyEstimate"]

Floats = npt.NDArray[np.float64]

_SHOWN: Final = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FrequencyEstimate:
    """Hold estimated frequencies of categories, from reports that went through coins.

    ``observed[j]`` counts the reports of category j; a report says j with probability ``hit[j]`` if
    the truth is j and ``miss[j]`` if it is not. Everything else follows by arithmetic, so it is
    post-processing and costs nothing.

    Claim: ``frequencies`` are unbiased, and may therefore fall below 0 or above 1.
    ``standard_errors`` estimate the effect of the coins and of choosing people from a larger
    population; about the people who answered, the coins alone do a little less. They are estimates
    themselves, good for many reports. For few, use :meth:`interval`, which always holds.

    Why: a report says j with probability miss + f (hit - miss), where f is the frequency of j;
    solve for f. The reports are independent, so the variance of their share is at most
    s (1 - s) / reports, where s is its mean, and estimating f divides that by (hit - miss)**2
    [W65]. The mean is unknown, but lies between miss and hit. The share seen, moved towards 1/2 by
    two reports of each kind [AC98] and then to between those ends, stands for it; the share alone
    would say 0 where all reports agree.

    >>> estimate = FrequencyEstimate(
    ...     observed=np.array([600, 400]), hit=np.array([0.75, 0.75]), miss=np.array([0.25, 0.25]))
    >>> estimate
    FrequencyEstimate(reports=1000, frequencies=[0.700 ± 0.031, 0.300 ± 0.031])
    >>> estimate.counts
    array([700., 300.])
    """

    observed: npt.NDArray[np.int64]
    hit: Floats
    miss: Floats

    def __post_init__(self) -> None:
        if not (self.hit != self.miss).all():
            raise ParameterError(
                "hit must differ from miss, but as doubles they are equal: such reports tell "
                "nothing. Use a larger epsilon.",
                parameter="hit",
            )

    @property
    def reports(self) -> int:
        """How many reports there were."""
        return int(self.observed.sum())

    @property
    def frequencies(self) -> Floats:
        """The estimated share of each category."""
        return self._solve(self.observed / self.reports)

    @property
    def counts(self) -> Floats:
        """The estimated number of people in each category."""
        return self.frequencies * self.reports

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each frequency."""
        centre = (self.observed + 2) / (self.reports + 4)
        ends = np.minimum(self.hit, self.miss), np.maximum(self.hit, self.miss)
        share = np.clip(centre, *ends)
        spread = np.sqrt(share * (1 - share) / self.reports)
        return np.asarray(spread / np.abs(self.hit - self.miss))

    def interval(self, *, confidence: Number) -> tuple[Floats, Floats]:
        """Return ends between which each frequency lies with at least this confidence.

        It holds for each category by itself. For all k at once ask for 1 - (1 - confidence) / k.

        Why: the reports of one category are a binomial number, whose Clopper-Pearson interval
        [CP34] never covers less than it says; the ends are then solved for the frequency.

        >>> estimate = FrequencyEstimate(
        ...     observed=np.array([600, 400]), hit=np.full(2, 0.75), miss=np.full(2, 0.25))
        >>> low, high = estimate.interval(confidence=0.95)
        >>> np.round(low, 3), np.round(high, 3)
        (array([0.638, 0.239]), array([0.761, 0.362]))
        """
        from scipy.special import betaincinv

        side = float(1 - probability(confidence, name="confidence")) / 2
        seen, unseen = self.observed, self.reports - self.observed
        # At the ends one parameter would be 0; the limit there is the end itself.
        low = np.where(seen > 0, betaincinv(np.maximum(seen, 1), unseen + 1, side), 0.0)
        # Through its complement, whose digits are not lost for a tiny side.
        high = np.where(unseen > 0, 1 - betaincinv(np.maximum(unseen, 1), seen + 1, side), 1.0)
        ends = np.sort([self._solve(low), self._solve(high)], axis=0)
        return tuple(np.clip(ends, 0.0, 1.0))

    def _solve(self, share: Floats) -> Floats:
        return np.asarray((share - self.miss) / (self.hit - self.miss))

    def __repr__(self) -> str:
        pairs = zip(self.frequencies[:_SHOWN], self.standard_errors[:_SHOWN], strict=True)
        shown = [f"{frequency:.3f} ± {error:.2g}" for frequency, error in pairs]
        if self.observed.size > _SHOWN:
            shown.append(f"... {self.observed.size - _SHOWN} more")
        return f"FrequencyEstimate(reports={self.reports}, frequencies=[{', '.join(shown)}])"
