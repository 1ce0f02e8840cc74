"""Expressions that PostgreSQL does not refuse mean what they mean to DuckDB, pattern by pattern."""

import math
import random
import re
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from discreet.tables.engines import Call, ColumnRef, DuckDBConnection, Literal, Scan, Select
from discreet.tables.engines.postgres.lacking import lacking

pytestmark = pytest.mark.needs("postgres")

SIGNS = [
    "a",
    "b",
    "K",
    "s",
    "0",
    "7",
    " ",
    "-",
    "_",
    ".",
    "é",
    "\n",
    "\u017f",
    "\u212a",
    "ß",
    "\t",
    "]",
]
ATOMS = [
    "a", "b", "K", "s", "0", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "[ab]", "[^a]", "[a-z]",
    "[A-Z0-9]", "[^\\d]", "[\\w-]", "\\.", "\\-", "-", "_", "é", "[k-s]", "[.]", "\\]", " ", "\\b",
    "[-a]", "[^\\s]", "\\(", "[é]",
]  # fmt: skip
COUNTS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "{0,1}"]


def pattern(dice, depth=2):
    parts = []
    for _ in range(dice.randint(1, 3)):
        if depth and dice.random() < 0.3:
            inside = pattern(dice, depth - 1)
            part = f"({'?:' if dice.random() < 0.4 else ''}{inside})"
        else:
            part = dice.choice(ATOMS)
        parts.append(part + dice.choice(COUNTS))
    made = "".join(parts)
    if depth and dice.random() < 0.2:
        made += "|" + pattern(dice, depth - 1)
    if dice.random() < 0.15:
        made = "^" + made
    if dice.random() < 0.15:
        made += "$"
    return made


def texts(dice, count=60):
    found = ["", None]
    for _ in range(count):
        found.append("".join(dice.choice(SIGNS) for _ in range(dice.randint(0, 9))))
    return found


def said(value, type_):
    return Literal(value, type_)


def compare(loaded, calls, table):
    """Return the calls that differ, of those that PostgreSQL does not refuse."""
    asked = [call for call in calls if lacking(call, has_letters=True, zones=None) is None]
    found = []
    with DuckDBConnection({"t": table}) as duckdb, loaded.connect({"t": table}) as postgres:
        for start in range(0, len(asked), 100):
            part = asked[start : start + 100]
            columns = (("i", ColumnRef("i")), *((f"c{i}", one) for i, one in enumerate(part)))
            rows = Select(Scan("t"), columns)
            one, other = (
                engine.rows(rows).reveal_without_noise().sort_by("i")
                for engine in (duckdb, postgres)
            )
            for i, call in enumerate(part):
                pair = zip(one[f"c{i}"].to_pylist(), other[f"c{i}"].to_pylist(), strict=True)
                found += [(call, row, *both) for row, both in enumerate(pair) if not _same(*both)]
    return asked, found


def _same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        close = math.isclose(one, other, rel_tol=1e-14, abs_tol=1e-320)
        return close or (math.isnan(one) and math.isnan(other))
    return one == other


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(3))
def test_generated_patterns(seed, loaded):
    dice = random.Random(seed)
    x = ColumnRef("x")
    calls = []
    for _ in range(400):
        written = said(pattern(dice), "text")
        flags = said(dice.choice(["", "", "i"]), "text")
        calls.append(Call(dice.choice(["matches", "matches_whole"]), (x, written, flags)))
        calls.append(Call("match", (x, written, said(0, "int32"))))
        if _groups(str(written.value)):
            calls.append(Call("match", (x, written, said(1, "int32"))))
        new = dice.choice(["", "-", "<\\0>", "\\\\"])
        how = said(dice.choice(["", "g", "gi"]), "text")
        calls.append(Call("replace_matches", (x, written, said(new, "text"), how)))
    calls = [call for call in calls if _groups(str(call.arguments[1].value)) is not None]
    listed = texts(dice)
    asked, wrong = compare(loaded, calls, pa.table({"x": listed, "i": range(len(listed))}))
    functions = [call.function for call in asked]
    assert functions.count("matches") > 50
    assert functions.count("match") > 20
    assert functions.count("replace_matches") > 20
    differ = "\n".join(repr((*_shown(call), listed[row], a, b)) for call, row, a, b in wrong)
    assert not differ, differ


def _shown(call):
    return (call.function, *(one.value for one in call.arguments[1:]))


def _groups(written):
    try:
        return re.compile(written).groups
    except re.error:
        return None


