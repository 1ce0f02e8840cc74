"""What Spark found, as Arrow: on PySpark 4 and 3.5, classic and Connect."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["as_frame", "to_arrow"]


def to_arrow(frame: "DataFrame") -> "pa.Table":
    """Collect a DataFrame."""
    import pyarrow as pa

    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    old: Any = frame  # PySpark 3.5
    if hasattr(old, "_collect_as_arrow"):
        from pyspark.sql.pandas.types import to_arrow_schema

        batches = old._collect_as_arrow()
        return pa.Table.from_batches(batches, schema=to_arrow_schema(old.schema))
    table, _ = old._session.client.to_table(old._plan.to_proto(old._session.client))
    return table


def as_frame(session: "SparkSession", table: "pa.Table") -> "DataFrame":
    """Make a DataFrame of whole numbers and texts."""
    import pyspark

    if int(pyspark.__version__.split(".")[0]) >= 4:
        return session.createDataFrame(table)
    kinds = ["bigint" if str(one.type) == "int64" else "string" for one in table.schema]
    schema = ", ".join(f"`{n}` {kind}" for n, kind in zip(table.column_names, kinds, strict=True))
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return session.createDataFrame(rows, schema)
