"""One release under way: what is asked, where it runs, and which statements ran."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.noise import Source
from discreet.tables.engines.protocol import Connection
from discreet.tables.model.bounds import Bounding, Norm, sensitivity
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.model.statements import Statement
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import Price
from discreet.tables.release.execution.group_index import Group

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RunContext"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What all parts of a release need; ``groups`` are those that are public."""

    prepared: Prepared
    connection: Connection
    catalog: Catalog
    confidence: Fraction
    source: Source
    groups: tuple[Group, ...] | None
    salt: str
    statements: list[str] = field(default_factory=list)

    @property
    def query(self) -> Query:
        """The question."""
        return self.prepared.query

    @property
    def price(self) -> Price:
        """What was paid."""
        return self.prepared.price

    def aggregate(self, statement: Statement) -> "pa.Table":
        """Run a statement, and note that it ran."""
        self.statements.append(self.connection.sql(statement))
        return self.connection.aggregate(statement).reveal_without_noise()

    def sensitivity(self, bounding: Bounding | None, *, is_signed: bool = False) -> Fraction:
        """Return how far a unit moves what is bounded so; None: every row is a unit."""
        return sensitivity(
            bounding or Norm(limit=1, order=1),
            order=self.price.order,
            neighbours=self.catalog.neighbours,
            is_signed=is_signed,
            group_size=self.catalog.unit.size,
        )
