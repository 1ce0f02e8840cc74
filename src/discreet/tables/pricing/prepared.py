"""A question that is laid out and priced: what is fixed before data is touched."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.accounting import Loss, PureLoss, compose
from discreet.tables.model.bounds import AskedBounding
from discreet.tables.model.composite import Composite
from discreet.tables.model.query import Query
from discreet.tables.pricing.cell_layout import CellLayout
from discreet.tables.pricing.price import Price

__all__ = ["Prepared", "PreparedComposite"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question with its price: everything that is fixed before data is touched."""

    question: str
    query: Query
    layout: CellLayout
    price: Price
    bounding: AskedBounding | None

    @property
    def found(self) -> Query:
        """What is asked, without its price."""
        return self.query

    @property
    def parts(self) -> tuple["Prepared", ...]:
        """What is released for it: itself."""
        return (self,)

    @property
    def epsilon(self) -> Fraction:
        """That of the answer taken alone."""
        return self.price.epsilon

    @property
    def delta(self) -> Fraction:
        """That of the answer taken alone."""
        return self.price.delta

    @property
    def loss(self) -> Loss:
        """What the account is charged."""
        return self.price.loss


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedComposite:
    """A question over released answers, with the prices of all its parts.

    Claim: the answer is (``epsilon``, ``delta``)-DP.

    Why: parts compose, their epsilons and deltas adding up at most [DR14, Theorem 3.16], and what
    is computed of them is post-processing (:class:`Composite`).
    """

    question: str
    composite: Composite
    parts: tuple[Prepared, ...]

    @property
    def found(self) -> Composite:
        """What is asked, without its price."""
        return self.composite

    @property
    def epsilon(self) -> Fraction:
        """That of all parts together."""
        return sum((part.price.epsilon for part in self.parts), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """That of all parts together."""
        return sum((part.price.delta for part in self.parts), Fraction(0))

    @property
    def loss(self) -> Loss:
        """What the account is charged: nothing where all tables are public."""
        losses = [part.price.loss for part in self.parts]
        if len(losses) == 1:
            return losses[0]
        return compose([(loss, 1) for loss in losses]) if losses else PureLoss(epsilon=0)
