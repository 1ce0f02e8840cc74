"""Joint tables: how often two attributes' values come together."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.laws.numbers import as_domain, as_values
from discreet.local.numbers.oracles import Oracle, best_oracle, coins_of_sets
from discreet.noise import SYSTEM, Source

__all__ = ["JointEstimate", "JointTable"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointTable:
    """Report a pair of values of two attributes together, to estimate their joint table.

    The first attribute has ``rows`` values and the second ``columns``. All of epsilon goes to the
    pair, so that what the attributes have to do with each other is seen; two reports of epsilon / 2
    about one each would only show the attributes by themselves.

    Claim: a report is epsilon-DP when the device's pair is replaced by any other.

    Why: the pair is one value of rows * columns, told by direct or Hadamard response, whichever
    errs less for rare pairs.

    >>> randomiser = JointTable(rows=2, columns=3, epsilon=3)
    >>> first, second = np.repeat([0, 1], 50_000), np.repeat([2, 0], 50_000)
    >>> estimate = randomiser.estimate(randomiser.release(first, second))
    >>> bool(abs(estimate.counts[0, 2] - 50_000) < 8 * estimate.standard_error[0, 2])
    True
    >>> np.round(estimate.by_row()[0], 1) + 0.0
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """

    rows: int
    columns: int
    epsilon: Number

    def __post_init__(self) -> None:
        as_domain(self.rows)
        as_domain(self.columns)
        self.oracle  # noqa: B018 - refuses what cannot be

    @property
    def oracle(self) -> Oracle:
        """How a pair is told."""
        return best_oracle(domain=self.rows * self.columns, epsilon=self.epsilon)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=self.oracle.loss.epsilon)

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return self.oracle.outputs

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    def release(
        self, rows: npt.ArrayLike, columns: npt.ArrayLike, *, source: Source = SYSTEM
    ) -> npt.NDArray[Any]:
        """Return one report for each device's pair.

        >>> randomiser = JointTable(rows=2, columns=3, epsilon=3)
        >>> reports = randomiser.release([0, 1, 1], [2, 0, 1])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((3,), True)
        """
        first = as_values(rows, domain=self.rows)
        second = as_values(columns, domain=self.columns)
        if first.size != second.size:
            raise DataError("rows and columns must have one value each for every device.")
        return self.oracle.release(first * self.columns + second, source=source)

    def estimate(self, reports: npt.ArrayLike) -> "JointEstimate":
        """Estimate how many devices have each pair, without bias.

        >>> estimate = JointTable(rows=2, columns=3, epsilon=3).estimate([0, 0, 4, 5])
        >>> estimate.counts.shape, round(float(estimate.counts.sum()), 6)
        ((2, 3), 4.0)
        """
        return JointEstimate(randomiser=self, cells=self.oracle.estimate(reports))

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Return a t such that a pair's count is off by at most t with this confidence.

        It holds for each pair that at most a ``share`` of the devices have, by itself.

        >>> randomiser = JointTable(rows=2, columns=3, epsilon=3)
        >>> [round(randomiser.error(n=10_000, confidence=0.95, share=share)) for share in (0.1, 1)]
        [82, 144]
        """
        return self.oracle.support.error(n=n, confidence=confidence, share=share)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JointEstimate:
    """Hold how many devices have each pair of values, as far as reports tell.

    Claim: counts and their sums are unbiased. Standard errors are the effect of the devices' coins
    alone, and take estimated counts for true ones.

    >>> randomiser = JointTable(rows=2, columns=2, epsilon=8)
    >>> estimate = randomiser.estimate([0] * 60 + [2] * 20 + [3] * 20)
    >>> estimate
    JointEstimate(n=100, rows=2, columns=2)
    >>> np.round(estimate.counts) + 0.0
    array([[60.,  0.],
           [20., 20.]])
    """

    randomiser: JointTable
    cells: CountEstimate

    @property
    def n(self) -> int:
        """How many reports there were."""
        return self.cells.n

    @property
    def counts(self) -> Floats:
        """The estimated number of devices that have each pair."""
        return self.cells.counts.reshape(self._shape)

    @property
    def standard_error(self) -> Floats:
        """The standard error of each count."""
        return self.cells.standard_error.reshape(self._shape)

    def rows(self) -> tuple[Floats, Floats]:
        """Return the number of devices that have each value of the first attribute, with errors.

        A sum has the errors of all its cells: ask for an attribute by itself where it is what
        matters.

        >>> randomiser = JointTable(rows=2, columns=2, epsilon=8)
        >>> estimate = randomiser.estimate([0] * 60 + [2] * 20 + [3] * 20)
        >>> counts, errors = estimate.rows()
        >>> np.round(counts)
        array([60., 40.])
        """
        return self._sums(1)

    def columns(self) -> tuple[Floats, Floats]:
        """Return the number of devices that have each value of the second, with errors.

        >>> randomiser = JointTable(rows=2, columns=2, epsilon=8)
        >>> estimate = randomiser.estimate([0] * 60 + [2] * 20 + [3] * 20)
        >>> counts, errors = estimate.columns()
        >>> np.round(counts)
        array([80., 20.])
        """
        return self._sums(0)

    def by_row(self) -> tuple[Floats, Floats]:
        """Return which share of a row's devices has each value of the second, with errors.

        A row of nobody, as far as the estimate tells, has no shares: they are NaN. Errors are the
        first order of the delta method, good where the row's count is many times its error.

        >>> randomiser = JointTable(rows=2, columns=2, epsilon=8)
        >>> estimate = randomiser.estimate([0] * 60 + [2] * 20 + [3] * 20)
        >>> shares, errors = estimate.by_row()
        >>> np.round(shares, 1) + 0.0
        array([[1. , 0. ],
               [0.5, 0.5]])
        """
        return self._shares(1)

    def by_column(self) -> tuple[Floats, Floats]:
        """Return which share of a column's devices has each value of the first, with errors.

        >>> randomiser = JointTable(rows=2, columns=2, epsilon=8)
        >>> estimate = randomiser.estimate([0] * 60 + [2] * 20 + [3] * 20)
        >>> shares, errors = estimate.by_column()
        >>> np.round(shares, 2) + 0.0
        array([[0.75, 0.  ],
               [0.25, 1.  ]])
        """
        return self._shares(0)

    def interval(self, *, confidence: Number, simultaneous: bool = True) -> tuple[Floats, Floats]:
        """Return ends of the pairs' true counts, as ``CountEstimate.interval`` does.

        >>> randomiser = JointTable(rows=2, columns=2, epsilon=8)
        >>> estimate = randomiser.estimate([0] * 60 + [2] * 20 + [3] * 20)
        >>> low, high = estimate.interval(confidence=0.95)
        >>> bool(low[0, 0] < 60 < high[0, 0])
        True
        """
        low, high = self.cells.interval(confidence=confidence, simultaneous=simultaneous)
        return low.reshape(self._shape), high.reshape(self._shape)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.randomiser.rows, self.randomiser.columns

    def _sums(self, axis: int) -> tuple[Floats, Floats]:
        sums = self.counts.sum(axis=axis)
        of_set, _ = self._coins(axis)
        return sums, np.sqrt(np.asarray(of_set).max(axis=axis))

    def _shares(self, axis: int) -> tuple[Floats, Floats]:
        sums = self.counts.sum(axis=axis, keepdims=True)
        of_set, both = self._coins(axis)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(sums > 0, self.counts / sums, np.nan)
            variance = self.standard_error**2 - 2 * shares * both + shares**2 * of_set
            return shares, np.sqrt(np.maximum(variance, 0)) / sums

    def _coins(self, axis: int) -> tuple[Floats, Floats]:
        held = np.clip(self.counts, 0, self.n)
        of_set = np.clip(self.counts.sum(axis=axis, keepdims=True), 0, self.n)
        of_set = np.maximum(of_set, held)
        size = self._shape[axis]
        return coins_of_sets(self.randomiser.oracle, n=self.n, held=held, of_set=of_set, size=size)

    def __repr__(self) -> str:
        rows, columns = self._shape
        return f"JointEstimate(n={self.n}, rows={rows}, columns={columns})"
