"""Spark's words, for a session with the settings of ``session``: total whatever the values."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from discreet.tables.engines.compile.dialect import SALT, Dialect, Hashed, Template
from discreet.tables.engines.compile.portable import portable_hash
from discreet.tables.engines.compile.text import column_list, number
from discreet.tables.engines.spark import patterns, templates
from discreet.tables.engines.spark.moments import MOMENTS
from discreet.tables.model.scalar import Function
from discreet.tables.model.types import Type

__all__ = ["PORTABLE", "SPARK"]

_TYPES: Final[dict[Type, str]] = {
    "boolean": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT",
    "int64": "BIGINT", "uint8": "SMALLINT", "uint16": "INT", "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)", "int128": "DECIMAL(38,0)", "double": "DOUBLE", "text": "STRING",
    "date": "DATE", "timestamp": "TIMESTAMP_NTZ",
}  # fmt: skip
_UNSIGNED: Final = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
_FINITE: Final = "abs({0}) <= 1.7976931348623157e308"
_LARGE: Final = "4503599627370496e0"  # 2**52: doubles as large are whole


def _whole(word: str) -> str:
    """Write what makes a whole number; Spark's own words for it make a BIGINT."""
    return f"CASE WHEN abs({{0}}) < {_LARGE} THEN CAST({word} AS DOUBLE) ELSE {{0}} END"


_FUNCTIONS: Final[dict[Function, Template]] = {
    "negate": "(-{0})", "abs": "abs({0})",
    "add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})",
    "divide": templates.divided("/"), "remainder": templates.divided("%"),
    "floor": _whole("FLOOR({0})"), "ceil": _whole("CEIL({0})"), "trunc": _whole("BIGINT({0})"),
    "round": templates.rounded, "sign": "sign({0})",
    "sqrt": "CASE WHEN {0} >= 0e0 THEN sqrt({0}) END", "exp": "exp({0})",
    "ln": "CASE WHEN {0} > 0e0 THEN ln({0}) END",
    "log2": "CASE WHEN {0} > 0e0 THEN log2({0}) END",
    "log10": "CASE WHEN {0} > 0e0 THEN log10({0}) END",
    "power": "power({0}, {1})",
    "sin": f"CASE WHEN {_FINITE} THEN sin({{0}}) END",
    "cos": f"CASE WHEN {_FINITE} THEN cos({{0}}) END",
    "tan": f"CASE WHEN {_FINITE} THEN tan({{0}}) END",
    "asin": "CASE WHEN {0} BETWEEN -1e0 AND 1e0 THEN asin({0}) END",
    "acos": "CASE WHEN {0} BETWEEN -1e0 AND 1e0 THEN acos({0}) END",
    "atan": "atan({0})", "atan2": "atan2({0}, {1})",
    "clamp": "CASE WHEN {0} IS NULL THEN NULL ELSE least(greatest({0}, {1}), {2}) END",
    "least": templates.one_of("least"), "greatest": templates.one_of("greatest"),
    "coalesce": templates.function("coalesce"),
    "not_nan": "nullif({0}, CAST('NaN' AS DOUBLE))",  # to which it is equal here
    "plus_zero": "CASE WHEN {0} = 0e0 THEN 0e0 ELSE {0} END",
    "parse_double": "nullif(try_cast({0} AS DOUBLE), CAST('NaN' AS DOUBLE))",
    "equal": "({0} = {1})", "not_equal": "({0} <> {1})", "less": "({0} < {1})",
    "less_equal": "({0} <= {1})", "greater": "({0} > {1})", "greater_equal": "({0} >= {1})",
    "same": "({0} <=> {1})", "different": "(NOT ({0} <=> {1}))",
    "in": templates.in_list, "is_null": "({0} IS NULL)", "not": templates.negated,
    "and": templates.chain("AND"), "or": templates.chain("OR"),
    "lower": "lower({0})", "upper": "upper({0})",
    "initcap": "array_join(transform(regexp_extract_all({0}, "
    "'[\\p{{L}}\\p{{N}}]++|[^\\p{{L}}\\p{{N}}]++', 0), "
    "w -> concat(upper(left(w, 1)), lower(substring(w, 2)))), '')",
    "trim": templates.trimmed("BOTH"), "ltrim": templates.trimmed("LEADING"),
    "rtrim": templates.trimmed("TRAILING"), "length": templates.length("length({0})"),
    "substring": templates.part, "left": templates.left, "right": templates.right,
    "concat": templates.concat("concat(", "length({0})"),
    "concat_present": templates.concat("concat_ws('', ", "coalesce(length({0}), 0)"),
    "replace": templates.replace, "starts_with": "startswith({0}, {1})",
    "ends_with": "endswith({0}, {1})", "contains": "contains({0}, {1})",
    "like": patterns.like, "ilike": patterns.ilike,
    "split_part": "split_part({0}, {1}, {2})", "reverse": "reverse({0})",
    "pad_left": "lpad({0}, {1}, {2})", "pad_right": "rpad({0}, {1}, {2})",
    "position": templates.length("instr({0}, {1})"),
    "byte_length": templates.length("octet_length({0})"),
    "matches": patterns.matches(whole=False), "matches_whole": patterns.matches(whole=True),
    "match": patterns.match, "replace_matches": patterns.replace_matches,
    "tagged": "concat({0}, '|', coalesce({1}, ''))",
    **MOMENTS,
}  # fmt: skip


