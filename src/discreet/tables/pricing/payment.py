"""From what an analyst offers to pay, or wants to know, to the epsilon of one release."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from discreet._exact import Number, positive, probability, whole
from discreet.accounting import Loss
from discreet.errors import ParameterError
from discreet.privacy import Guarantee
from discreet.tables.model.bounds import Bounding, Groups, Norm
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.expected_errors import expected_errors
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import Price, best, prices

__all__ = ["DELTA_SHARE", "Terms", "prepare"]

DELTA_SHARE: Final = Fraction(1, 100)
"""The share of the account's delta that a release gets unless it says otherwise."""

_SMALLEST, _LARGEST = Fraction(1, 10**6), Fraction(100)
_PRECISION: Final = Fraction(1, 1000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a release is paid: exactly one of ``epsilon``, ``share`` and ``within``.

    ``epsilon`` and ``delta`` are the guarantee of the release taken alone: whatever else is
    released, this answer by itself is (epsilon, delta)-DP. The account is charged the true loss of
    the release, which composes better than (epsilon, delta) does. ``delta`` left out is
    DELTA_SHARE of the account's.

    ``share`` is a share of the account's whole budget, as ``"5%"`` or 0.05: what the ledger shows
    as used afterwards, less what it shows now. ``within`` asks for
    intervals at most so wide on either side: a number, or ``"5%"`` of a size ``of`` that the
    analyst states or has been told before.

    >>> Terms(epsilon=0.5).epsilon
    Fraction(1, 2)
    >>> Terms(epsilon=0.5, share="5%")
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
    bounding: Bounding | None = None

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
        if self.size is not None:
            self._set("size", whole(self.size, name="size"))
        if self.bounding is not None and not isinstance(self.bounding, Norm | Groups):
            raise ParameterError(
                "bounding must be Norm(limit=, order=) or Groups(groups=, rows=).",
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
            return part * abs(positive(self.of, name="of"))
        return positive(self.within, name="within")


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


def prepare(
    question: str,
    query: Query,
    *,
    terms: Terms,
    catalog: Catalog,
    guarantee: Guarantee,
    cost: Callable[[Loss], float],
) -> Prepared:
    """Lay a question out and price it on these terms.

    ``cost`` says what share of the budget a loss would use now.
    """
    layout, delta = lay_out(query), _delta(terms, guarantee)

    def made(found: Price) -> Prepared:
        return Prepared(
            question=question, query=query, layout=layout, price=found, bounding=terms.bounding
        )

    def offers(epsilon: Fraction) -> tuple[Price, ...]:
        return prices(query, layout, catalog, epsilon=epsilon, delta=delta, bounding=terms.bounding)

    def at(epsilon: Fraction) -> Prepared:
        return made(best(offers(epsilon), query, catalog, terms.bounding))

    if terms.epsilon is not None:
        return at(Fraction(terms.epsilon))
    if terms.within is not None:
        return at(_smallest(lambda epsilon: _is_within(at(epsilon), terms, catalog)))
    assert terms.share is not None
    bought = _for_share(float(terms.share), offers, cost)
    return made(best(bought, query, catalog, terms.bounding))


def _delta(terms: Terms, guarantee: Guarantee) -> Fraction:
    """Return the delta of the release; what is paid by a share takes at most a part of it."""
    whole_delta = Fraction(guarantee.delta)
    if terms.delta is not None:
        return Fraction(terms.delta)
    if terms.share is not None:
        return whole_delta * min(DELTA_SHARE, Fraction(terms.share) / 4)
    return whole_delta * DELTA_SHARE


def _for_share(
    share: float, offers: Callable[[Fraction], tuple[Price, ...]], cost: Callable[[Loss], float]
) -> list[Price]:
    """Return what a share of the budget buys of each kind of noise.

    At one epsilon the kinds differ much in what they cost the account, so each goes to its own end.
    """
    found = []
    for place in range(len(offers(_SMALLEST))):

        def fits(epsilon: Fraction, place: int = place) -> bool:
            return cost(offers(epsilon)[place].loss) <= share

        epsilon = _largest(fits)
        if epsilon is not None:
            found.append(offers(epsilon)[place])
    if not found:
        raise ParameterError(
            "this share of the budget buys nothing: even epsilon=1e-06 costs more. Offer more, or "
            "state a smaller delta.",
            parameter="share",
        )
    return found


def _is_within(prepared: Prepared, terms: Terms, catalog: Catalog) -> bool:
    assert terms.within is not None
    for one in expected_errors(
        prepared, catalog, confidence=Fraction(terms.confidence), size=terms.size
    ):
        if one.half_width is None:
            raise ParameterError(
                f"the error of {one.text} cannot be told beforehand: {one.words}. Pay with "
                "epsilon= or share= instead, declare rows= and bounds, or state size=, the number "
                "of rows in a group.",
                parameter="within",
            )
        if one.half_width > terms.within:  # type: ignore[operator]  # made a Fraction above
            return False
    return True


def _largest(fits: Callable[[Fraction], bool]) -> Fraction | None:
    """Return the largest epsilon that fits, to a thousandth, None where none does."""
    if not fits(_SMALLEST):
        return None
    return _bisected(lambda epsilon: not fits(epsilon))[0]


def _smallest(is_enough: Callable[[Fraction], bool]) -> Fraction:
    """Return the smallest epsilon that is enough, to a thousandth."""
    if not is_enough(_LARGEST):
        raise ParameterError(
            f"no epsilon up to {float(_LARGEST):g} gives so small an error. Allow a larger one.",
            parameter="within",
        )
    return _bisected(is_enough)[1]


def _bisected(is_beyond: Callable[[Fraction], bool]) -> tuple[Fraction, Fraction]:
    """Return neighbouring epsilons, the second beyond a border and the first not."""
    low, high = _SMALLEST, _LARGEST
    if not is_beyond(high):
        return high, high
    if is_beyond(low):
        return low, low
    while high / low > 1 + _PRECISION:
        middle = Fraction(float(low * high) ** 0.5).limit_denominator(10**9)
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return low, high
