"""Conversions that are NULL where a value does not fit, of a database whose own ones raise errors.

Whether a text is a number or a moment is decided by a pattern before it is converted, and whether
a number fits by comparing it.
"""

from typing import Final

from discreet.tables.engines.compile.text import number
from discreet.tables.engines.postgres.words.bound import inside
from discreet.tables.engines.postgres.words.numbers import INFINITY, NAN
from discreet.tables.model.types import Type

__all__ = ["PARSE", "TYPES", "cast", "made_moment"]

TYPES: Final[dict[Type, str]] = {
    "boolean": "boolean",
    "int8": "smallint", "int16": "smallint", "int32": "integer", "int64": "bigint",
    "uint8": "smallint", "uint16": "integer", "uint32": "bigint", "uint64": "numeric",
    "int128": "numeric",
    "double": "float8", "text": "text", "date": "date", "timestamp": "timestamp",
}  # fmt: skip
_ENDS: Final[dict[str, tuple[int, int]]] = {
    **{f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64, 128)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}
_NUMERIC: Final = (*_ENDS, "DECIMAL", "NUMERIC", "UHUGEINT", "BIGNUM")

_BLANKS: Final = "[ \\t\\n\\r\\f\\v]*"
_NUMBER: Final = (
    f"'^{_BLANKS}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{{{{1,4}}}})?{_BLANKS}$'"
)
_INFINITE: Final = f"'^{_BLANKS}[+]?inf(inity)?{_BLANKS}$'"
_MINUS: Final = f"'^{_BLANKS}-inf(inity)?{_BLANKS}$'"
# Half a step beyond the largest double, and half of the smallest.
_TOP: Final = "numeric '1.797693134862315807937e308'"
_BOTTOM: Final = "numeric '2.4703282292062328e-324'"


def _from_numeric(x: str) -> str:
    """Return the double nearest to a numeric, which may be NaN, infinite, or beyond doubles."""
    return (
        f"CASE WHEN {x} = numeric 'NaN' THEN {NAN} WHEN {x} >= {_TOP} THEN {INFINITY} "
        f"WHEN {x} <= -{_TOP} THEN -{INFINITY} "
        f"WHEN abs({x}) <= {_BOTTOM} THEN 0e0 ELSE CAST({x} AS float8) END"
    )


PARSE: Final = (
    "CASE WHEN length({0}) <= 400 THEN CASE "
    f"WHEN {{0}} ~ {_NUMBER} THEN {_from_numeric('CAST({0} AS numeric)')} "
    f"WHEN {{0}} ~* {_INFINITE} THEN {INFINITY} WHEN {{0}} ~* {_MINUS} THEN -{INFINITY} END END"
)

_BOOLEAN: Final = (
    "CASE WHEN length({0}) <= 5 THEN CASE WHEN {0} ~* '^(true|t|yes|y|1)$' THEN TRUE "
    "WHEN {0} ~* '^(false|f|no|n|0)$' THEN FALSE END END"
)


