"""Samples of a table by keyed hashes, the same ones from every copy of it: as SQL.

Values are brought into one form first, so that a number is the same number in every type and as a
text, and a date the same date; empty texts are no values. Rows are read a few times, once for each
column that is sampled, and memory is bounded by the size of the samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from discreet.ledger import ColumnSample, TableContent
from discreet.tables.engines.compile.dialect import SALT
from discreet.tables.engines.compile.text import quoted, text
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.types import ZONED, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SampleWords", "sampled"]

Columns = Sequence[tuple[str, str]]
_MANY: Final = 10_000_000  # rows of a table of which one column has to do
_FEWEST: Final = 16  # distinct values of a column that can tell rows apart
_ROOM: Final = 1.25  # sampled so many more at first, as the number of values is estimated
_LONGEST: Final = 64
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE")
_MOMENTS: Final = ("DATE", "TIMESTAMP", "DATETIME")
_NESTED: Final = ("STRUCT", "MAP", "UNION")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWords:
    """How an engine writes what samples are made of.

    Templates: roughly how many distinct values a column has, the digest of a text as hexadecimal
    digits, and of all texts {0} of a group that are not NULL the one with the lowest {1}. ``form``
    writes a value of a type in its one form, as a text: the same one for every engine.
    """

    distinct: str
    digest: str
    lowest: str
    form: Callable[[str, str], str]


def sampled(
    run: "Callable[[str, str], pa.Table]",
    table: str,
    columns: Columns,
    unit: str | None,
    salt: str,
    words: SampleWords | None = None,
) -> TableContent:
    """Return samples of a table; ``run`` carries out a statement with its salt."""
    words = words or _WORDS
    if not columns:
        return TableContent()
    # Others, such as clock times, cannot be read whatever their values; no question can use them.
    columns = [one for one in columns if kind_of(one[1]) is not None or one[1] == "BLOB"]
    rows, *counts = (one.as_py() for (one,) in run(_profile(table, columns, words), "").columns)
    own = next((one for one, _ in columns if unit and one.casefold() == unit.casefold()), None)
    of, beside = _chosen(columns, counts, own)
    of = of if rows < _MANY else of[:1]
    samples = []
    for one in of:
        others = [i for i in beside if i != one]
        limit = _limit(counts[one])
        found = run(_sample(table, columns, one, others, limit, words), salt)
        hashes, values, times, *at_side = (each.to_pylist() for each in found.columns)
        if len(hashes) == ColumnSample.MOST_VALUES:
            limit = hashes[-1]  # the last one is left out, so that all below the limit are there
            hashes, values, times, *at_side = (
                each[:-1] for each in (hashes, values, times, *at_side)
            )
        samples.append(
            ColumnSample(
                hashes=hashes, limit=limit, values=values, times=times, beside=at_side,
                is_unit=columns[one][0] == own,
            )
        )  # fmt: skip
    whole = run(_everything(table, columns, words), "") if rows <= TableContent.MOST_ROWS else None
    cells = [] if whole is None else list(zip(*(c.to_pylist() for c in whole.columns), strict=True))
    return TableContent(samples=samples, rows=cells)


def _profile(table: str, columns: Columns, words: SampleWords) -> str:
    """Count the rows and, roughly, the distinct values of every column."""
    counts = [words.distinct.format(quoted(one)) for one, _ in columns]
    return f"SELECT {', '.join(['count(*)', *counts])} FROM {quoted(table)}"  # noqa: S608


def _chosen(
    columns: Columns, counts: Sequence[int], unit: str | None
) -> tuple[list[int], list[int]]:
    """Choose columns to sample, the unit's first, and columns to look at beside them.

    >>> _chosen([("id", "BIGINT"), ("sex", "VARCHAR"), ("pay", "DOUBLE")], [900, 2, 700], "id")
    ([0, 2], [0, 2, 1])
    """
    plain = [i for i, (_, kind) in enumerate(columns) if not _is_nested(kind)]
    by_count = sorted(plain, key=lambda i: (columns[i][0] != unit, -counts[i], columns[i][0]))
    telling = [i for i in by_count if columns[i][0] == unit or counts[i] >= _FEWEST]
    return telling[: TableContent.MOST_SAMPLES], by_count[: ColumnSample.MOST_BESIDE]


def _everything(table: str, columns: Columns, words: SampleWords) -> str:
    """Return all cells, in their one form."""
    cells = [
        f"{words.form(quoted(name), kind)} AS c{i}"
        for i, (name, kind) in enumerate(columns)
        if not _is_nested(kind)
    ]
    return f"SELECT {', '.join(cells) or 'NULL AS c'} FROM {quoted(table)}"  # noqa: S608


def _limit(count: int) -> str | None:
    """Return the hash that enough of so many values are below; None if all have to be taken."""
    share = ColumnSample.MOST_VALUES * _ROOM / max(1, count)
    return None if share >= 1 else f"{int(share * 2**64):016x}"


def _sample(
    table: str,
    columns: Columns,
    of: int,
    beside: Sequence[int],
    limit: str | None,
    words: SampleWords,
) -> str:
    """Sample a column: the values of the lowest hashes, and what is beside them."""
    digest = words.digest.format
    others = [f", {quoted(columns[i][0])} AS x{i}" for i in beside]
    forms = [f", {words.form(f'x{i}', columns[i][1])} AS c{i}" for i in beside]
    lowest = [
        f", {words.lowest.format(f'c{i}', digest(f'{SALT} || c{i}'))} AS c{i}" for i in beside
    ]
    where = "" if limit is None else f" AND h < {text(limit)}"
    own = words.form(quoted(columns[of][0]), columns[of][1])
    named = f"SELECT {own} AS v{''.join(others)} FROM {quoted(table)}"  # noqa: S608
    hashed = f"SELECT left({digest(f'{SALT} || v')}, 16) AS h, * FROM ({named}) AS n"  # noqa: S608
    kept = f"SELECT h, v{''.join(forms)} FROM ({hashed}) AS h WHERE v IS NOT NULL{where}"  # noqa: S608
    found = f"SELECT h, min(v) AS v, count(*) AS n{''.join(lowest)} FROM ({kept}) AS k"  # noqa: S608
    return f"{found} GROUP BY h ORDER BY h LIMIT {ColumnSample.MOST_VALUES}"


def _is_nested(kind: str) -> bool:
    return kind.upper().startswith(_NESTED) or kind.endswith("]")


def _form(name: str, kind: str) -> str:
    """Write a value in its one form, as a text; NULL for none."""
    plain = kind.upper()
    if plain == "FLOAT":  # by its shortest text, as it would be in a text file
        return _number(f"TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE)")
    if plain.removeprefix("U") in _NUMBERS or plain.startswith("DECIMAL"):
        return _number(f"CAST({name} AS DOUBLE)")
    if plain in ZONED:
        in_utc = DUCKDB.functions["from_utc"]
        assert isinstance(in_utc, str)
        return _moment(in_utc.format(name))
    if plain.startswith(_MOMENTS):
        return _moment(f"TRY_CAST({name} AS TIMESTAMP)")
    said = f"nullif(trim(CAST({name} AS VARCHAR)), '')"
    moment = f"CASE WHEN {said} LIKE '____-__-__%' THEN TRY_CAST({said} AS TIMESTAMP) END"
    word = f"CASE WHEN length({said}) > {_LONGEST} THEN sha256({said}) ELSE lower({said}) END"
    number = _number(f"TRY_CAST({said} AS DOUBLE)")
    return (
        f"CASE WHEN isnan(TRY_CAST({said} AS DOUBLE)) THEN NULL "
        f"ELSE coalesce({number}, {_moment(moment)}, {word}) END"
    )


def _moment(moment: str) -> str:
    # Near the ends of what it can store, DuckDB cannot write a timestamp as a text.
    kept = DUCKDB.functions["timestamp_in_range"]
    assert isinstance(kept, str)
    return f"CAST({kept.format(moment)} AS VARCHAR)"


def _number(number: str) -> str:
    # Adding zero makes a plain zero of a negative one.
    return f"CASE WHEN isfinite({number}) THEN CAST({number} + 0e0 AS VARCHAR) END"


_WORDS: Final = SampleWords(
    distinct="approx_count_distinct({0})",
    digest="sha256({0})",
    lowest="arg_min({0}, {1})",
    form=_form,
)
