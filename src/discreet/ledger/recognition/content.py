"""What whoever reads a table hands to the ledger, so that it can be known again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

__all__ = ["ColumnSample", "TableContent"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSample:
    """Distinct values of one column, those of the lowest keyed hash, and what stands beside them.

    ``hashes`` are the first 16 hexadecimal digits of SHA-256 of a key and the value, in rising
    order; ``limit`` is the one that all values below it were taken up to, None for all values.
    ``values`` are the values, ``times`` in how many rows each is. ``beside`` has a sequence for
    each other column: for each value the one that is beside it, or, of several, the one with the
    lowest hash; None for none. Values are texts that do not depend on how a table was written.

    >>> ColumnSample(hashes=("00ff",), limit=None, values=("1.0",), times=(1,), beside=(("a",),))
    ColumnSample(<redacted>)
    """

    MOST_VALUES: ClassVar[int] = 512
    MOST_BESIDE: ClassVar[int] = 32

    hashes: Sequence[str]
    limit: str | None
    values: Sequence[str]
    times: Sequence[int]
    beside: Sequence[Sequence[str | None]]
    is_unit: bool = False

    def __repr__(self) -> str:
        return "ColumnSample(<redacted>)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """Samples of a table's columns, and of a small one all ``rows`` as well.

    >>> TableContent()
    TableContent(<redacted>)
    """

    MOST_SAMPLES: ClassVar[int] = 3
    MOST_ROWS: ClassVar[int] = 1000

    samples: Sequence[ColumnSample] = ()
    rows: Sequence[Sequence[str | None]] = ()

    def __repr__(self) -> str:
        return "TableContent(<redacted>)"
