"""Choose among the randomisers for frequencies by predicted error, bytes and speed."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import numpy.typing as npt

from discreet._exact import Number, whole
from discreet.accounting import PureLoss, RandomizedResponseLoss
from discreet.errors import ParameterError
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.frequencies.hashing import LocalHashing
from discreet.local.frequencies.projective import ProjectiveResponse
from discreet.local.frequencies.public_hashing import PublicHashing
from discreet.local.frequencies.subset import SubsetSelection
from discreet.local.frequencies.unary import OptimizedUnary, SymmetricUnary
from discreet.noise import SYSTEM, Source

__all__ = ["FrequencyOracle", "OracleChoice", "RatedOracle", "choose"]

_BYTE: Final = 0.002  # the share of error that a byte may save
_SOON: Final = 60.0  # seconds; reading may take them
_STEPS_PER_SECOND: Final = 1e9  # of one core, roughly


class FrequencyOracle(Protocol):
    """What every randomiser for frequencies over a known domain offers.

    >>> oracle: FrequencyOracle = DirectResponse(domain=300, epsilon=1)
    >>> oracle.domain, oracle.bytes_per_report
    (300, 2)
    """

    @property
    def domain(self) -> int: ...
    @property
    def epsilon(self) -> Number: ...
    @property
    def loss(self) -> PureLoss | RandomizedResponseLoss: ...
    @property
    def support(self) -> Support: ...
    @property
    def bytes_per_report(self) -> int: ...
    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return one report for each device's value.

        >>> choose(domain=3, epsilon=1, n=1000).randomiser.release([0, 2, 2, 1]).shape
        (4,)
        """
        ...

    def estimate(self, reports: npt.ArrayLike) -> CountEstimate:
        """Estimate how many devices have each value, without bias.

        >>> choose(domain=2, epsilon=1, n=1000).randomiser.estimate([0] * 600 + [1] * 400)
        CountEstimate(n=1000, counts=[716 ± 30, 284 ± 30])
        """
        ...

    def error(self, *, n: int, confidence: Number, share: Number = 1) -> float:
        """Bound the error of a count at this confidence.

        >>> oracle = choose(domain=100, epsilon=1, n=10_000).randomiser
        >>> round(oracle.error(n=10_000, confidence=0.95))
        607
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RatedOracle:
    """Hold what one randomiser would give: error, bytes and time.

    >>> choose(domain=100, epsilon=1, n=10_000).candidates[0].standard_error > 100
    True
    """

    randomiser: FrequencyOracle
    standard_error: float
    reading_seconds: float

    @property
    def bytes_per_report(self) -> int:
        """How many bytes hold a report."""
        return self.randomiser.bytes_per_report

    @property
    def name(self) -> str:
        """The name of the randomiser's class."""
        return type(self.randomiser).__name__


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OracleChoice:
    """Hold the randomiser that suits a collection best, the reason, and what the others would do.

    ``standard_error`` is the root of the counts' mean squared error, which is the same whoever has
    what.
    ``reading_seconds`` is a rough prediction for one core, to tell seconds from hours.

    >>> choose(domain=10_000, epsilon=1, n=1_000_000)
    OracleChoice(domain=10000, epsilon=1, n=1000000): PublicHashing
      randomiser          std. error   bytes  reading
      SubsetSelection           1919    1250  seconds
      OptimizedUnary            1919    1250  seconds
    > PublicHashing             1921       2  at once
      LocalHashing              1921       4  seconds
      ProjectiveResponse        1942       2  at once
      SymmetricUnary            1979    1250  seconds
      HadamardResponse          2164       2  at once
      DirectResponse        5.82e+04       2  at once
    Why: its standard error is 0.1% above that of SubsetSelection, in 2 bytes a
    report instead of 1250.
    """

    domain: int
    epsilon: Number
    n: int
    randomiser: FrequencyOracle
    reason: str
    candidates: tuple[RatedOracle, ...]

    def __repr__(self) -> str:
        head = f"OracleChoice(domain={self.domain}, epsilon={float(self.epsilon):g}, n={self.n})"
        rows = [f"{head}: {type(self.randomiser).__name__}"]
        rows.append(f"  {'randomiser':<18}{'std. error':>12}{'bytes':>8}  reading")
        for rated in self.candidates:
            mark = ">" if rated.randomiser == self.randomiser else " "
            rows.append(
                f"{mark} {rated.name:<18}{rated.standard_error:>12.4g}"
                f"{rated.bytes_per_report:>8}  {_in_words(rated.reading_seconds)}"
            )
        return "\n".join([*rows, *textwrap.wrap(f"Why: {self.reason}", 80)])


