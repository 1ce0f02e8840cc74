"""DuckDB's words. Guards stand where DuckDB would raise an error, and only there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from discreet.tables.engines.compile.dialect import SALT, Dialect, Hashed, Template
from discreet.tables.engines.compile.portable import portable_hash
from discreet.tables.engines.compile.text import column_list
from discreet.tables.model.scalar import LONGEST_TEXT, Call, Function, Literal, Scalar
from discreet.tables.model.types import SQL_NAMES, Type

__all__ = ["DUCKDB", "PORTABLE"]

_FORMATS: Final = {
    "day": ("%Y-%m-%d", 10), "week": ("%G-W%V", 8), "month": ("%Y-%m", 7), "year": ("%Y", 4),
}  # fmt: skip


def _chain(word: str) -> Template:
    return lambda nodes, texts: f"({f' {word} '.join(texts)})"


def _function(word: str) -> Template:
    return lambda nodes, texts: f"{word}({', '.join(texts)})"


def _divided(sign: str) -> Template:
    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        top, below = texts
        is_safe = isinstance(nodes[1], Literal) and nodes[1].value
        return f"({top} {sign} {below if is_safe else f'nullif({below}, 0e0)'})"

    return written


def _like(word: str) -> Template:
    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        text, pattern, *sign = texts
        return f"({text} {word} {pattern}{''.join(f' ESCAPE {one}' for one in sign)})"

    return written


def _not(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    inner = nodes[0]
    if isinstance(inner, Call) and inner.function == "is_null":
        return texts[0].removesuffix("IS NULL)") + "IS NOT NULL)"
    return f"(NOT {texts[0]})"


def _in(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    return f"({texts[0]} IN ({', '.join(texts[1:])}))"


def _concat(whole: str, length: str) -> Template:
    """Write texts put together, where they are not too long together."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        made = f"({' || '.join(texts)})" if whole == "||" else f"{whole}({', '.join(texts)})"
        known = sum(len(str(n.value)) for n in nodes if isinstance(n, Literal) and n.value)
        pairs = zip(nodes, texts, strict=True)
        lengths = [length.format(text) for n, text in pairs if not isinstance(n, Literal)]
        if not lengths:  # all of them are written out
            return made
        return f"CASE WHEN {' + '.join(lengths)} <= {LONGEST_TEXT - known} THEN {made} END"

    return written


