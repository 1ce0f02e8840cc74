"""Vectors of length at most 1: one of many public directions, near the device's own."""

import math
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, refusal, whole
from discreet._rounding import log_one_over
from discreet.accounting import PureLoss
from discreet.errors import DataError
from discreet.local.laws.directions import best_directions, directions, of_nearest
from discreet.local.laws.drawing import draw
from discreet.local.laws.numbers import as_codes
from discreet.local.laws.preference import Preference
from discreet.noise import SYSTEM, Source, uniform_integers

__all__ = ["UnitVectors", "VectorEstimate"]

Floats = npt.NDArray[np.float64]

_SEEDS: Final = 1 << 32
_AT_ONCE: Final = 1 << 20  # coordinates of directions, to keep memory small


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitVectors:
    """Report a public direction near the device's vector, to estimate the devices' mean vector.

    For vectors of length at most 1, such as scaled gradients; longer ones are shortened to 1, and
    one with NaN or infinity counts as 0. A report is a random seed and one of the ``candidates``
    directions that it stands for: 5 bytes, whatever the dimension.

    Claim: a report is epsilon-DP when the device's vector is replaced by any other. This does not
    lean on how directions come from seeds, nor on floats. Readings have the device's vector for
    their expectation if directions are uniform and independent; those of ``laws.directions``
    cannot be told from it by known tests. What rounding adds is small, and no bound is proved.

    Why: the seed does not depend on the vector. Given the seed, the ``nearest`` candidates with
    the largest projections on the vector are its own: a law of preference, whichever they are. It
    is PrivUnit [BDFKR18; AFT22] with the cap held by rank among candidates, as in the compressed
    forms of [FT21; SCBKT22], which makes its loss exact. For symmetry the expected direction is
    ``gain`` times the vector, which gets a further coordinate to have length 1.

    A report is the number seed * candidates + index.

    >>> randomiser = UnitVectors(dimension=3, epsilon=4)
    >>> vectors = np.tile([0.6, 0.0, -0.8], (2000, 1))
    >>> estimate = randomiser.estimate(randomiser.release(vectors))
    >>> bool((np.abs(estimate.mean - vectors[0]) < 8 * estimate.standard_error).all())
    True
    """

    dimension: int
    epsilon: Number
    candidates: int = 256

    def __post_init__(self) -> None:
        whole(self.dimension, name="dimension")
        positive(self.epsilon, name="epsilon")
        if whole(self.candidates, name="candidates", minimum=2) > 1 << 12:
            raise refusal("candidates", f"at most {1 << 12}", self.candidates)
        self.law  # noqa: B018 - refuses what cannot be

    @property
    def law(self) -> Preference:
        """The law of the index of a report given its seed, in whole numbers."""
        return Preference.calibrated(
            epsilon=self.epsilon, outputs=self.candidates, preferred=self.nearest
        )

    @property
    def nearest(self) -> int:
        """How many candidates are a vector's own: as many as make the error smallest."""
        ratio = math.exp(float(min(self.epsilon, 40)))
        return best_directions(dimension=self.dimension + 1, count=self.candidates, ratio=ratio)

    @property
    def loss(self) -> PureLoss:
        """What one report costs the device that gives it."""
        return PureLoss(epsilon=min(self.epsilon, self.law.epsilon))

    @property
    def outputs(self) -> int:
        """Reports are whole numbers below this."""
        return _SEEDS * self.candidates

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return ((self.outputs - 1).bit_length() + 7) // 8

    @property
    def gain(self) -> float:
        """How long the expected direction is."""
        law = self.law
        total = of_nearest(
            dimension=self.dimension + 1, count=self.candidates, nearest=self.nearest
        )
        keep = float(law.keep_chance)
        # All projections together have the expectation 0.
        return total * (keep / self.nearest - (1 - keep) / (self.candidates - self.nearest))

    def variance(self, length: float = 1.0) -> float:
        """Return the expected squared distance of a reading from a vector of this length.

        Why: readings are 1 / gain long, but for the added coordinate. Its expected square is known
        from that of the projection, as all other coordinates are alike.

        >>> round(UnitVectors(dimension=3, epsilon=4).variance(), 2)
        0.86
        """
        law, size = self.law, self.dimension + 1
        near = of_nearest(dimension=size, count=self.candidates, nearest=self.nearest, power=2)
        far = self.candidates / size - near
        keep = float(law.keep_chance)
        along = keep * near / self.nearest
        along += (1 - keep) * far / (self.candidates - self.nearest)
        added = (1 - length**2) * along + length**2 * (1 - along) / self.dimension
        return (1 - added) / self.gain**2 - length**2

    def release(self, vectors: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's vector, a row of an array.

        >>> randomiser = UnitVectors(dimension=2, epsilon=4)
        >>> reports = randomiser.release([[0.6, 0.8], [0.0, 0.0]])
        >>> reports.shape, bool((reports < randomiser.outputs).all())
        ((2,), True)
        """
        lifted = self._lifted(vectors)
        seeds = uniform_integers(_SEEDS, len(lifted), source=source)
        index = np.empty(len(lifted), dtype=np.int64)
        step = max(1, _AT_ONCE // (self.candidates * (self.dimension + 1)))
        for start in range(0, len(lifted), step):
            part = slice(start, start + step)
            index[part] = self._index(lifted[part], seeds[part], source)
        return np.asarray(seeds * self.candidates + index)

    def _index(self, lifted: Floats, seeds: npt.NDArray[np.int64], source: Source) -> Any:
        everyone = np.arange(self.candidates)
        near = directions(seeds[:, None], everyone[None, :], dimension=self.dimension + 1)
        ranked = np.argpartition(-np.einsum("nkd,nd->nk", near, lifted), self.nearest - 1, axis=1)
        rows = np.arange(len(lifted))

        def own(part: npt.NDArray[Any], source: Source) -> npt.NDArray[Any]:
            closest = uniform_integers(self.nearest, part.size, source=source)
            return np.asarray(ranked[part, closest])

        def other(part: npt.NDArray[Any], source: Source) -> npt.NDArray[Any]:
            further = uniform_integers(self.candidates - self.nearest, part.size, source=source)
            return np.asarray(ranked[part, self.nearest + further])

        return draw(self.law, rows, own=own, other=other, dtype=np.int64, source=source)

    def _lifted(self, vectors: npt.ArrayLike) -> Floats:
        """Return vectors with a further coordinate that makes their length 1."""
        given = np.asarray(vectors)
        if given.ndim != 2 or given.shape[1] != self.dimension or given.dtype.kind not in "iuf":
            raise DataError(
                f"vectors must be an array of numbers with {self.dimension} columns, one row a "
                f"device, but it is of {given.dtype} with the shape {given.shape}."
            )
        rows = given.astype(np.float64)
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
        largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1)
        rows = rows / largest  # squares of large numbers would overflow
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.where(length * largest > 1, rows / np.maximum(length, 1e-300), rows)
        rest = np.sqrt(np.maximum(0, 1 - np.square(rows).sum(axis=1, keepdims=True)))
        return np.hstack([rows, rest])

    def read(self, reports: npt.ArrayLike) -> Floats:
        """Return the vector that each report stands for: the device's own, but for its coins.

        >>> randomiser = UnitVectors(dimension=2, epsilon=4)
        >>> vectors = randomiser.read([7, 1000])
        >>> vectors.shape, bool((np.linalg.norm(vectors, axis=1) <= 1 / randomiser.gain).all())
        ((2, 2), True)
        """
        codes = as_codes(reports, below=self.outputs)
        seeds, index = np.divmod(codes, self.candidates)
        vectors = np.empty((codes.size, self.dimension))
        step = max(1, _AT_ONCE // (self.dimension + 1))
        for start in range(0, codes.size, step):
            part = slice(start, start + step)
            found = directions(seeds[part], index[part], dimension=self.dimension + 1)
            vectors[part] = found[:, :-1] / self.gain
        return vectors

    def estimate(self, reports: npt.ArrayLike) -> "VectorEstimate":
        """Estimate the mean of the devices' vectors.

        >>> randomiser = UnitVectors(dimension=2, epsilon=4)
        >>> estimate = randomiser.estimate(randomiser.release(np.tile([0.6, 0.8], (500, 1))))
        >>> estimate.n, estimate.mean.shape
        (500, (2,))
        """
        vectors = self.read(reports)
        if not len(vectors):
            raise DataError("reports must hold at least one report, got none.")
        n = len(vectors)
        spread = vectors.std(axis=0, ddof=1) if n > 1 else np.full(self.dimension, 1 / self.gain)
        return VectorEstimate(
            randomiser=self, n=n, mean=vectors.mean(axis=0), standard_error=spread / math.sqrt(n)
        )

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the mean's distance from the truth is at most t, so surely.

        Why: readings are at most 1 / gain long, so the expected distance is at most that over the
        root of n, and one report moves it by at most 2 / (n gain) [BLM13, Theorem 6.2].

        >>> round(UnitVectors(dimension=3, epsilon=4).error(n=10_000, confidence=0.95), 3)
        0.05
        """
        surely = log_one_over(1 - probability(confidence, name="confidence"))
        return (1 + math.sqrt(2 * surely)) / (self.gain * math.sqrt(whole(n, name="n")))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VectorEstimate:
    """Hold the estimated mean of the vectors that ``n`` devices have.

    ``standard_error`` is that of each coordinate. It covers the devices' coins and who was asked.

    >>> randomiser = UnitVectors(dimension=2, epsilon=4)
    >>> mean, error = np.array([0.6, 0.8]), np.array([0.03, 0.04])
    >>> VectorEstimate(randomiser=randomiser, n=1000, mean=mean, standard_error=error)
    VectorEstimate(n=1000, dimension=2, error=0.05)
    """

    randomiser: UnitVectors
    n: int
    mean: Floats
    standard_error: Floats

    def ball(self, *, confidence: Number) -> float:
        """Return the radius of a ball about ``mean`` that holds the devices' mean, so surely.

        >>> randomiser = UnitVectors(dimension=3, epsilon=4)
        >>> estimate = VectorEstimate(
        ...     randomiser=randomiser, n=10_000, mean=np.zeros(3), standard_error=np.full(3, 0.01))
        >>> round(estimate.ball(confidence=0.95), 3)
        0.05
        """
        return self.randomiser.error(n=self.n, confidence=confidence)

    def __repr__(self) -> str:
        error = float(np.linalg.norm(self.standard_error))
        return f"VectorEstimate(n={self.n}, dimension={self.mean.size}, error={error:.2g})"
