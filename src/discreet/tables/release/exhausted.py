"""A question that no longer fits: what of it would."""

from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.errors import BudgetExceeded
from discreet.tables.pricing.payment import largest
from discreet.tables.pricing.prepared import Prepared, PreparedComposite
from discreet.tables.release.preparing import prepared_for

if TYPE_CHECKING:
    from discreet.tables.release.answer import Asker

__all__ = ["fits_up_to", "saying_what_fits"]


def fits_up_to(prepared: Prepared | PreparedComposite, asker: "Asker") -> float | None:
    """Return the largest epsilon with which a question would fit into all budgets, or None."""

    def fits(epsilon: Fraction) -> bool:
        offer = replace(asker.offer, epsilon=epsilon, share=None, within=None)
        priced = prepared_for(prepared.question, prepared.found, asker, offer)
        return asker.account.quote(priced.loss, **asker.asking).fits

    found = largest(fits)
    if found is None:
        return None
    exact = Decimal(float(found))
    readable = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=ROUND_FLOOR)
    return float(readable) if fits(Fraction(readable)) else float(found)


def saying_what_fits(
    refusal: BudgetExceeded, prepared: Prepared | PreparedComposite, asker: "Asker"
) -> BudgetExceeded:
    """Return the refusal of a charge with the epsilon that would still be taken."""
    most = fits_up_to(prepared, asker)
    told = f"It fits with epsilon={most:g}." if most else "No epsilon fits this question any more."
    found = BudgetExceeded(
        used=refusal.used,
        would_be=refusal.would_be,
        budget=refusal.budget,
        account=refusal.account,
        still=told,
        way_out=refusal.way_out,
    )
    found.offer = refusal.offer
    return found
