"""Outputs over released values: in a small database of their own, wherever the data lies."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from discreet.errors import DataError
from discreet.tables.engines.compile.relations import output_sql
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.engines.progress import run
from discreet.tables.model.output import Order, Output
from discreet.tables.model.query import Key, Query
from discreet.tables.model.scalar import ColumnRef

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["OuterQuery", "PostProcessor", "empty_answer"]

_ROW: Final = "released_row"
_CLOSED: Final = {"enable_external_access": "false"}


@final
class PostProcessor:
    """Evaluates an output, as often as one likes, over released keys and aggregates.

    >>> import pyarrow as pa
    >>> from discreet.tables.model.scalar import Call, ReleasedAggregate
    >>> half = Call("divide", (ReleasedAggregate(0), ReleasedAggregate(1)))
    >>> evaluate = PostProcessor(Output(columns=(("ratio", half),)), keys=())
    >>> shown, rows = evaluate(pa.table({"aggregate_0": [1.0], "aggregate_1": [4.0]}))
    >>> shown.to_pylist(), rows
    ([{'ratio': 0.25}], array([0]))
    >>> evaluate.close()
    """

    def __init__(self, output: Output, keys: Sequence[Key]) -> None:
        row = ColumnRef(_ROW, source="released")
        shown = replace(output, columns=(*output.columns, (_ROW, row)))
        self._names = output.names
        everything = Output(columns=shown.columns, order=(Order(row),))
        self._shown, self._everything = (output_sql(one, DUCKDB) for one in (shown, everything))
        self._keys = [
            f"CAST(key_{i} AS {DUCKDB.types[key.type]}) AS key_{i}" for i, key in enumerate(keys)
        ]
        self._opened: duckdb.DuckDBPyConnection | None = None

    def __call__(
        self, released: "pa.Table", *, is_shown: bool = True
    ) -> "tuple[pa.Table, npt.NDArray[np.int64]]":
        """Return the output's columns, and which of the released rows these are.

        What is shown, in its order, or all rows as they were released.
        """
        import numpy as np
        import pyarrow as pa

        arrived = released.append_column(_ROW, pa.array(np.arange(released.num_rows)))
        others = [name for name in arrived.column_names if not name.startswith("key_")]
        typed = f"SELECT {', '.join([*self._keys, *others])} FROM arrived"  # noqa: S608
        connection = self._connection()
        connection.register("arrived", arrived)
        connection.execute(f"CREATE OR REPLACE VIEW released AS {typed}")
        found = connection.sql(self._shown if is_shown else self._everything).to_arrow_table()
        # By position: a question may give a column any name.
        *shown, rows = found.columns
        return pa.table(shown, names=self._names), rows.to_numpy().astype(np.int64)

    def close(self) -> None:
        """Let go of the database. Calling it twice does no harm."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _connection(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        if self._opened is None:
            self._opened = duckdb.connect(":memory:", config={**_CLOSED})
        return self._opened


@final
class OuterQuery:
    """One SELECT over released answers and public tables, in a database that has nothing else.

    >>> import pyarrow as pa
    >>> ask = OuterQuery("SELECT MAX(n) AS most FROM released_0", {})
    >>> ask({"released_0": pa.table({"n": [3.0, 4.5]})}).to_pylist()
    [{'most': 4.5}]
    """

    def __init__(self, sql: str, public: "Mapping[str, pa.Table]") -> None:
        self._sql, self._public = sql, public

    def __call__(self, released: "Mapping[str, pa.Table]") -> "pa.Table":
        """Return the answer; what cannot be computed, or not in time, is a DataError."""
        import duckdb

        # A subquery of several rows would fail, or not, by what was released.
        options = {**_CLOSED, "scalar_subquery_error_on_multiple_rows": "false"}
        with closing(duckdb.connect(":memory:", config={**options})) as connection:
            for name, table in {**self._public, **released}.items():
                connection.register(name, table)
            try:
                return run(
                    lambda: connection.sql(self._sql).to_arrow_table(),
                    stop=connection.interrupt,
                    done=lambda: -1.0,
                )
            except TimeoutError:
                message = (
                    "What is computed of released values took longer than it may, and was stopped. "
                    "Ask for less at once, or let the custodian raise seconds in the resources."
                )
            except duckdb.Error as error:
                message = str(error).splitlines()[0][:300]
        raise DataError(message)


def empty_answer(query: Query) -> "pa.Table":
    """Return the released answer of a query as it looks without rows."""
    import pyarrow as pa

    given: dict[str, Any] = {f"key_{i}": pa.nulls(0) for i, _ in enumerate(query.keys)}
    for i, _ in enumerate(query.aggregates):
        given[f"aggregate_{i}"] = pa.array([], type=pa.float64())
    evaluate = PostProcessor(query.output, query.keys)
    try:
        return evaluate(pa.table(given))[0]
    finally:
        evaluate.close()
