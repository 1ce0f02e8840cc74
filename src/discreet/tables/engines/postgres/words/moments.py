"""Dates and timestamps: parts, steps, labels and formats."""

from collections.abc import Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import Template
from discreet.tables.engines.compile.text import text
from discreet.tables.engines.postgres.words.bound import bound, once
from discreet.tables.model.scalar import Function, Literal, Scalar

__all__ = ["FORMATS", "FUNCTIONS"]

_YEARS: Final = 4000  # more would lead from the year 1 to before the first that there is
_LABELS: Final = {"day": "YYYY-MM-DD", "week": 'IYYY"-W"IW', "month": "YYYY-MM", "year": "YYYY"}
_FIELDS: Final = {"dayofyear": "doy"}
_STAMP: Final = "CAST({0} AS timestamp)"

# What C calls the parts of a moment, in PostgreSQL's words; other parts are not written here.
FORMATS: Final = {
    "a": "Dy", "A": "FMDay", "b": "Mon", "B": "FMMonth", "d": "DD", "j": "DDD", "m": "MM",
    "y": "YY", "Y": "YYYY", "G": "IYYY", "H": "HH24", "I": "HH12", "M": "MI", "S": "SS",
    "f": "US", "p": "AM", "u": "ID", "V": "IW",
    "-d": "FMDD", "-m": "FMMM", "-H": "FMHH24", "-I": "FMHH12", "-M": "FMMI", "-S": "FMSS",
    "-j": "FMDDD",
}  # fmt: skip


def _written(node: Scalar) -> str:
    assert isinstance(node, Literal)
    return str(node.value)


def pieces(format_: str) -> list[tuple[str, bool]]:
    """Take a format of C apart: names of parts, and what stands between them.

    >>> pieces("%d.%-m %%")
    [('d', True), ('.', False), ('-m', True), (' ', False), ('%', False)]
    """
    found: list[tuple[str, bool]] = []
    place = 0
    while place < len(format_):
        sign = format_[place]
        if sign != "%":
            found.append((sign, False))
            place += 1
            continue
        name = format_[place + 1 : place + 3] if format_[place + 1 : place + 2] == "-" else ""
        name = name or format_[place + 1 : place + 2]
        found.append(("%", False) if name == "%" else (name, True))
        place += 1 + len(name)
    return found


def _format_time(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    parts = []
    for name, is_part in pieces(_written(nodes[1])):
        word = f"to_char({{0}}, {text(FORMATS[name])})" if is_part else text(name)
        parts.append(word if is_part else word.replace("{", "{{").replace("}", "}}"))
    whole = " || ".join(parts) or "''"
    return once(f"CASE WHEN {{0}} IS NOT NULL THEN {whole} END", nodes[:1], texts[:1])


def _shift(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    steps, unit = nodes[1], _written(nodes[2])
    assert isinstance(steps, Literal)
    assert isinstance(steps.value, int)
    count = steps.value
    moved = f"({{0}} + INTERVAL '{3 * count if unit == 'quarter' else count} " \
            f"{'month' if unit == 'quarter' else unit}')"  # fmt: skip
    if unit != "year" or count >= -_YEARS:
        return moved.format(texts[0])
    first = f"TIMESTAMP '{-count - _YEARS:04}-01-01 00:00:00'"
    return once(f"CASE WHEN {{0}} >= {first} THEN {moved} END", nodes[:1], texts[:1])


def _date_part(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    part = _written(nodes[0])
    found = f"date_part('{_FIELDS.get(part, part)}', {texts[1]})"
    return f"CAST({f'floor({found})' if part == 'second' else found} AS bigint)"


def _date_trunc(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    return f"date_trunc('{_written(nodes[0])}', CAST({texts[1]} AS timestamp))"


_YEAR: Final = "date_part('year', {0})"
_COUNTS: Final = {
    "year": _YEAR,
    "quarter": f"({_YEAR} * 4 + date_part('quarter', {{0}}))",
    "month": f"({_YEAR} * 12 + date_part('month', {{0}}))",
}
_LENGTHS: Final = {"hour": 3_600, "minute": 60, "second": 1}


def _date_diff(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Count the ends of a unit between two moments, by numbering the unit's spans."""
    unit = _written(nodes[0])
    if unit in _COUNTS:
        one = _COUNTS[unit]
        other, one = one.replace("{0}", "{1}"), one
        pattern = f"CAST({other} - {one} AS bigint)"
    elif unit in ("day", "week"):
        # Weeks are counted as DuckDB counts them: whole ones from day to day.
        by = " / 7" if unit == "week" else ""
        pattern = f"CAST((CAST({{1}} AS date) - CAST({{0}} AS date)){by} AS bigint)"
    else:
        cut = f"floor(date_part('epoch', CAST({{0}} AS timestamp)) / {_LENGTHS[unit]}e0)"
        cut = cut.replace("CAST({0} AS timestamp)", f"date_trunc('{unit}', {_STAMP})")
        pattern = f"CAST({cut.replace('{0}', '{1}')} - {cut} AS bigint)"
    return once(pattern, nodes[1:], texts[1:])


def _period_label(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    return f"to_char({texts[0]}, '{_LABELS[_written(nodes[1])]}')"


def _within(type_: str, low: str, high: str) -> Template:
    return bound(f"CASE WHEN {{0}} BETWEEN {type_} '{low}' AND {type_} '{high}' THEN {{0}} END")


def _epoch(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    # Infinite ones are different units; moments beyond 64 bits, of the year 294247, are none.
    return once(
        "CASE WHEN NOT isfinite({0}) THEN CASE WHEN {0} > DATE '2000-01-01' "
        "THEN 9223372036854775807 ELSE -9223372036854775807 END "
        "WHEN {0} < DATE '294247-01-01' "
        "THEN CAST(extract(epoch FROM {0}) * 1000000 AS bigint) END",
        nodes, texts,
    )  # fmt: skip


FUNCTIONS: Final[dict[Function, Template]] = {
    "date_in_range": _within("DATE", "0001-01-01", "9999-12-31"),
    "timestamp_in_range": _within(
        "TIMESTAMP", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
    ),
    "from_utc": "timezone('UTC', {0})",
    "epoch_microseconds": _epoch,
    "from_epoch": bound(
        "CASE WHEN {0} BETWEEN -62135596800000000 AND 253402300799999000 THEN "
        "CAST(DATE '1970-01-01' + CAST(floor(round({0}) / 86400000000e0) AS integer) AS timestamp) "
        "+ (round({0}) - floor(round({0}) / 86400000000e0) * 86400000000e0) "
        "* INTERVAL '1 microsecond' END"
    ),
    "format_time": _format_time,
    "date_part": _date_part, "date_trunc": _date_trunc, "date_diff": _date_diff, "shift": _shift,
    "to_zone": "timezone({1}, timezone('UTC', {0}))",
    "from_zone": "timezone('UTC', timezone({1}, {0}))",
    "period_label": _period_label,
}  # fmt: skip
