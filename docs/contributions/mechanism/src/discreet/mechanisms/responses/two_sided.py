"""A yes or no with different errors on its two sides."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import TwoSidedLoss
from discreet.mechanisms.responses.reports import as_yes_no
from discreet.noise import SYSTEM, Source, bernoulli

__all__ = ["TwoSidedResponse"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedResponse:
    """Report a yes or no: rarely wrong where the truth is rare.

    Claim: each report is epsilon-DP under replace-one, for the largest log-ratio of the chances of
    an answer given yes and given no; the unit is the person who answers.

    Why: see the loss. With 1/2 and 1 / (exp(epsilon) + 1) it is one bit of optimal unary encoding
    (Wang, Blocki, Li and Jha 2017).

    >>> TwoSidedResponse(yes_if_yes=0.5, yes_if_no=0.25).loss
    TwoSidedLoss(yes_if_yes=0.5, yes_if_no=0.25)
    """

    yes_if_yes: Number
    yes_if_no: Number

    @property
    def loss(self) -> TwoSidedLoss:
        """What one report costs. Touches no data."""
        return TwoSidedLoss(yes_if_yes=self.yes_if_yes, yes_if_no=self.yes_if_no)

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[np.bool_]:
        """Return the reports.

        >>> TwoSidedResponse(yes_if_yes=0.5, yes_if_no=0.25).release([True, False]).shape
        (2,)
        """
        truth = as_yes_no(values)
        yes = bernoulli(self.yes_if_yes, truth.shape, source=source)
        return np.where(truth, yes, bernoulli(self.yes_if_no, truth.shape, source=source))
