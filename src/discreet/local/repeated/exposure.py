"""What somebody who sees all reports of a device learns over time, as a number."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeGuard, final

import numpy.typing as npt

from discreet._exact import float_up, refusal, whole
from discreet.accounting import Loss, PureLoss
from discreet.errors import ParameterError
from discreet.noise import Source

__all__ = [
    "Exposure",
    "Fresh",
    "Repeated",
    "exposure",
    "is_linkable",
    "price_of",
    "require_unlinkable",
]

Codes = npt.NDArray[Any]


class Fresh(Protocol):
    """A randomiser that draws everything anew for each report."""

    @property
    def domain(self) -> int: ...
    @property
    def loss(self) -> Loss: ...
    def release(self, values: npt.ArrayLike, *, source: Source = ...) -> Codes: ...


class Repeated(Protocol):
    """A randomiser whose permanent response a device draws once and keeps."""

    @property
    def domain(self) -> int: ...
    @property
    def loss(self) -> PureLoss:
        """What all reports of one value cost."""
        ...

    @property
    def first_loss(self) -> PureLoss: ...
    @property
    def further_loss(self) -> PureLoss | None: ...
    @property
    def responses(self) -> int: ...
    def loss_after(self, *, reports: int) -> PureLoss: ...
    def enrol(self, devices: int, *, source: Source = ...) -> Codes: ...
    def response_keys(self, values: npt.ArrayLike, *, enrolled: Codes) -> Codes: ...
    def permanent(
        self, values: npt.ArrayLike, *, enrolled: Codes | None = ..., source: Source = ...
    ) -> Codes: ...
    def instant(self, permanent: npt.ArrayLike, *, source: Source = ...) -> Codes: ...
    def release(self, values: npt.ArrayLike, *, source: Source = ...) -> Codes: ...


def is_linkable(randomiser: object) -> TypeGuard[Repeated]:
    """Say whether reports of one device can be known by their looks, whatever name they bear.

    They can where a permanent response shows through. No order of reports hides whose they are, so
    a shuffler must not claim anything for more than one batch of them.

    >>> from discreet import local
    >>> is_linkable(local.DirectResponse(domain=4, epsilon=1))
    False
    >>> is_linkable(local.RepeatedDirect(domain=4, epsilon=2, first=1))
    True
    """
    return hasattr(type(randomiser), "permanent")


def require_unlinkable(randomiser: object) -> None:
    """Refuse a randomiser whose reports shuffling does not make anonymous.

    >>> from discreet import local
    >>> require_unlinkable(local.BitFlip(domain=8, bits=2, epsilon=1, first=1))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: randomiser must draw every report anew to be shuffled, got...
    """
    if is_linkable(randomiser):
        raise ParameterError(
            "randomiser must draw every report anew to be shuffled, got "
            f"{type(randomiser).__name__}, whose reports can be linked by the response that a "
            "device keeps. Count its local loss, or shuffle one that keeps nothing.",
            parameter="randomiser",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Tell what all reports of a device say about it over some days, one report a day.

    ``values`` is the epsilon between two histories that differ in which values the device had, but
    agree on which days the same kept response answers. ``anything`` is that between any two
    histories, so it covers when and how often the value changed as well; infinite where nothing
    bounds it.

    >>> print(Exposure(days=30, values=2.0, anything=math.inf))
    30 days of reports: epsilon = 2 for which values it had, without bound for that and when ...
    """

    days: int
    values: float
    anything: float

    def __str__(self) -> str:
        def told(epsilon: float) -> str:
            return "without bound" if math.isinf(epsilon) else f"epsilon = {epsilon:.3g}"

        return (
            f"{self.days} days of reports: {told(self.values)} for which values it had, "
            f"{told(self.anything)} for that and when they changed"
        )


def price_of(randomiser: Fresh | Repeated, *, reports: int) -> Fraction | None:
    """Return the epsilon of so many reports, whatever values they are of; None if there is none.

    Why: the first report has its own loss. A further one, given those before, is a mixture over
    kept responses, each of which its fresh coins alone hide. It may be dearer than the first, which
    two stages hide.

    >>> from discreet import local
    >>> price_of(local.RepeatedDirect(domain=4, epsilon=2, first=2), reports=1)
    Fraction(2, 1)
    """
    if not is_linkable(randomiser):
        return reports * Fraction(randomiser.loss.epsilon_pure)
    further = randomiser.further_loss
    if further is None and reports > 1:
        return None
    more = Fraction(0) if further is None else (reports - 1) * further.epsilon_pure
    return randomiser.first_loss.epsilon_pure + more


def exposure(randomiser: Fresh | Repeated, *, days: int, changes: int = 0) -> Exposure:
    """Return what an observer of one report a day learns, if the value changed so many times.

    Claim: the two numbers of :class:`Exposure`, rounded up. For a value that never changes, and for
    fresh randomness, they are exact: some sequence of reports has that ratio.

    Why: docs/proofs/repeated_answers.md. Fresh reports are independent, so their losses add up. Of
    a randomiser that keeps its responses, ``changes + 1`` values need at most so many responses,
    drawn independently, each seen on at most the days that the others leave. For any two histories
    the first report has its own loss, and a further one that of its fresh coins alone.

    >>> from discreet import local
    >>> print(exposure(local.DirectResponse(domain=4, epsilon=1), days=30))
    30 days of reports: epsilon = 30 for which values it had, epsilon = 30 for that and when ...
    >>> print(exposure(local.RepeatedDirect(domain=4, epsilon=2, first=1), days=30))
    30 days of reports: epsilon = 2 for which values it had, epsilon = 46.6 for that and when ...
    >>> print(exposure(local.RepeatedDirect(domain=4, epsilon=2, first=2), days=30, changes=3))
    30 days of reports: epsilon = 8 for which values it had, without bound for that and when ...
    """
    count, most = whole(days, name="days"), whole(changes, name="changes", minimum=0) + 1
    if most > count:
        raise refusal("changes", f"below days, which is {count}", changes)
    anything = price_of(randomiser, reports=count)
    held: Fraction | float | None = anything
    if is_linkable(randomiser):
        kept = min(most, randomiser.responses + 1)  # having no value is one more
        one = min(randomiser.loss_after(reports=count - kept + 1), randomiser.loss, key=_epsilon)
        held = min(kept * one.epsilon_pure, math.inf if anything is None else anything)
    return Exposure(days=count, values=_up(held), anything=_up(anything))


def _epsilon(loss: PureLoss) -> Fraction:
    return loss.epsilon_pure


def _up(epsilon: Fraction | float | None) -> float:
    return math.inf if epsilon is None else float_up(Fraction(epsilon))