@pytest.mark.lengthy
def test_formats_of_moments(loaded):
    dice = random.Random(7)
    first = datetime(1, 1, 1)  # noqa: DTZ001 - timestamps have no zone
    moments = [first + timedelta(seconds=dice.random() * 3.15e11) for _ in range(200)]
    moments += [first, datetime.max, datetime(2024, 12, 30), datetime(1970, 1, 1)]  # noqa: DTZ001, DTZ901
    table = pa.table({"x": pa.array(moments, pa.timestamp("us")), "i": range(len(moments))})
    x = ColumnRef("x")
    parts = "aAbBdjmyYGHIMSfpuVwUW%"
    formats = [f"%{one}" for one in parts] + [f"%-{one}" for one in "dmHIMSj"]
    formats += ["%Y-%m-%d %H:%M:%S.%f", 'at 100%% {0} %d\'"YYYY"', "%d%m%Y"]
    calls = [Call("format_time", (x, said(one, "text"))) for one in formats]
    for part in ("year", "isoyear", "quarter", "month", "week", "day", "dayofyear", "dow", "isodow",
                 "hour", "minute", "second"):  # fmt: skip
        calls.append(Call("date_part", (said(part, "text"), x)))
    middle = said("1999-12-31 23:59:59", "timestamp")
    for part in ("year", "quarter", "month", "week", "day", "hour", "minute", "second"):
        calls.append(Call("date_trunc", (said(part, "text"), x)))
        calls.append(Call("date_diff", (said(part, "text"), x, middle)))
        calls.append(Call("date_diff", (said(part, "text"), middle, x)))
        calls.append(Call("shift", (x, said(dice.choice([-1, 1]), "int32"), said(part, "text"))))
    for label in ("day", "week", "month", "year"):
        calls.append(Call("period_label", (x, said(label, "text"))))
    calls.append(Call("epoch_microseconds", (x,)))
    kept = ["timestamp_in_range"]
    calls = [Call(kept[0], (one,)) if one.function == "shift" else one for one in calls]
    asked, wrong = compare(loaded, calls, table)
    assert len(asked) > 60
    differ = "\n".join(
        repr((c.function, c.arguments[0], moments[row], a, b)) for c, row, a, b in wrong
    )
    assert not differ, differ


@pytest.mark.lengthy
def test_texts_read_as_moments(loaded):
    dice = random.Random(8)
    formats = ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y %H:%M", "%Y-%m-%d %H:%M:%S", "%H:%M", "%Y"]
    days = ["2024-02-29", "2023-02-29", "29.02.2024", "31.04.2024", "12/31/1999 23:59", "7:5",
            "12/31/1999 24:00", "1900-02-29", "2000-02-29", "0001-01-01", "2024-1-1", "9999-12-31",
            "2024-02-29 23:59:59", "2024-02-29 23:59:60", "2024", "x", "", None]  # fmt: skip
    table = pa.table({"x": days, "i": range(len(days))})
    calls = [Call("parse_time", (ColumnRef("x"), said(one, "text"))) for one in formats]
    calls = [Call("timestamp_in_range", (one,)) for one in calls]
    assert dice is not None
    asked, wrong = compare(loaded, calls, table)
    assert len(asked) == len(formats)
    assert [(call.arguments[0].arguments[1], days[row], a, b) for call, row, a, b in wrong] == []


@pytest.mark.lengthy
def test_arithmetic_at_the_ends_of_doubles(loaded):
    dice = random.Random(9)
    ends = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 2.0**-538, 2.0**-512, 2.0**512, 2.0**1023,
            math.nextafter(math.inf, 0), -math.nextafter(math.inf, 0), math.inf, -math.inf, 1.0,
            -1.0, 0.1, 2.0**970, 3 * 2.0**970, 2.0**53 + 2]  # fmt: skip
    values = [*ends, *(dice.uniform(-2, 2) * 2.0 ** dice.randint(-1074, 1022) for _ in range(60))]
    pairs = [(a, b) for a in values for b in dice.sample(values, 40)]
    table = pa.table(
        {"x": [a for a, _ in pairs], "y": [b for _, b in pairs], "i": range(len(pairs))}
    )
    x, y = ColumnRef("x"), ColumnRef("y")
    names = ("add", "subtract", "multiply", "divide", "remainder")
    asked, wrong = compare(loaded, [Call(name, (x, y)) for name in names], table)
    assert len(asked) == len(names)
    assert [(call.function, pairs[row], a, b) for call, row, a, b in wrong] == []


@pytest.mark.lengthy
def test_functions_of_numbers(loaded):
    dice = random.Random(10)
    values = [dice.uniform(-1, 1) * 10.0 ** dice.randint(-12, 12) for _ in range(500)]
    values += [float(dice.randint(-(10**6), 10**6)) / 8 for _ in range(500)]
    values += [0.5, -0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370495.5, 709.78, -745.1]
    others = [dice.choice([1.0, -3.0, 0.7, 2.0, 1e-2, 1e6, dice.uniform(-9, 9)]) for _ in values]
    table = pa.table({"x": values, "y": others, "i": range(len(values))})
    x, y = ColumnRef("x"), ColumnRef("y")
    calls = [Call(name, (x,)) for name in ("floor", "ceil", "trunc", "sign", "exp", "ln", "log2",
             "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "abs")]  # fmt: skip
    calls += [Call("round", (x, said(digits, "int32"))) for digits in (0, 1, 2, 5, -1, -3)]
    calls += [Call(name, (x, y)) for name in ("remainder", "power", "atan2")]
    asked, wrong = compare(loaded, calls, table)
    assert len(asked) == len(calls)
    assert [(c.function, values[row], others[row], a, b) for c, row, a, b in wrong] == []
