"""Moments as texts and texts as moments, by formats of several databases."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from sqlglot import exp

from discreet.tables.model import scalar
from discreet.tables.model.scalar import Call, Cast
from discreet.tables.sql.expressions.arguments import Rule, need, written_text
from discreet.tables.sql.expressions.term import Scope, Term, in_range, text

__all__ = ["ANONYMOUS", "RULES", "parsed_moment"]

# What C calls the parts of a moment; engines know these, and no value makes them fail.
_PARTS: Final = frozenset("aAbBdjmyYGHIMSfpuVwUW%")
_LONGEST: Final = 100  # characters
_BIGQUERY: Final = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "e": "%-d"}
_MYSQL: Final = {
    "i": "%M", "s": "%S", "M": "%B", "W": "%A", "c": "%-m", "e": "%-d", "h": "%I", "k": "%-H",
    "T": "%H:%M:%S",
}  # fmt: skip
_WORDS: Final = {  # as PostgreSQL, Oracle and Snowflake have them, the longest first
    "FMMonth": "%B", "FMDay": "%A", "Month": "%B", "IYYY": "%G", "YYYY": "%Y", "HH24": "%H",
    "HH12": "%I", "DDD": "%j", "Mon": "%b", "Day": "%A", "YY": "%y", "MM": "%m", "DD": "%d",
    "HH": "%I", "MI": "%M", "SS": "%S", "US": "%f", "IW": "%V", "ID": "%u", "Dy": "%a",
    "AM": "%p", "PM": "%p",
}  # fmt: skip
_WORD: Final = re.compile(
    "|".join(['"([^"%]*)"', *_WORDS, *(w.lower() for w in _WORDS if w.isupper())])
    + r"|[^A-Za-z%\"]|T"
)


def _percent(node: exp.Expression, scope: Scope, format_: str, more: Mapping[str, str]) -> str:
    """Return a format of percent signs in the words of C, or refuse it."""
    made, place = "", 0
    for match in re.finditer(r"%(-?)(.?)", format_):
        made += format_[place : match.start()]
        place = match.end()
        dash, sign = match.groups()
        if sign in more and not dash:
            made += more[sign]
        elif sign in _PARTS and not (dash and sign not in "dmHIMSjy"):
            made += match[0]
        else:
            raise _unknown(node, scope, match[0])
    return made + format_[place:]


def _words(node: exp.Expression, scope: Scope, format_: str) -> str:
    """Return a format like YYYY-MM-DD in the words of C, or refuse it."""
    made, place = "", 0
    while place < len(format_):
        match = _WORD.match(format_, place)
        if match is None:
            raise _unknown(node, scope, format_[place:])
        found, place = match[0], match.end()
        word = found if found in _WORDS else found.upper()
        made += match[1] if match[1] is not None else _WORDS.get(word, found)
    return made


def _unknown(node: exp.Expression, scope: Scope, part: str) -> Exception:
    return scope.question.refuse("format", node, word=part[:20])


def _format(node: exp.Expression, scope: Scope, written: exp.Expression, *, word: str) -> str:
    """Return a format that is written out, in the words of C."""
    found = str(written_text(written, scope, word=word).value)
    if len(found) > _LONGEST:
        raise _unknown(written, scope, found)
    if "%" in found:
        is_mysql = word == "DATE_FORMAT"
        return _percent(written, scope, found, _MYSQL if is_mysql else _BIGQUERY)
    return _words(written, scope, found)


def _shown(node: exp.Expression, scope: Scope) -> Term:
    """Translate STRFTIME(d, format), TO_CHAR(d, format), FORMAT_DATE(format, d) and the like."""
    if isinstance(node, exp.Anonymous):
        word, given = str(node.this).upper(), list(node.expressions)
    else:
        word = "TO_CHAR" if isinstance(node, exp.ToChar) else "STRFTIME"
        scope.question.arguments(node, "this", "format")
        given = [part for part in (node.this, node.args.get("format")) if part is not None]
    if word.startswith("FORMAT") or _is_text(given[0]):  # DuckDB takes either order
        given = given[::-1]
    if len(given) != 2:
        if word == "TO_CHAR" and len(given) == 1:
            return scope.term(exp.cast(given[0], "VARCHAR"))
        raise scope.question.refuse("arguments", node, word=word, example=f"{word}(d, '%Y-%m')")
    moment = need(scope, given[0], "date", "timestamp", word=word)
    made = scalar.Literal(_format(node, scope, given[1], word=word), "text")
    return text(Call("format_time", (moment.node, made)), is_nullable=moment.is_nullable)


def _is_text(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and bool(node.args.get("is_string"))


def _parsed(node: exp.Expression, scope: Scope) -> Term:
    """Translate STRPTIME(x, format), TO_DATE(x, format), PARSE_DATE(format, x) and the like."""
    if isinstance(node, exp.Anonymous):
        word, given = str(node.this).upper(), list(node.expressions)
    else:
        scope.question.arguments(node, "this", "format")
        word, given = "STRPTIME", [node.this, node.args["format"]]
    if len(given) == 1 and word.endswith("TO_DATE"):
        return scope.term(exp.cast(given[0], "DATE"))
    if len(given) != 2:
        raise scope.question.refuse("arguments", node, word=word, example=f"{word}(x, '%Y-%m-%d')")
    one, other = given[::-1] if word.startswith("PARSE") else given
    return parsed_moment(node, scope, one, other, "date" if word.endswith("DATE") else "timestamp")


def parsed_moment(
    node: exp.Expression,
    scope: Scope,
    value: exp.Expression,
    written: exp.Expression,
    kind: Literal["date", "timestamp"],
) -> Term:
    """Return a text read by a format, NULL where it does not fit."""
    source = need(scope, value, "text", word="STRPTIME")
    made = scalar.Literal(_format(node, scope, written, word="STRPTIME"), "text")
    moment = in_range(Call("parse_time", (source.node, made)), "timestamp")
    return moment if kind == "timestamp" else in_range(Cast(moment.node, "date"), "date")


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.TimeToStr: _shown,
    exp.ToChar: _shown,
    exp.StrToTime: _parsed,
}
ANONYMOUS: Final[dict[str, Rule]] = {
    **dict.fromkeys(("format_date", "format_timestamp", "format_datetime", "date_format"), _shown),
    **dict.fromkeys(
        ("try_strptime", "parse_date", "parse_timestamp", "parse_datetime", "to_date",
         "try_to_date", "try_parse_date"),
        _parsed,
    ),
}  # fmt: skip
