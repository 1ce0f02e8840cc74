"""Outputs over released values: in a small database of their own, wherever the data lies."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from discreet.tables.engines.compile.relations import output_sql
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.output import Order, Output
from discreet.tables.model.query import Key
from discreet.tables.model.scalar import ColumnRef

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["ROW", "PostProcessor"]

ROW: Final = "released_row"
"""The column of an evaluated output that says which released row it was."""


@final
class PostProcessor:
    """Evaluates an output, as often as one likes, over released keys and aggregates.

    >>> import pyarrow as pa
    >>> from discreet.tables.model.scalar import Call, ReleasedAggregate
    >>> half = Call("divide", (ReleasedAggregate(0), ReleasedAggregate(1)))
    >>> evaluate = PostProcessor(Output(columns=(("ratio", half),)), keys=())
    >>> evaluate(pa.table({"aggregate_0": [1.0], "aggregate_1": [4.0]})).to_pylist()
    [{'ratio': 0.25, 'released_row': 0}]
    >>> evaluate.close()
    """

    def __init__(self, output: Output, keys: Sequence[Key]) -> None:
        row = ColumnRef(ROW)
        shown = replace(output, columns=(*output.columns, (ROW, row)))
        everything = Output(columns=shown.columns, order=(Order(row),))
        self._shown, self._everything = (output_sql(one, DUCKDB) for one in (shown, everything))
        self._keys = [
            f"CAST(key_{i} AS {DUCKDB.types[key.type]}) AS key_{i}" for i, key in enumerate(keys)
        ]
        self._opened: duckdb.DuckDBPyConnection | None = None

    def __call__(self, released: "pa.Table", *, is_shown: bool = True) -> "pa.Table":
        """Return the output's columns: what is shown, or of all rows as they were released."""
        import numpy as np
        import pyarrow as pa

        arrived = released.append_column(ROW, pa.array(np.arange(released.num_rows)))
        others = [name for name in arrived.column_names if not name.startswith("key_")]
        typed = f"SELECT {', '.join([*self._keys, *others])} FROM arrived"  # noqa: S608
        connection = self._connection()
        connection.register("arrived", arrived)
        connection.execute(f"CREATE OR REPLACE VIEW released AS {typed}")
        return connection.sql(self._shown if is_shown else self._everything).to_arrow_table()

    def close(self) -> None:
        """Let go of the database. Calling it twice does no harm."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _connection(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        if self._opened is None:
            self._opened = duckdb.connect(":memory:", config={"enable_external_access": "false"})
        return self._opened