def _replace(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    text, old, new = texts
    made = f"replace({text}, {old}, {new})"
    before, after = (len(str(n.value)) for n in nodes[1:] if isinstance(n, Literal))
    if not 0 < before < after:  # then it does not grow
        return made
    return f"CASE WHEN length({text}) * {after} <= {LONGEST_TEXT * before} THEN {made} END"


def _replace_matches(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    new, flags = (str(node.value) for node in nodes[2:] if isinstance(node, Literal))
    # Between any two characters there may be a match, and each group may be all of the text.
    times = f"length({texts[0]}) + 1" if "g" in flags else "1"
    longest = f"length({texts[0]}) * {1 + new.count(chr(92))} + ({times}) * {len(new)}"
    return f"CASE WHEN {longest} <= {LONGEST_TEXT} THEN regexp_replace({', '.join(texts)}) END"


def _shift(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    steps, unit = (n.value for n in nodes[1:] if isinstance(n, Literal))
    assert isinstance(steps, int)
    sign = "-" if steps < 0 else "+"
    return f"({texts[0]} {sign} INTERVAL {abs(steps)} {str(unit).upper()})"


def _period_label(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    assert isinstance(nodes[1], Literal)
    # Years before 1000 come without leading zeros from some versions: pad to the label's width.
    pattern, width = _FORMATS[str(nodes[1].value)]
    return f"lpad(strftime({texts[0]}, '{pattern}'), {width}, '0')"


_RANGE: Final = "CASE WHEN {{0}} BETWEEN {0} '{1}' AND {0} '{2}' THEN {{0}} END"
_FUNCTIONS: Final[dict[Function, Template]] = {
    "negate": "(-{0})", "abs": "abs({0})",
    "add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})",
    "divide": _divided("/"), "remainder": _divided("%"),
    "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "round": "round({0}, {1})",
    "sign": "CAST(sign({0}) AS DOUBLE)",
    "sqrt": "CASE WHEN {0} >= 0e0 THEN sqrt({0}) END", "exp": "exp({0})",
    "ln": "CASE WHEN {0} > 0e0 THEN ln({0}) END",
    "log2": "CASE WHEN {0} > 0e0 THEN log2({0}) END",
    "log10": "CASE WHEN {0} > 0e0 THEN log10({0}) END",
    "power": "power({0}, {1})",
    **{
        name: f"CASE WHEN isfinite({{0}}) THEN {name}({{0}}) END" for name in ("sin", "cos", "tan")
    },
    "asin": "CASE WHEN {0} BETWEEN -1e0 AND 1e0 THEN asin({0}) END",
    "acos": "CASE WHEN {0} BETWEEN -1e0 AND 1e0 THEN acos({0}) END",
    "atan": "atan({0})", "atan2": "atan2({0}, {1})",
    # LEAST and GREATEST leave NULLs out; a clamped NULL stays one.
    "clamp": "CASE WHEN {0} IS NULL THEN NULL ELSE least(greatest({0}, {1}), {2}) END",
    "least": _function("least"), "greatest": _function("greatest"),
    "coalesce": _function("coalesce"),
    "not_nan": "CASE WHEN isnan({0}) THEN NULL ELSE {0} END",
    "plus_zero": "CASE WHEN {0} = 0e0 THEN 0e0 ELSE {0} END",
    "parse_double": "nullif(TRY_CAST({0} AS DOUBLE), CAST('nan' AS DOUBLE))",
    "equal": "({0} = {1})", "not_equal": "({0} <> {1})", "less": "({0} < {1})",
    "less_equal": "({0} <= {1})", "greater": "({0} > {1})", "greater_equal": "({0} >= {1})",
    "same": "({0} IS NOT DISTINCT FROM {1})", "different": "({0} IS DISTINCT FROM {1})",
    "in": _in, "is_null": "({0} IS NULL)", "not": _not, "and": _chain("AND"), "or": _chain("OR"),
    "lower": "lower({0})", "upper": "upper({0})",
    "initcap": "array_to_string(list_transform(regexp_extract_all({0}, "
    "'[\\p{{L}}\\p{{N}}]+|[^\\p{{L}}\\p{{N}}]+'), "
    "lambda w: upper(left(w, 1)) || lower(substring(w, 2))), '')",
    "trim": _function("trim"), "ltrim": _function("ltrim"), "rtrim": _function("rtrim"),
    "length": "length({0})",
    "substring": _function("substring"), "left": "left({0}, {1})", "right": "right({0}, {1})",
    "concat": _concat("||", "length({0})"),
    "concat_present": _concat("concat", "coalesce(length({0}), 0)"),
    "replace": _replace,
    "starts_with": "starts_with({0}, {1})", "ends_with": "suffix({0}, {1})",
    "contains": "contains({0}, {1})", "like": _like("LIKE"), "ilike": _like("ILIKE"),
    "split_part": "split_part({0}, {1}, {2})", "reverse": "reverse({0})",
    "pad_left": "lpad({0}, {1}, {2})", "pad_right": "rpad({0}, {1}, {2})",
    "position": "instr({0}, {1})", "byte_length": "strlen({0})",
    "from_epoch": "CASE WHEN {0} BETWEEN -62135596800000000 AND 253402300799999000 "
    "THEN make_timestamp(CAST({0} AS BIGINT)) END",
    "format_time": "strftime({0}, {1})", "parse_time": "try_strptime({0}, {1})",
    "matches": "regexp_matches({0}, {1}, {2})",
    "matches_whole": "regexp_full_match({0}, {1}, {2})",
    "match": "regexp_extract({0}, {1}, {2})", "replace_matches": _replace_matches,
    "date_in_range": _RANGE.format("DATE", "0001-01-01", "9999-12-31"),
    "timestamp_in_range": _RANGE.format(
        "TIMESTAMP", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
    ),
    "from_utc": "make_timestamp(epoch_us(CAST({0} AS TIMESTAMPTZ)))",
    "epoch_microseconds": "epoch_us({0})",
    "date_part": "CAST(date_part({0}, {1}) AS BIGINT)",
    "date_trunc": "CAST(date_trunc({0}, {1}) AS TIMESTAMP)",
    "date_diff": "date_diff({0}, {1}, {2})",
    "shift": _shift,
    "to_zone": "timezone({1}, timezone('UTC', {0}))",
    "from_zone": "timezone('UTC', timezone({1}, {0}))",
    "period_label": _period_label, "tagged": "concat({0}, '|', {1})",
}  # fmt: skip


def _cast(text: str, given: str, wanted: Type, widens: bool) -> str:
    return f"{'CAST' if widens else 'TRY_CAST'}({text} AS {SQL_NAMES[wanted]})"


def _hash(columns: Sequence[Hashed]) -> str:
    # The lowest of doubles are found much faster than those of DuckDB's UBIGINT; 53 bits do.
    # The hash of several columns is a mere XOR of theirs: hashed once more, it is a fair rank.
    return f"CAST(HASH(HASH({SALT}, {column_list(one.text for one in columns)})) AS DOUBLE)"


def _lowest(expression: str, rank: int) -> str:
    return f"MIN({expression}, {rank})[{rank}]"


DUCKDB: Final = Dialect(
    types=SQL_NAMES,
    functions=_FUNCTIONS,
    wide="HUGEINT",
    hash=_hash,
    lowest=_lowest,
    cast=_cast,
)
PORTABLE: Final = replace(
    DUCKDB,
    hash=portable_hash(_FUNCTIONS, "CAST(CAST('0x' || LEFT(SHA256({0}), 13) AS BIGINT) AS DOUBLE)"),
)
