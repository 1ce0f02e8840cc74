"""PostgreSQL's words. Guards stand where PostgreSQL would raise an error, and only there."""

from collections.abc import Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import Dialect, Template
from discreet.tables.engines.compile.portable import portable_hash
from discreet.tables.engines.postgres.words import moments, numbers, patterns, texts
from discreet.tables.engines.postgres.words.bound import bound
from discreet.tables.engines.postgres.words.casts import PARSE, TYPES, cast
from discreet.tables.engines.postgres.words.parsing import parse_time
from discreet.tables.model.scalar import ColumnRef, Function, Scalar

__all__ = ["POSTGRES"]

# Arrays are equal where both have NULL, and unlike IS NOT DISTINCT FROM a join can look them up.
_SAME: Final = "ARRAY[{0}] = ARRAY[{1}]"


def _same(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    one, other = texts
    if not all(isinstance(node, ColumnRef) for node in nodes):
        return f"({one} IS NOT DISTINCT FROM {other})"
    # Each is converted to the type that both have in common, and the other is left out again.
    typed = [f"CASE WHEN TRUE THEN {x} ELSE {y} END" for x, y in ((one, other), (other, one))]
    return f"({_SAME.format(*typed)})"


_FUNCTIONS: Final[dict[Function, Template]] = {
    **numbers.FUNCTIONS,
    **texts.FUNCTIONS,
    **moments.FUNCTIONS,
    "same": _same,
    "parse_double": bound(PARSE.replace("{0}", "CAST({0} AS text)")),
    "parse_time": parse_time,
    "replace_matches": patterns.replacing,
}
_DIGEST: Final = (
    "CAST(CAST(CAST('x' || left(encode(sha256(convert_to({0}, 'UTF8')), 'hex'), 13) AS bit(52)) "
    "AS bigint) AS float8)"
)


def _lowest(expression: str, rank: int) -> str:
    return f"(array_agg({expression} ORDER BY {expression}))[{rank}]"


POSTGRES: Final = Dialect(
    types=TYPES,
    functions=_FUNCTIONS,
    wide="numeric",
    hash=portable_hash(_FUNCTIONS, _DIGEST),
    lowest=_lowest,
    cast=cast,
    is_nan=f"{{0}} = {numbers.NAN}",
    same=_SAME,
    ratio=numbers.ratio,
    half=numbers.half,
    same_present="{0} = {1}",
    windows=True,
    qualifies=False,
)