def made_moment(year: str, month: str, day: str, clock: str = "") -> str:
    """Return a timestamp of whole numbers in texts, NULL where there is no such day.

    ``clock`` is an interval that is added. Months and days are compared before they are used.
    """
    days = (
        f"CASE WHEN {month} IN ('02', '2') THEN CASE WHEN mod(CAST({year} AS integer), 4) = 0 "
        f"AND (mod(CAST({year} AS integer), 100) <> 0 OR mod(CAST({year} AS integer), 400) = 0) "
        f"THEN 29 ELSE 28 END WHEN CAST({month} AS integer) IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    )
    made = f"make_date(CAST({year} AS integer), CAST({month} AS integer), CAST({day} AS integer))"
    return (
        f"CASE WHEN CAST({year} AS integer) BETWEEN 1 AND 9999 "
        f"AND CAST({month} AS integer) BETWEEN 1 AND 12 THEN "
        f"CASE WHEN CAST({day} AS integer) BETWEEN 1 AND {days} "
        f"THEN CAST({made} AS timestamp){clock} END END"
    )


_DAY: Final = "^[ ]*([0-9]{1,4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})"
_CLOCK: Final = "([ T]+([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})([.][0-9]{1,9})?)?)?"
_AS_DATE: Final = f"'{_DAY}{_CLOCK}[ ]*(Z|[+-][0-9:]{{1,6}})?[ ]*$'"
_AS_TIME: Final = f"'{_DAY}{_CLOCK}(Z|[+-]0{{1,2}}(:?00)?)?[ ]*$'"


def _read(pattern: str, made: str) -> str:
    """Return a template of what is made of the parts m.p of a text, NULL where it does not fit."""
    found = f"(SELECT {made} FROM (SELECT regexp_match(?, {pattern}) AS p OFFSET 0) AS m)"  # noqa: S608
    template = found.replace("{", "{{").replace("}", "}}").replace("(?,", "({0},")
    return f"CASE WHEN length({{0}}) <= 100 THEN {template} END"


def _to_date() -> str:
    made = made_moment("m.p[1]", "m.p[2]", "m.p[3]")
    return _read(_AS_DATE, f"CAST({made} AS date)")


def _to_timestamp() -> str:
    seconds = "(COALESCE(m.p[8], '0') || rpad(substr(COALESCE(m.p[9], '.0'), 1, 7), 7, '0'))"
    clock = (
        " + CAST(COALESCE(m.p[5], '0') AS integer) * INTERVAL '1 hour' "
        "+ CAST(COALESCE(m.p[6], '0') AS integer) * INTERVAL '1 minute' "
        f"+ CAST(replace({seconds}, '.', '') AS integer) * INTERVAL '1 microsecond'"
    )
    made = made_moment("m.p[1]", "m.p[2]", "m.p[3]", clock)
    fits = (
        "COALESCE(m.p[5], '0')::integer <= 23 AND COALESCE(m.p[6], '0')::integer <= 59 "
        "AND COALESCE(m.p[8], '0')::integer <= 59"
    )
    return _read(_AS_TIME, f"CASE WHEN {fits} THEN {made} END")


def _fits(wanted: Type, given: str) -> str:
    """Return a template of a number in a type of whole numbers, NULL where it does not fit."""
    low, high = _ENDS[wanted]
    if given in _ENDS:
        return f"CASE WHEN {{0}} BETWEEN {low} AND {high} THEN CAST({{0}} AS {TYPES[wanted]}) END"
    # The least is a power of two, or 0, and so is what follows on the greatest: doubles both.
    return (
        f"CASE WHEN rint({{0}}) >= {number(low)} AND rint({{0}}) < {number(high + 1)} "
        f"THEN CAST({{0}} AS {TYPES[wanted]}) END"
    ).replace("rint", "round")


def _template(given: str, wanted: Type, *, widens: bool) -> str:
    plain = f"CAST({{0}} AS {TYPES[wanted]})"
    if given == wanted or given == "null":
        return plain
    if given == "boolean" and wanted not in ("text", "boolean"):
        return f"CASE WHEN {{0}} THEN CAST(1 AS {TYPES[wanted]}) " \
               f"WHEN NOT {{0}} THEN CAST(0 AS {TYPES[wanted]}) END"  # fmt: skip
    is_text = given == "text" or given.startswith(("VARCHAR", "UUID", "ENUM"))
    is_wide = given.startswith(_NUMERIC) and given not in _ENDS
    if wanted == "double":
        if is_text:
            return PARSE
        return _from_numeric("{0}") if is_wide or given == "int128" else plain
    if wanted in _ENDS:
        if widens:
            return plain
        if is_text:
            return _fits(wanted, "double").replace("{0}", f"({PARSE})")
        if is_wide:
            return _fits(wanted, "double").replace("{0}", f"({_from_numeric('{0}')})")
        return _fits(wanted, given)
    if wanted == "boolean":
        return _BOOLEAN if is_text else "({0} <> 0)"
    if wanted == "text":
        return _SHOWN.get(given, plain)
    if wanted == "date":
        return _to_date() if is_text else plain
    if wanted == "timestamp":
        if is_text:
            return _to_timestamp()
        if given == "date":
            return (
                "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' "
                "THEN CAST({0} AS timestamp) END"
            )
    return plain


# Doubles and timestamps as all engines write them.
_SHOWN: Final = {
    "double": (
        f"CASE WHEN {{0}} = {NAN} THEN 'nan' WHEN {{0}} = {INFINITY} THEN 'inf' "
        f"WHEN {{0}} = -{INFINITY} THEN '-inf' "
        "WHEN {0} = trunc({0}) AND abs({0}) < 1e16 THEN CASE WHEN {0} = 0e0 AND "
        "CAST({0} AS text) = '-0' THEN '-0.0' "
        "ELSE CAST(CAST({0} AS bigint) AS text) || '.0' END "
        "WHEN abs({0}) BETWEEN 1e15 AND 1e16 THEN CAST(CAST(CAST({0} AS text) AS numeric) AS text) "
        "ELSE CAST({0} AS text) END"
    ),
}


def cast(text: str, given: str, wanted: Type, widens: bool) -> str:
    """Write an expression in another type: see ``Dialect``.

    >>> cast("x", "int32", "double", True), cast("x", "int64", "int8", False)
    ('CAST(x AS float8)', 'CASE WHEN x BETWEEN -128 AND 127 THEN CAST(x AS smallint) END')
    """
    template = _template(given, wanted, widens=widens)
    if template.count("{0}") == 1 or _is_name(text):
        return template.format(text)
    return inside(template, [text], [False])


def _is_name(text: str) -> bool:
    return text.replace(".", "").replace('"', "").replace("_", "").isalnum() or "(" not in text
