"""Samples of a table by keyed hashes: those that DuckDB takes of a copy, in PostgreSQL's words."""

from typing import Final

from discreet.tables.engines.duckdb.sampling import SampleWords
from discreet.tables.engines.postgres.words.bound import inside
from discreet.tables.engines.postgres.words.casts import cast
from discreet.tables.engines.postgres.words.numbers import INFINITY
from discreet.tables.engines.postgres.words.texts import LETTERS
from discreet.tables.model.types import ZONED

__all__ = ["WORDS"]

_DIGEST: Final = "(encode(sha256(convert_to({0}, 'UTF8')), 'hex') COLLATE \"C\")"
_NUMBERS: Final = ("SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT")
_LONGEST: Final = 64
_RANGE: Final = "BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
_MOMENT: Final = f"CASE WHEN {{0}} {_RANGE} THEN CAST({{0}} AS text) END"
_TEXT: Final = (
    f"CASE WHEN length({{0}}) > {_LONGEST} THEN {_DIGEST} "
    f'ELSE lower({{0}} COLLATE {LETTERS}) COLLATE "C" END'
)


def _number(number: str) -> str:
    # Adding zero makes a plain zero of a negative one.
    shown = cast("v.a0", "double", "text", True)
    guarded = f"CASE WHEN abs(v.a0) < {INFINITY} THEN {shown} END"
    return f"(SELECT {guarded} FROM (SELECT {number} + 0e0 AS a0 OFFSET 0) AS v)"  # noqa: S608


def _form(name: str, kind: str) -> str:
    """Write a value in its one form, as a text; NULL for none."""
    plain = kind.upper()
    if plain == "FLOAT":  # by its shortest text, as it would be in a text file
        return _number(cast(f"CAST({name} AS text)", "text", "double", False))
    if plain in _NUMBERS:
        return _number(f"CAST({name} AS float8)")
    if plain.startswith("DECIMAL"):
        return _number(cast(name, "DECIMAL", "double", False))
    if plain in ZONED:
        return inside(_MOMENT, [f"timezone('UTC', {name})"], [False])
    if plain == "TIMESTAMP":
        return _MOMENT.format(name)
    if plain == "DATE":
        return inside(_MOMENT, [cast(name, "date", "timestamp", False)], [False])
    said = "v.a0"
    moment = inside(_MOMENT, [cast(said, "text", "timestamp", False)], [False])
    number = cast(said, "text", "double", False)
    is_nan = f"{said} ~* '^[+-]?nan$'"
    shown = (
        f"CASE WHEN length({said}) <= {_LONGEST} AND {is_nan} THEN NULL ELSE coalesce("
        f"{_number(number)}, "
        f"CASE WHEN {said} LIKE '____-__-__%' THEN {moment} END, {_TEXT.format(said)}) END"
    )
    text = f"nullif(btrim(CAST({name} AS text)), '')"
    return f"(SELECT {shown} FROM (SELECT {text} AS a0 OFFSET 0) AS v)"  # noqa: S608


WORDS: Final = SampleWords(
    distinct="count(DISTINCT {0})",
    digest=_DIGEST,
    lowest="(array_agg({0} ORDER BY {1}) FILTER (WHERE {0} IS NOT NULL))[1]",
    form=_form,
)
