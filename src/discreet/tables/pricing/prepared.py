"""A question that is laid out and priced: what is fixed before data is touched."""

from dataclasses import dataclass
from typing import final

from discreet.tables.model.bounds import Bounding
from discreet.tables.model.query import Query
from discreet.tables.pricing.cell_layout import CellLayout
from discreet.tables.pricing.price import Price

__all__ = ["Prepared"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question with its price: everything that is fixed before data is touched."""

    question: str
    query: Query
    layout: CellLayout
    price: Price
    bounding: Bounding | None
