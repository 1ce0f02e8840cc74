"""What an analyst offers for an answer, or wants to know, and who it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypedDict, final

from discreet._exact import Number, positive, probability, whole
from discreet._keywords import check_keywords
from discreet.errors import ParameterError
from discreet.tables.model.bounds import AskedBounding

__all__ = ["Offer", "OfferFields", "offered", "paid_by_epsilon"]

Periods = str | Sequence[str] | None


class OfferFields(TypedDict, total=False):
    """The fields of an :class:`Offer`, as the keywords that every question takes.

    >>> fields: OfferFields = {"share": "5%", "purpose": "a report"}
    >>> Offer(**fields).share
    Fraction(1, 20)
    """

    epsilon: Number | None
    delta: Number | None
    share: Number | str | None
    within: Number | str | None
    of: Number | None
    confidence: Number
    size: int | None
    bounding: AskedBounding | None
    periods: Periods
    who: str | None
    purpose: str | None
    key: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """How a question is paid, and by whom: exactly one of ``epsilon``, ``share`` and ``within``.

    ``epsilon`` and ``delta`` are the guarantee of the release taken alone: whatever else is
    released, this answer by itself is (epsilon, delta)-DP. The account is charged the true loss of
    the release, which composes better than (epsilon, delta) does. ``delta`` left out is
    at most one hundredth of the account's, and groups that nobody listed are then selected with so
    little of it that the account's delta never runs out before its epsilon. One that is stated is
    used in full.

    ``share`` is a share of the account's whole budget, as ``"5%"`` or 0.05, in the measure in which
    quotes tell what a question costs. ``within`` asks for intervals at most so wide on either side,
    at a ``confidence``: a number, or ``"5%"`` of a size ``of`` that the analyst states or has been
    told before. ``size`` states how many rows a group has, where an error depends on it.
    ``bounding`` overrides how units are bounded.

    ``who`` asks, and for which ``purpose``; left out, it is as the tables were opened. ``periods``
    lists the periods of the data that are asked about, where a unit is protected in each period
    by itself. A request that is repeated with the same ``key`` is never charged twice, also when
    its answer was lost: then it is refused with :class:`discreet.errors.AlreadyCharged`.

    Every question takes an offer, or its fields as keywords: ``T.sql(question, epsilon=0.5)``.

    >>> Offer(epsilon=0.5).epsilon
    Fraction(1, 2)
    >>> Offer(epsilon=0.5, share="5%")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: say how to pay: exactly one of epsilon=, share= and within=.
    """

    epsilon: Number | None = None
    delta: Number | None = None
    share: Number | str | None = None
    within: Number | str | None = None
    of: Number | None = None
    confidence: Number = Fraction(95, 100)
    size: int | None = None
    bounding: AskedBounding | None = None
    periods: Periods = None
    who: str | None = None
    purpose: str | None = None
    key: str | None = None

    @property
    def labels(self) -> Sequence[str] | None:
        """The periods, also a single one as a list."""
        return [self.periods] if isinstance(self.periods, str) else self.periods

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.epsilon, self.share, self.within)) != 1:
            raise ParameterError(
                "say how to pay: exactly one of epsilon=, share= and within=.", parameter="epsilon"
            )
        if self.epsilon is not None:
            self._set("epsilon", positive(self.epsilon, name="epsilon"))
        if self.delta is not None:
            self._set("delta", probability(self.delta, name="delta", zero=True))
        if self.share is not None:
            self._set("share", _fraction(self.share, name="share"))
        if self.of is not None:
            self._set("of", positive(self.of, name="of"))
        if self.size is not None:
            self._set("size", whole(self.size, name="size"))
        if self.labels is not None and not _are_texts(self.labels):
            raise ParameterError(
                'periods must be a period such as "2026-05", or a list of them.',
                parameter="periods",
            )
        if self.bounding is not None and not isinstance(self.bounding, AskedBounding):
            raise ParameterError(
                "bounding must be Norm(limit=, order=), Groups(groups=, rows=), or for sums "
                "Totals(limit=, order=).",
                parameter="bounding",
            )
        self._set("confidence", probability(self.confidence, name="confidence"))
        self._set("within", self._absolute())

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _absolute(self) -> Fraction | None:
        """Return ``within`` as a number in the units of the answer."""
        if self.within is None:
            return None
        if isinstance(self.within, str):
            part = _fraction(self.within, name="within")
            if self.of is None:
                raise ParameterError(
                    "a relative within needs of=: the size of the value that you expect, or one "
                    "that was released before. The data itself is not looked at to find out.",
                    parameter="of",
                )
            return part * Fraction(self.of)
        return positive(self.within, name="within")


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, str) for one in value)


def _fraction(value: object, *, name: str) -> Fraction:
    """Return "5%" or 0.05 as a fraction."""
    wanted = 'a share such as "5%" or 0.05'
    if isinstance(value, str):
        text = value.strip()
        try:
            number = Fraction(text.removesuffix("%").strip())
        except (ValueError, ZeroDivisionError):
            raise ParameterError(
                f"{name} must be {wanted}, got {value!r}.", parameter=name
            ) from None
        value = number / 100 if text.endswith("%") else number
    return probability(value, name=name, one=True)


def offered(offer: Offer | None, fields: OfferFields, *, by: Callable[..., object]) -> Offer:
    """Return an offer, with some fields said anew, as keywords of the function that was called.

    >>> def sql(question, offer=None, **fields): ...
    >>> offered(Offer(epsilon=0.5), {"who": "ana"}, by=sql).who
    'ana'
    """
    check_keywords(by, Offer, fields)
    return Offer(**fields) if offer is None else replace(offer, **fields)


def paid_by_epsilon(
    offer: Offer | None, fields: OfferFields, *others: str, what: str, by: Callable[..., object]
) -> Offer:
    """Return what :func:`offered` does, if it says nothing but ``epsilon`` and some ``others``.

    Who asks, and about which periods, may always be said.

    >>> def watch(questions, offer=None, **fields): ...
    >>> paid_by_epsilon(Offer(share="5%"), {}, what="a watch", by=watch)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: a watch is paid with epsilon=, and takes no share=.
    """
    said, plain = offered(offer, fields, by=by), Offer(epsilon=1)
    for name in ("share", "within", "delta", "of", "confidence", "size", "bounding"):
        is_said = fields.get(name) is not None or getattr(said, name) != getattr(plain, name)
        if is_said and name not in others:
            raise ParameterError(
                f"{what} is paid with epsilon=, and takes no {name}=.", parameter=name
            )
    return said
