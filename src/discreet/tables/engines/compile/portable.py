"""Ranks that are the same on every engine, so that bounded aggregates are, to the last integer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import SALT, Hashed, Template
from discreet.tables.engines.compile.text import text
from discreet.tables.model.scalar import ColumnRef, Function

__all__ = ["portable_hash"]

_PLAIN: Final = ("int", "uint", "boolean", "date", "DECIMAL", "NUMERIC")  # texts that tell lengths
_LARGEST: Final = "4611686018427387904e0"  # 2**62
_FRACTION: Final = "4503599627370496e0"  # 2**52
_STEP: Final = "4096e0"  # 64 bits less the 52 that are kept


def portable_hash(
    functions: Mapping[Function, Template], digest: str
) -> Callable[[Sequence[Hashed]], str]:
    """Return how an engine writes the portable rank: the first 52 bits of SHA-256, times 2**12.

    What is digested is the salt and, for each value, a bar and the value as a text: ``-`` for NULL;
    digits of whole numbers and decimals, ``true`` and ``false``, dates as ``2026-01-31``,
    timestamps as microseconds since 1970; texts after their number of bytes and a colon. A double x
    is written as floor(x) and floor((x - floor(x)) 2**52), with a dot between; those of 2**62 and
    more in size as ``x``. So different values have different texts, but for doubles that are huge
    or closer than 2**-52: these share a rank, which costs rows and no privacy.

    ``functions`` are the engine's words, and ``digest`` its template for 13 hexadecimal digits of a
    text's digest as a double.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> rank = portable_hash(DUCKDB.functions, "DIGEST({0})")
    >>> rank([Hashed("unit", "int64")])
    "DIGEST($salt || '|' || COALESCE(CAST(unit AS VARCHAR), '-')) * 4096e0"
    """

    def written(columns: Sequence[Hashed]) -> str:
        parts = [f"COALESCE({_written(one, functions)}, '-')" for one in columns]
        whole = " || '|' || ".join([SALT, *parts])
        return f"{digest.format(whole)} * {_STEP}"

    return written


def _written(value: Hashed, functions: Mapping[Function, Template]) -> str:
    """Write a value as a text, NULL where it is NULL."""
    x = value.text
    if value.type.startswith(_PLAIN):
        return _said(x)
    if value.type == "timestamp":
        return _said(_called(functions, "epoch_microseconds", x))
    if value.type == "double":
        fraction = _said(_whole(f"FLOOR(({x} - FLOOR({x})) * {_FRACTION})"))
        exact = f"{_said(_whole(f'FLOOR({x})'))} || '.' || {fraction}"
        return (
            f"CASE WHEN {x} IS NULL THEN NULL WHEN {x} > -{_LARGEST} AND {x} < {_LARGEST} "
            f"THEN {exact} ELSE {text('x')} END"
        )
    said = _said(x)
    return f"{_said(_called(functions, 'byte_length', said))} || ':' || {said}"


def _called(functions: Mapping[Function, Template], function: Function, argument: str) -> str:
    template = functions[function]
    if isinstance(template, str):
        return template.format(argument)
    return template((ColumnRef(argument),), (argument,))


def _said(expression: str) -> str:
    return f"CAST({expression} AS VARCHAR)"


def _whole(expression: str) -> str:
    return f"CAST({expression} AS BIGINT)"
