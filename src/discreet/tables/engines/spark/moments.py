"""Dates and timestamps in Spark's words. A session of ours runs in UTC, see ``session``."""

import re
from collections.abc import Sequence
from typing import Final
from zoneinfo import available_timezones

from discreet.tables.engines.compile.dialect import Lacking, Template
from discreet.tables.engines.compile.text import text
from discreet.tables.model.scalar import Function, Literal, Scalar

__all__ = ["MOMENTS"]

_LOCAL: Final = "CAST({} AS TIMESTAMP_NTZ)"
_INSTANT: Final = "CAST({} AS TIMESTAMP_LTZ)"
_STEPS: Final = {
    "year": ("MONTH", 12), "quarter": ("MONTH", 3), "month": ("MONTH", 1), "week": ("DAY", 7),
    "day": ("DAY", 1), "hour": ("HOUR", 1), "minute": ("MINUTE", 1), "second": ("SECOND", 1),
}  # fmt: skip
_PARTS: Final = {
    "year": "year({0})", "quarter": "quarter({0})", "month": "month({0})",
    "week": "weekofyear({0})", "day": "dayofmonth({0})", "dayofyear": "dayofyear({0})",
    "dow": "(dayofweek({0}) - 1)", "isodow": "(weekday({0}) + 1)", "hour": "hour({0})",
    "minute": "minute({0})", "second": "second({0})", "isoyear": "extract(YEAROFWEEK FROM {0})",
}  # fmt: skip
_ENDS: Final = {"week": 7, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_LABELS: Final = {"day": "yyyy-MM-dd", "month": "yyyy-MM", "year": "yyyy"}
# What C calls the parts of a moment, in the letters of Java; what has none, as an expression.
_LETTERS: Final = {
    "%a": "EEE", "%A": "EEEE", "%b": "MMM", "%B": "MMMM", "%d": "dd", "%j": "DDD", "%m": "MM",
    "%y": "yy", "%Y": "yyyy", "%H": "HH", "%I": "hh", "%M": "mm", "%S": "ss", "%f": "SSSSSS",
    "%p": "a", "%-d": "d", "%-m": "M", "%-H": "H", "%-I": "h", "%-M": "m", "%-S": "s", "%-j": "D",
}  # fmt: skip
_MADE: Final = {
    "%G": "lpad(extract(YEAROFWEEK FROM {0}), 4, '0')", "%V": "lpad(weekofyear({0}), 2, '0')",
    "%u": "CAST(weekday({0}) + 1 AS STRING)", "%w": "CAST(dayofweek({0}) - 1 AS STRING)",
    "%U": "lpad((dayofyear({0}) + 7 - dayofweek({0})) div 7, 2, '0')",
    "%W": "lpad((dayofyear({0}) + 6 - weekday({0})) div 7, 2, '0')",
    "%-y": "CAST(year({0}) % 100 AS STRING)",
}  # fmt: skip
_WIDTHS: Final = {"%Y": "{4}", "%y": "{2}", "%j": "{1,3}", "%-j": "{1,3}", "%f": "{1,6}"}
_NAMED: Final = ("%a", "%A", "%b", "%B", "%p")
_READ: Final = {"%d": "d", "%m": "M", "%H": "H", "%M": "m", "%S": "s", "%I": "h"}


def _value(node: Scalar) -> str:
    assert isinstance(node, Literal)
    return str(node.value)


def _parts(format_: str) -> list[str]:
    """Split a format of C into its parts and the signs between."""
    found, place = list[str](), 0
    while place < len(format_):
        size = 1
        if format_[place] == "%":
            size = 3 if format_[place + 1 : place + 2] == "-" else 2
        found.append(format_[place : place + size])
        place += size
    return found


def _plain(sign: str) -> str:
    """Write signs that mean themselves in a pattern of Java."""
    sign = "%" if sign == "%%" else sign
    return "''" if sign == "'" else f"'{sign}'"


def _format(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    pieces, pattern = list[str](), ""
    for one in [*_parts(_value(nodes[1])), None]:
        if one in _LETTERS or (one is not None and one not in _MADE):
            # One pattern has one run of each letter at most, or it would mean something else.
            pattern += _LETTERS.get(one) or _plain(one)
            continue
        if pattern:
            pieces.append(f"date_format({texts[0]}, {text(pattern.replace(chr(39) * 2, ''))})")
            pattern = ""
        if one is not None:
            pieces.append(_MADE[one].format(texts[0]))
    return f"concat({', '.join(pieces)})" if pieces else f"left({texts[0]}, 0)"


def _parse(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    pattern, shape = "", ""
    parts = _parts(_value(nodes[1]))
    for place, one in enumerate(parts):
        after = parts[place + 1] if place + 1 < len(parts) else ""
        is_apart = not (after.startswith("%") and after != "%%")
        letters = (_READ.get(one) if is_apart else None) or _LETTERS.get(one)
        if one.startswith("%") and one != "%%" and letters is None:
            raise Lacking(f"reading a text by {one}")
        pattern += letters or _plain(one)
        shape += _shape(one)
    made = f"try_to_timestamp({texts[0]}, {text(pattern.replace(chr(39) * 2, ''))})"
    # A year of more digits, which Java would read after a sign, makes it fail.
    fits = f"{texts[0]} RLIKE {text(chr(92) + 'A' + shape + chr(92) + 'z')}"
    return f"CASE WHEN {fits} THEN {_LOCAL.format(made)} END"


def _shape(part: str) -> str:
    """Write what a part of a moment looks like, as a regular expression."""
    if part in _NAMED:
        return "[A-Za-z]{1,9}"
    if part in _LETTERS:
        return f"[0-9]{_WIDTHS.get(part, '{1,2}')}"
    sign = "%" if part == "%%" else part
    return re.escape(sign) if sign.isascii() else sign


def _shift(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    steps, unit = (_value(node) for node in nodes[1:])
    word, times = _STEPS[unit.lower()]
    sign = "-" if int(steps) < 0 else "+"
    step = f"INTERVAL '{abs(int(steps)) * times}' {word}"
    return f"({_LOCAL.format(texts[0])} {sign} {step})"


def _part(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    name = _value(nodes[0])
    if name not in _PARTS:
        raise Lacking(f"the part {name} of a moment")
    return f"CAST({_PARTS[name].format(texts[1])} AS BIGINT)"


def _trunc(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    return _LOCAL.format(f"date_trunc({text(_value(nodes[0]).upper())}, {texts[1]})")


def _diff(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    name, (_, before, after) = _value(nodes[0]), texts
    if name in ("year", "quarter", "month"):
        per = {"year": 1, "quarter": 4, "month": 12}[name]
        inner = "" if name == "year" else f" + {name}({{0}})"
        one, other = ((f"{per} * year({{0}})" + inner).format(x) for x in (after, before))
        return f"CAST(({one}) - ({other}) AS BIGINT)"
    if name == "day":
        return f"CAST(datediff({after}, {before}) AS BIGINT)"
    starts = [f"date_trunc({text(name.upper())}, {x})" for x in (after, before)]
    if name == "week":
        return f"CAST(datediff({starts[0]}, {starts[1]}) div 7 AS BIGINT)"
    counts = [f"unix_micros({_INSTANT.format(start)})" for start in starts]
    return f"(({counts[0]} - {counts[1]}) div {_ENDS[name]})"


def _zoned(word: str) -> Template:
    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        zone = _value(nodes[1])
        if zone not in available_timezones():
            raise Lacking(f"the time zone {zone}")
        return _LOCAL.format(f"{word}({_INSTANT.format(texts[0])}, {text(zone)})")

    return written


def _label(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    period = _value(nodes[1])
    if period == "week":
        return f"concat({_MADE['%G']}, '-W', {_MADE['%V']})".format(texts[0])
    return f"date_format({texts[0]}, '{_LABELS[period]}')"


_RANGE: Final = "CASE WHEN {{0}} BETWEEN {0} '{1}' AND {0} '{2}' THEN {{0}} END"
MOMENTS: Final[dict[Function, Template]] = {
    "date_in_range": _RANGE.format("DATE", "0001-01-01", "9999-12-31"),
    "timestamp_in_range": _RANGE.format(
        "TIMESTAMP_NTZ", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
    ),
    "from_utc": _LOCAL.format("{0}"),
    "epoch_microseconds": f"unix_micros({_INSTANT.format('{0}')})",
    "from_epoch": "CASE WHEN {0} BETWEEN -62135596800000000e0 AND 253402300799999000e0 "
    "THEN CAST(timestamp_micros(CAST(rint({0}) AS BIGINT)) AS TIMESTAMP_NTZ) END",
    "format_time": _format, "parse_time": _parse, "date_part": _part, "date_trunc": _trunc,
    "date_diff": _diff, "shift": _shift, "period_label": _label,
    "to_zone": _zoned("from_utc_timestamp"), "from_zone": _zoned("to_utc_timestamp"),
}  # fmt: skip