def _cast(text: str, given: str, wanted: Type, widens: bool) -> str:
    name = _TYPES[wanted]
    if widens or given in ("null", "boolean"):
        return f"CAST({text} AS {name})"
    if wanted in _UNSIGNED or wanted.startswith("int"):
        parsed = f"try_cast({text} AS DOUBLE)" if given == "text" else text
        is_exact = given.startswith(("int", "uint"))
        whole = parsed if is_exact else f"rint({parsed})"
        if wanted in _UNSIGNED:
            most = (1 << _UNSIGNED[wanted]) - 1
            end = str(most) if is_exact else number(most)
            low = f"CASE WHEN {whole} BETWEEN {'0' if is_exact else '0e0'} AND {end} THEN "
            return f"{low}try_cast({whole} AS {name}) END"
        return f"try_cast({whole} AS {name})"
    if wanted == "boolean" and given != "text":
        return f"({text} <> 0)"
    if wanted == "text" and given == "double":
        plain = f"concat(CAST(CAST({text} AS BIGINT) AS STRING), '.0')"
        is_plain = f"abs({text}) < 1e15 AND {text} = rint({text})"
        return f"CASE WHEN {is_plain} THEN {plain} ELSE CAST({text} AS STRING) END"
    return f"try_cast({text} AS {name})"


def _hash(columns: Sequence[Hashed]) -> str:
    # NULLs are passed over, so some values share a rank: that costs rows and no privacy.
    rank = f"xxhash64({SALT}, {column_list(one.text for one in columns)})"
    return f"CAST(shiftrightunsigned({rank}, 11) AS DOUBLE) * 2048e0"


def _lowest(expression: str, rank: int) -> str:
    return f"get(array_sort(collect_list({expression})), {rank - 1})"


SPARK: Final = Dialect(
    types=_TYPES,
    functions=_FUNCTIONS,
    wide="DECIMAL(38,0)",
    hash=_hash,
    lowest=_lowest,
    cast=_cast,
    long="DECIMAL(20,0)",
    windows=True,
    qualifies=False,
    gathered="\nDISTRIBUTE BY {}",
)
PORTABLE: Final = replace(
    SPARK,
    hash=portable_hash(_FUNCTIONS, "CAST(CONV(LEFT(SHA2({0}, 256), 13), 16, 10) AS DOUBLE)"),
)