def choose(*, domain: int, epsilon: Number, n: int) -> OracleChoice:
    """Choose the randomiser for ``n`` devices with one of ``domain`` values each.

    Among those whose reports are read within a minute, it takes the one of least standard error,
    where a byte of a report weighs as much as 0.2% of error.

    >>> type(choose(domain=3, epsilon=1, n=1000).randomiser).__name__
    'DirectResponse'
    """
    devices = whole(n, name="n")
    rated = _rated(domain, epsilon, devices)
    quick = [one for one in rated if one.reading_seconds <= _SOON]
    best = min(quick or rated, key=_weight)
    return OracleChoice(
        domain=domain,
        epsilon=epsilon,
        n=devices,
        randomiser=best.randomiser,
        reason=_reason(best, rated[0]),
        candidates=rated,
    )


def _weight(rated: RatedOracle) -> float:
    return rated.standard_error * (1 + _BYTE * rated.bytes_per_report)


def _rated(domain: int, epsilon: Number, n: int) -> tuple[RatedOracle, ...]:
    """Return what can be had, the least standard error first."""
    found, refused = [], []
    for make, steps in _STEPS:
        try:
            oracle = make(domain=domain, epsilon=epsilon)
        except ParameterError as refusal:  # such as an epsilon too small for this one's coins
            refused.append(refusal)
            continue
        error = math.sqrt(n * oracle.support.average_variance(domain=domain))
        seconds = steps(oracle, n) / _STEPS_PER_SECOND
        found.append(RatedOracle(randomiser=oracle, standard_error=error, reading_seconds=seconds))
    if not found:
        raise refused[0]
    return tuple(sorted(found, key=lambda one: one.standard_error))


def _reason(best: RatedOracle, least: RatedOracle) -> str:
    if best.standard_error == least.standard_error:
        return "no other errs less, and none saves enough bytes for its larger error."
    above = best.standard_error / least.standard_error - 1
    saved = f"in {best.bytes_per_report} bytes a report instead of {least.bytes_per_report}"
    return f"its standard error is {above:.1%} above that of {least.name}, {saved}."


def _in_words(seconds: float) -> str:
    limits = ((1, "at once"), (60, "seconds"), (3600, "minutes"), (86_400, "hours"))
    return next((words for limit, words in limits if seconds < limit), "days")


def _one_each(oracle: Any, n: int) -> float:
    return float(n + oracle.outputs)


def _transform(oracle: Any, n: int) -> float:
    return float(n + 4 * oracle.outputs * oracle.outputs.bit_length())


def _all_bits(oracle: Any, n: int) -> float:
    return float(n * oracle.bytes_per_report)


def _all_values(oracle: Any, n: int) -> float:
    return float(n * oracle.domain / 4)


_STEPS: Final[tuple[tuple[Callable[..., FrequencyOracle], Callable[[Any, int], float]], ...]] = (
    (DirectResponse, _one_each),  # the simpler first: it is taken when two are alike
    (HadamardResponse, _transform),
    (PublicHashing, _transform),
    (ProjectiveResponse, _transform),
    (SubsetSelection, _all_bits),
    (OptimizedUnary, _all_bits),
    (SymmetricUnary, _all_bits),
    (LocalHashing, _all_values),
)
