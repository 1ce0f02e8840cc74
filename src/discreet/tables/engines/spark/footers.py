"""Footers of local Parquet files: which type each file really has for a column."""

import re

__all__ = ["footer", "is_parquet"]


def is_parquet(path: str) -> bool:
    """Whether a file is called as Parquet files are."""
    return path.endswith((".parquet", ".pq"))


def footer(path: str) -> dict[str, str]:
    """Return the physical and logical types of a file's plain columns."""
    import pyarrow.parquet as pq

    schema = pq.read_metadata(path).schema
    columns = [schema.column(place) for place in range(len(schema))]
    return {
        one.name: f"{one.physical_type} {_without_history(str(one.logical_type))}"
        for one in columns
        if one.name == one.path and one.max_repetition_level == 0
    }


def _without_history(logical: str) -> str:
    """Leave out in which version's words a type was written.

    >>> _without_history("Timestamp(timeUnit=microseconds, is_from_converted_type=false)")
    'Timestamp(timeUnit=microseconds)'
    """
    return re.sub(r", (is_from|force_set)_converted_type=\w+", "", logical)
