"""One release under way: what is asked, where it runs, and which statements ran."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, final

from discreet.noise import Source
from discreet.tables.engines.protocol import Connection, StreamingConnection
from discreet.tables.model.bounds import Bounding, Norm, sensitivity
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.model.statements import Combinations, Statement
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import Price

if TYPE_CHECKING:
    import pyarrow as pa

    Keep: TypeAlias = Callable[[pa.Table], pa.Table]

__all__ = ["BATCH_ROWS", "RunContext"]

# Eight megabytes for every column of numbers, and a few times as much for the noise on one. It is a
# multiple of what noise is drawn in, so that a seed gives the same answer in parts or as a whole.
BATCH_ROWS: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What all parts of a release need; ``groups`` are those that are public."""

    prepared: Prepared
    connection: Connection
    catalog: Catalog
    confidence: Fraction
    source: Source
    groups: Combinations | None
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

    def aggregate(self, statement: Statement, keep: "Keep | None" = None) -> "pa.Table":
        """Run a statement, and note that it ran.

        With ``keep``, which takes what is wanted from any part of the result, no more than a part
        of BATCH_ROWS is in memory besides, if the connection can give parts.
        """
        self.statements.append(self.connection.sql(statement))
        if keep is None:
            return self.connection.aggregate(statement).reveal_without_noise()
        if not isinstance(self.connection, StreamingConnection):
            return keep(self.connection.aggregate(statement).reveal_without_noise())
        import pyarrow as pa

        with self.connection.batches(statement, rows=BATCH_ROWS) as parts:
            return pa.concat_tables([keep(part.reveal_without_noise()) for part in parts])

    def sensitivity(self, bounding: Bounding | None, *, is_signed: bool = False) -> Fraction:
        """Return how far a unit moves what is bounded so; None: every row is a unit."""
        return sensitivity(
            bounding or Norm(limit=1, order=1),
            order=self.price.order,
            neighbours=self.catalog.neighbours,
            is_signed=is_signed,
            group_size=self.catalog.unit.size,
        )
