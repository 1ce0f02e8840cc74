"""Every function of the vocabulary with arguments that are hard to get right, and its result."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from discreet.tables.engines import Function, Literal

if TYPE_CHECKING:
    from discreet.tables.engines import Type

Cases = Sequence[tuple[Function, tuple[Any, ...], Any]]
"""A function, its arguments (which are columns, unless they are literals) and its result."""


def type_of(value: object) -> "Type":
    """Return the type of an argument."""
    match value:
        case Literal():
            return value.type
        case bool():
            return "boolean"
        case int():
            return "int64"
        case float():
            return "double"
        case datetime():
            return "timestamp"
        case date():
            return "date"
        case _:
            return "text"


def fixed(value: str | int | float) -> Literal:
    """Return an argument that is written out."""
    return Literal(value, type_of(value))


def _moment(month: int, day: int, hour: int = 0) -> datetime:
    return datetime(2024, month, day, hour)  # noqa: DTZ001 - timestamps have no zone


INF, NAN, NULL = math.inf, math.nan, None
LONG = "x" * 6_000
DAY, NOON = (
    date(2024, 2, 29),
    _moment(2, 29, 12) + timedelta(minutes=30, seconds=15, microseconds=999_999),
)
LAST = datetime.max  # noqa: DTZ901
MOMENT = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)

NUMBERS: Cases = [
    ("sin", (0.5,), math.sin(0.5)),
    ("sin", (math.inf,), None),
    ("cos", (0.0,), 1.0),
    ("cos", (-math.inf,), None),
    ("tan", (0.0,), 0.0),
    ("tan", (math.inf,), None),
    ("asin", (1.0,), math.asin(1.0)),
    ("asin", (1.5,), None),
    ("acos", (1.0,), 0.0),
    ("acos", (-2.0,), None),
    ("atan", (math.inf,), math.pi / 2),
    ("atan2", (0.0, 1.0), 0.0),
    ("negate", (1.5,), -1.5),
    ("negate", (-INF,), INF),
    ("negate", (NULL,), NULL),
    ("abs", (-1.5,), 1.5),
    ("abs", (-INF,), INF),
    ("abs", (NULL,), NULL),
    ("add", (1e308, 1e308), INF),
    ("add", (INF, -INF), NAN),
    ("add", (0.1, 0.2), 0.1 + 0.2),
    ("add", (1.0, NULL), NULL),
    ("subtract", (1.0, 0.9), 1.0 - 0.9),
    ("subtract", (INF, INF), NAN),
    ("subtract", (NULL, 1.0), NULL),
    ("multiply", (1e200, 1e200), INF),
    ("multiply", (0.0, INF), NAN),
    ("multiply", (3.0, NULL), NULL),
    ("divide", (1.0, 0.0), NULL),
    ("divide", (0.0, 0.0), NULL),
    ("divide", (1.0, -0.0), NULL),
    ("divide", (1.0, 3.0), 1 / 3),
    ("divide", (INF, INF), NAN),
    ("divide", (1.0, INF), 0.0),
    ("divide", (NULL, 1.0), NULL),
    ("remainder", (7.0, 0.0), NULL),
    ("remainder", (-7.0, 3.0), -1.0),
    ("remainder", (7.0, -3.0), 1.0),
    ("remainder", (5.5, 2.0), 1.5),
    ("floor", (-1.5,), -2.0),
    ("floor", (1e300,), 1e300),
    ("floor", (INF,), INF),
    ("floor", (NULL,), NULL),
    ("ceil", (-1.5,), -1.0),
    ("ceil", (1.2,), 2.0),
    ("ceil", (-INF,), -INF),
    ("trunc", (-1.5,), -1.0),
    ("trunc", (1.5,), 1.0),
    ("trunc", (1e300,), 1e300),
    ("round", (2.5, fixed(0)), 3.0),
    ("round", (-2.5, fixed(0)), -3.0),
    ("round", (1.26, fixed(1)), 1.3),
    ("round", (1250.0, fixed(-2)), 1300.0),
    ("round", (NULL, fixed(0)), NULL),
    ("sign", (-2.5,), -1.0),
    ("sign", (0.0,), 0.0),
    ("sign", (INF,), 1.0),
    ("sign", (NULL,), NULL),
    ("sqrt", (-1.0,), NULL),
    ("sqrt", (2.0,), math.sqrt(2)),
    ("sqrt", (0.0,), 0.0),
    ("sqrt", (INF,), INF),
    ("sqrt", (-INF,), NULL),
    ("exp", (1000.0,), INF),
    ("exp", (0.0,), 1.0),
    ("exp", (-1000.0,), 0.0),
    ("exp", (NULL,), NULL),
    ("ln", (0.0,), NULL),
    ("ln", (-1.0,), NULL),
    ("ln", (1.0,), 0.0),
    ("ln", (INF,), INF),
    ("log2", (0.0,), NULL),
    ("log2", (-INF,), NULL),
    ("log2", (8.0,), 3.0),
    ("log10", (-0.0,), NULL),
    ("log10", (1000.0,), 3.0),
    ("log10", (NULL,), NULL),
    ("power", (2.0, 10.0), 1024.0),
    ("power", (-8.0, 0.5), NAN),
    ("power", (1e308, 2.0), INF),
    ("power", (0.0, -1.0), INF),
    ("clamp", (5.0, fixed(0.0), fixed(3.0)), 3.0),
    ("clamp", (-INF, fixed(0.0), fixed(3.0)), 0.0),
    ("clamp", (NULL, fixed(0.0), fixed(3.0)), NULL),
    ("clamp", (1.0, fixed(0.0), fixed(3.0)), 1.0),
    ("least", (3.0, 1.0, 2.0), 1.0),
    ("least", (3.0, NULL, 2.0), 2.0),
    ("least", (-INF, NULL), -INF),
    ("greatest", (3.0, 1.0, 2.0), 3.0),
    ("greatest", (3.0, NULL, 2.0), 3.0),
    ("greatest", (1.0, INF), INF),
    ("coalesce", (NULL, 2.0, 3.0), 2.0),
    ("coalesce", (1.0, NULL), 1.0),
    ("not_nan", (NAN,), NULL),
    ("not_nan", (1.0,), 1.0),
    ("not_nan", (INF,), INF),
    ("not_nan", (NULL,), NULL),
    ("plus_zero", (-0.0,), 0.0),
    ("plus_zero", (0.0,), 0.0),
    ("plus_zero", (-1.5,), -1.5),
    ("plus_zero", (NULL,), NULL),
    ("parse_double", ("1e3",), 1000.0),
    ("parse_double", ("-0.5",), -0.5),
    ("parse_double", ("nan",), NULL),
    ("parse_double", ("one",), NULL),
    ("parse_double", ("",), NULL),
    ("parse_double", (NULL,), NULL),
]
TRUTHS: Cases = [
    ("like", ("50%", fixed("%!%"), fixed("!")), True),
    ("like", ("50", fixed("%!%"), fixed("!")), False),
    ("matches", ("harbour", fixed("b.u"), fixed("")), True),
    ("matches", ("harbour", fixed("B.U"), fixed("")), False),
    ("matches", ("harbour", fixed("B.U"), fixed("i")), True),
    ("matches_whole", ("harbour", fixed("b.u"), fixed("")), False),
    ("matches_whole", ("harbour", fixed("[a-z]+"), fixed("")), True),
    ("equal", (1.0, 1.0), True),
    ("equal", ("a", "A"), False),
    ("equal", ("é", "e"), False),
    ("equal", (NULL, 1.0), NULL),
    ("equal", (0.0, -0.0), True),
    ("equal", (DAY, DAY), True),
    ("not_equal", (1.0, 1.0), False),
    ("not_equal", ("a", "A"), True),
    ("not_equal", (1.0, NULL), NULL),
    ("less", (1.0, INF), True),
    ("less", ("B", "a"), True),
    ("less", ("a", "ä"), True),
    ("less", (DAY, DAY), False),
    ("less_equal", (1.0, 1.0), True),
    ("less_equal", ("b", "a"), False),
    ("less_equal", (NULL, 1.0), NULL),
    ("greater", (INF, 1.0), True),
    ("greater", ("a", "B"), True),
    ("greater", (True, False), True),
    ("greater_equal", (1.0, 1.0), True),
    ("greater_equal", ("a", "b"), False),
    ("same", (1.0, NULL), False),
    ("same", (1.0, 1.0), True),
    ("same", ("a", "A"), False),
    ("different", (1.0, NULL), True),
    ("different", (1.0, 1.0), False),
    ("in", ("a", fixed("b"), fixed("a")), True),
    ("in", ("A", fixed("b"), fixed("a")), False),
    ("in", (NULL, fixed("a")), NULL),
    ("is_null", (1.0,), False),
    ("is_null", (NAN,), False),
    ("is_null", ("",), False),
    ("is_null", (NULL,), True),
    ("not", (True,), False),
    ("not", (False,), True),
    ("and", (True, NULL), NULL),
    ("and", (False, NULL), False),
    ("and", (True, True), True),
    ("or", (True, NULL), True),
    ("or", (False, NULL), NULL),
    ("or", (False, False), False),
]
TEXTS: Cases = [
    ("split_part", ("a-b-c", fixed("-"), fixed(2)), "b"),
    ("split_part", ("a-b-c", fixed("-"), fixed(-1)), "c"),
    ("split_part", ("a-b-c", fixed("-"), fixed(9)), ""),
    ("pad_left", ("ab", fixed(5), fixed("xy")), "xyxab"),
    ("pad_left", ("ab", fixed(1), fixed(" ")), "a"),
    ("pad_right", ("ab", fixed(5), fixed("xy")), "abxyx"),
    ("reverse", ("abé",), "éba"),
    ("position", ("abé", "é"), 3),
    ("position", ("abé", "x"), 0),
    ("byte_length", ("abé",), 4),
    ("match", ("a1b22", fixed("[0-9]+"), fixed(0)), "1"),
    ("match", ("a", fixed("b"), fixed(0)), ""),
    ("match", ("k=v", fixed("(k)=(v)"), fixed(2)), "v"),
    ("replace_matches", ("a1b2", fixed("[0-9]"), fixed("-"), fixed("")), "a-b2"),
    ("replace_matches", ("a1b2", fixed("([0-9])"), fixed("<\\1>"), fixed("g")), "a<1>b<2>"),
    ("replace_matches", ("x" * 9999, fixed("x"), fixed("yy"), fixed("g")), None),
    ("lower", ("ÀB",), "àb"),
    ("lower", (NULL,), NULL),
    ("initcap", ("o'neil-SMITH ÀB x2Y_z",), "O'Neil-Smith Àb X2y_Z"),
    ("initcap", ("",), ""),
    ("initcap", (NULL,), NULL),
    ("upper", ("àb",), "ÀB"),
    ("trim", (" a b ",), "a b"),
    ("trim", ("xxaxx", fixed("x")), "a"),
    ("ltrim", (" a ",), "a "),
    ("ltrim", ("xyax", fixed("xy")), "ax"),
    ("rtrim", (" a ",), " a"),
    ("rtrim", ("xaxy", fixed("xy")), "xa"),
    ("length", ("",), 0),
    ("length", ("né",), 2),
    ("length", (NULL,), NULL),
    ("substring", ("hello", fixed(2)), "ello"),
    ("substring", ("hello", fixed(2), fixed(3)), "ell"),
    ("substring", ("né", fixed(9)), ""),
    ("substring", ("hello", fixed(-3), fixed(2)), "ll"),
    ("left", ("hello", fixed(2)), "he"),
    ("left", ("né", fixed(9)), "né"),
    ("left", ("hello", fixed(-1)), "hell"),
    ("right", ("hello", fixed(2)), "lo"),
    ("right", ("hello", fixed(-1)), "ello"),
    ("concat", ("a", "b"), "ab"),
    ("concat", ("a", NULL), NULL),
    ("concat", (LONG, LONG), NULL),
    ("concat", (LONG, fixed("!")), LONG + "!"),
    ("concat_present", ("a", NULL, "b"), "ab"),
    ("concat_present", (LONG, LONG), NULL),
    ("replace", ("abab", fixed("b"), fixed("")), "aa"),
    ("replace", ("a", fixed("a"), fixed("xyz")), "xyz"),
    ("replace", (LONG, fixed("x"), fixed("xyz")), NULL),
    ("starts_with", ("hello", fixed("he")), True),
    ("starts_with", ("hello", fixed("He")), False),
    ("starts_with", (NULL, fixed("h")), NULL),
    ("ends_with", ("hello", fixed("lo")), True),
    ("ends_with", ("hello", fixed("")), True),
    ("contains", ("hello", fixed("ell")), True),
    ("contains", ("100%", fixed("_")), False),
    ("like", ("hello", fixed("h%o")), True),
    ("like", ("Hello", fixed("h%")), False),
    ("like", ("ab", fixed("_")), False),
    ("ilike", ("Hello", fixed("h%O")), True),
    ("ilike", (NULL, fixed("%")), NULL),
    ("tagged", ("2024", "a"), "2024|a"),
    ("tagged", ("2024", NULL), "2024|"),
]
TIMES: Cases = [
    ("from_epoch", (0.0,), datetime(1970, 1, 1)),  # noqa: DTZ001
    ("from_epoch", (1e300,), None),
    ("format_time", (datetime(2024, 2, 29, 12, 30), fixed("%Y/%m/%d %H:%M")), "2024/02/29 12:30"),  # noqa: DTZ001
    ("parse_time", ("29.02.2024", fixed("%d.%m.%Y")), datetime(2024, 2, 29)),  # noqa: DTZ001
    ("parse_time", ("30.02.2024", fixed("%d.%m.%Y")), None),
    ("date_in_range", (DAY,), DAY),
    ("date_in_range", (date.max,), date.max),
    ("date_in_range", (NULL,), NULL),
    ("timestamp_in_range", (NOON,), NOON),
    ("timestamp_in_range", (LAST,), LAST),
    ("from_utc", (MOMENT,), MOMENT.replace(tzinfo=None)),
    ("epoch_microseconds", (MOMENT,), int(MOMENT.timestamp()) * 10**6),
    ("date_part", (fixed("year"), NOON), 2024),
    ("date_part", (fixed("month"), NOON), 2),
    ("date_part", (fixed("day"), NOON), 29),
    ("date_part", (fixed("hour"), NOON), 12),
    ("date_part", (fixed("minute"), NOON), 30),
    ("date_part", (fixed("second"), NOON), 15),
    ("date_trunc", (fixed("month"), NOON), _moment(2, 1)),
    ("date_trunc", (fixed("hour"), NOON), _moment(2, 29, 12)),
    ("date_trunc", (fixed("week"), NOON), _moment(2, 26)),
    ("date_diff", (fixed("day"), NOON, LAST), (LAST.date() - DAY).days),
    ("date_diff", (fixed("month"), LAST, LAST), 0),
    ("date_diff", (fixed("year"), NOON, LAST), 9999 - 2024),
    ("shift", (NOON, fixed(1), fixed("day")), NOON + timedelta(days=1)),
    ("to_zone", (NOON, fixed("Europe/Berlin")), NOON + timedelta(hours=1)),
    (
        "to_zone",
        (NOON + timedelta(days=90), fixed("Europe/Berlin")),
        NOON + timedelta(days=90, hours=2),
    ),
    ("from_zone", (NOON, fixed("Asia/Tokyo")), NOON - timedelta(hours=9)),
    ("shift", (NOON, fixed(-1), fixed("year")), NOON.replace(year=2023, day=28)),
    ("shift", (NOON, fixed(90), fixed("minute")), NOON + timedelta(minutes=90)),
    ("period_label", (NOON, fixed("day")), "2024-02-29"),
    ("period_label", (NOON, fixed("month")), "2024-02"),
    ("period_label", (NOON, fixed("year")), "2024"),
    ("period_label", (_moment(12, 30), fixed("week")), "2025-W01"),
]
