"""From what an analyst offers to pay, or wants to know, to the epsilon of one release."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from discreet.accounting import Loss
from discreet.errors import ParameterError
from discreet.privacy import Guarantee
from discreet.tables.model.bounds import Totals
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.expected_errors import expected_errors
from discreet.tables.pricing.inferences import known_rows
from discreet.tables.pricing.offer import Offer
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import Beside, Price, best, prices

__all__ = ["DELTA_SHARE", "largest", "part_offer", "prepare"]

DELTA_SHARE: Final = Fraction(1, 100)
"""The share of the account's delta that a release gets unless it says otherwise."""

_SMALLEST, _LARGEST = Fraction(1, 10**6), Fraction(100)
_PRECISION: Final = Fraction(1, 1000)


def prepare(
    question: str,
    query: Query,
    *,
    offer: Offer,
    catalog: Catalog,
    guarantee: Guarantee,
    cost: Callable[[Loss], float],
    beside: Beside,
) -> Prepared:
    """Lay a question out and price it on this offer.

    ``cost`` says what share of the budget a loss would use now, ``beside`` how much delta may go
    with one. A delta that the offer states is used in full.
    """
    rows = known_rows(query, catalog)
    layout, delta = lay_out(query, rows=rows, bounding=offer.bounding), _delta(offer, guarantee)
    if isinstance(offer.bounding, Totals) and not layout.totals:
        raise ParameterError(
            "Totals bounds the sums of a unit's rows, where they are asked for without a count or "
            "mean of the same values, and this question has no such sum. Nothing was spent.",
            parameter="bounding",
        )

    def made(found: Price) -> Prepared:
        return Prepared(
            question=question, query=query, layout=layout, price=found, bounding=offer.bounding
        )

    def priced(epsilon: Fraction) -> tuple[Price, ...]:
        return prices(
            query, layout, catalog, epsilon=epsilon, delta=delta, bounding=offer.bounding,
            beside=beside if offer.delta is None else None,
        )  # fmt: skip

    def at(epsilon: Fraction) -> Prepared:
        return made(best(priced(epsilon), query, catalog, offer.bounding))

    if offer.epsilon is not None:
        return at(Fraction(offer.epsilon))
    if offer.within is not None:
        return at(_smallest(lambda epsilon: _is_within(at(epsilon), offer, catalog)))
    assert offer.share is not None
    bought = _for_share(float(offer.share), priced, cost)
    return made(best(bought, query, catalog, offer.bounding))


def part_offer(offer: Offer, parts: int) -> Offer:
    """Return what is offered for each of several parts of one question.

    Epsilon, delta and share are split evenly; an error is asked of every part.

    >>> part_offer(Offer(epsilon=1), 4).epsilon
    Fraction(1, 4)
    """
    if parts < 2:
        return offer
    return replace(
        offer,
        epsilon=None if offer.epsilon is None else Fraction(offer.epsilon) / parts,
        delta=None if offer.delta is None else Fraction(offer.delta) / parts,
        share=None if offer.share is None else offer.share / parts,  # type: ignore[operator]
    )


def _delta(offer: Offer, guarantee: Guarantee) -> Fraction:
    """Return the delta of the release; what is paid by a share takes at most a part of it."""
    whole_delta = Fraction(guarantee.delta)
    if offer.delta is not None:
        return Fraction(offer.delta)
    if offer.share is not None:
        return whole_delta * min(DELTA_SHARE, Fraction(offer.share) / 4)
    return whole_delta * DELTA_SHARE


def _for_share(
    share: float, priced: Callable[[Fraction], tuple[Price, ...]], cost: Callable[[Loss], float]
) -> list[Price]:
    """Return what a share of the budget buys of each kind of noise.

    At one epsilon the kinds differ much in what they cost the account, so each goes to its own end.
    """
    found = []
    for place in range(len(priced(_SMALLEST))):

        def fits(epsilon: Fraction, place: int = place) -> bool:
            return cost(priced(epsilon)[place].loss) <= share

        epsilon = largest(fits)
        if epsilon is not None:
            found.append(priced(epsilon)[place])
    if not found:
        raise ParameterError(
            "this share of the budget buys nothing: even epsilon=1e-06 costs more. Offer more, or "
            "state a smaller delta.",
            parameter="share",
        )
    return found


def _is_within(prepared: Prepared, offer: Offer, catalog: Catalog) -> bool:
    assert offer.within is not None
    for one in expected_errors(
        prepared, catalog, confidence=Fraction(offer.confidence), size=offer.size
    ):
        if one.half_width is None:
            raise ParameterError(
                f"the error of {one.text} cannot be told beforehand: {one.words}. Pay with "
                "epsilon= or share= instead, declare rows= and bounds, or state size=, the number "
                "of rows in a group.",
                parameter="within",
            )
        if one.half_width > offer.within:  # type: ignore[operator]  # made a Fraction above
            return False
    return True


def largest(fits: Callable[[Fraction], bool]) -> Fraction | None:
    """Return the largest epsilon that fits, to a thousandth, None where none does.

    >>> float(largest(lambda epsilon: epsilon <= 1)) > 0.999
    True
    """
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
