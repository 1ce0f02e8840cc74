"""Arithmetic as IEEE 754 has it, where PostgreSQL raises an error instead of an infinity or zero.

PostgreSQL refuses a result of float8 that is infinite or zero though no argument is. So all that
could become too large or too small is looked at first, in numbers scaled by a power of two, which
rounds nothing: x y is infinite just if (x / 2**512) (y / 2**512), rounded, is at least 1, and it is
zero just if (x 2**512) (y 2**512) is at most 2**-51 (where that is rounded down to it, x y would
have been the smallest double there is).
"""

from collections.abc import Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import Template
from discreet.tables.engines.compile.text import number
from discreet.tables.engines.postgres.words.bound import bound, once
from discreet.tables.model.scalar import Function, Literal, Scalar

__all__ = ["FUNCTIONS", "INFINITY", "NAN", "half", "ratio"]

INFINITY: Final = "float8 'Infinity'"
NAN: Final = "float8 'NaN'"
_USUAL: Final = "BETWEEN 1e-150 AND 1e150"
_UP, _DOWN = number(2.0**512), number(2.0**-512)
_TINY: Final = number(2.0**-51)
_LARGE: Final = "BETWEEN -8e307 AND 8e307"
_SIGN: Final = f"sign({{0}}) * sign({{1}}) * {INFINITY}"
_ZERO: Final = "{0} * 0e0 * sign({1})"

_ADD: Final = (
    f"CASE WHEN {{0}} {_LARGE} AND {{1}} {_LARGE} THEN {{0}} + {{1}} "
    f"WHEN {{0}} BETWEEN 1e0 AND {INFINITY} AND {{1}} BETWEEN 1e0 AND {INFINITY} "
    f"THEN CASE WHEN {{0}} * 0.5e0 + {{1}} * 0.5e0 >= {number(2.0**1023)} "
    f"THEN {INFINITY} ELSE {{0}} + {{1}} END "
    f"WHEN {{0}} BETWEEN -{INFINITY} AND -1e0 AND {{1}} BETWEEN -{INFINITY} AND -1e0 "
    f"THEN CASE WHEN {{0}} * 0.5e0 + {{1}} * 0.5e0 <= {number(-(2.0**1023))} "
    f"THEN -{INFINITY} ELSE {{0}} + {{1}} END "
    "ELSE {0} + {1} END"
)
_MULTIPLY: Final = (
    f"CASE WHEN abs({{0}}) {_USUAL} AND abs({{1}}) {_USUAL} THEN {{0}} * {{1}} "
    f"WHEN {{0}} = 0e0 OR {{1}} = 0e0 OR abs({{0}}) >= {INFINITY} OR abs({{1}}) >= {INFINITY} "
    "THEN {0} * {1} "
    "WHEN abs({0}) >= 1e0 AND abs({1}) >= 1e0 "
    f"THEN CASE WHEN abs(({{0}} * {_DOWN}) * ({{1}} * {_DOWN})) >= 1e0 THEN {_SIGN} "
    "ELSE {0} * {1} END "
    "WHEN abs({0}) >= 1e0 OR abs({1}) >= 1e0 THEN {0} * {1} "
    f"WHEN abs({{0}}) < {number(2.0**-538)} AND abs({{1}}) < {number(2.0**-538)} THEN {_ZERO} "
    f"WHEN abs({{0}}) >= {_DOWN} AND abs({{1}}) >= {_DOWN} THEN {{0}} * {{1}} "
    f"WHEN abs(({{0}} * {_UP}) * ({{1}} * {_UP})) <= {_TINY} THEN {_ZERO} "
    "ELSE {0} * {1} END"
)
_DIVIDE: Final = (
    f"CASE WHEN {{1}} = 0e0 THEN NULL "
    f"WHEN abs({{0}}) {_USUAL} AND abs({{1}}) {_USUAL} THEN {{0}} / {{1}} "
    f"WHEN {{0}} = 0e0 OR abs({{0}}) >= {INFINITY} OR abs({{1}}) >= {INFINITY} THEN {{0}} / {{1}} "
    "WHEN abs({1}) < 1e0 THEN "
    "CASE WHEN abs({0}) < abs({1}) THEN {0} / {1} "
    f"WHEN abs({{0}}) < 1e0 THEN CASE WHEN abs({{0}} / ({{1}} * {_UP})) >= {_UP} THEN {_SIGN} "
    "ELSE {0} / {1} END "
    f"WHEN abs({{0}}) >= {_UP} AND abs({{1}}) < {number(2.0**-530)} THEN {_SIGN} "
    f"WHEN abs(({{0}} * {_DOWN}) / ({{1}} * {_UP})) >= 1e0 THEN {_SIGN} "
    "ELSE {0} / {1} END "
    "WHEN abs({0}) >= 1e0 THEN {0} / {1} "
    f"WHEN abs({{0}}) < {number(2.0**-530)} AND abs({{1}}) >= {number(2.0**546)} THEN {_ZERO} "
    f"WHEN abs(({{0}} * {_UP}) / ({{1}} * {_DOWN})) <= {_TINY} THEN {_ZERO} "
    "ELSE {0} / {1} END"
)
# A double is a whole number times a power of two, and the former fits a bigint; the remainder
# of whole numbers is exact. (The exponent may be too small by one, as logarithms are rounded.)
_POWER_OF_TWO: Final = "greatest(floor(ln(abs({0})) / 0.6931471805599453e0) - 53e0, -1074e0)"
_OF_FIRST, _OF_SECOND = _POWER_OF_TWO, _POWER_OF_TWO.replace("{0}", "{1}")
_IN_WHOLE: Final = "CAST(CAST({0} / power(2e0, " + _POWER_OF_TWO + ") AS bigint) AS numeric)"
_REMAINDER: Final = (
    f"CASE WHEN {{1}} = 0e0 OR {{0}} IS NULL OR {{1}} IS NULL THEN NULL "
    f"WHEN abs({{0}}) >= {INFINITY} OR {{1}} = {NAN} THEN {NAN} "
    "WHEN abs({0}) < abs({1}) THEN {0} "
    "WHEN abs({0}) < 9007199254740992e0 AND {0} = trunc({0}) AND {1} = trunc({1}) "
    "THEN CAST(mod(CAST({0} AS bigint), CAST({1} AS bigint)) AS float8) "
    f"ELSE CAST(mod({_IN_WHOLE} * power(numeric '2', CAST({_OF_FIRST} - {_OF_SECOND} AS numeric)), "
    f"{_IN_WHOLE.replace('{0}', '{1}')}) AS float8) * power(2e0, {_OF_SECOND}) END"
)
_POWER: Final = (
    f"CASE WHEN {{0}} = {NAN} OR {{1}} = {NAN} THEN power({{0}}, {{1}}) "
    f"WHEN {{0}} = 0e0 AND {{1}} < 0e0 THEN {INFINITY} "
    f"WHEN {{0}} = -{INFINITY} AND {{1}} <> floor({{1}}) "
    f"THEN CASE WHEN {{1}} > 0e0 THEN {INFINITY} ELSE 0e0 END "
    f"WHEN {{0}} < 0e0 AND {{1}} <> floor({{1}}) THEN {NAN} "
    f"WHEN {{0}} = 0e0 OR abs({{0}}) = {INFINITY} OR abs({{1}}) = {INFINITY} "
    "OR abs({1}) < 1e-100 OR abs({0}) = 1e0 THEN power({0}, {1}) "
    "WHEN least(greatest({1}, -1e20), 1e20) * ln(abs({0})) > 709.782712893e0 "
    f"THEN CASE WHEN {{0}} < 0e0 AND {{1}} * 0.5e0 <> floor({{1}} * 0.5e0) THEN -{INFINITY} "
    f"ELSE {INFINITY} END "
    "WHEN least(greatest({1}, -1e20), 1e20) * ln(abs({0})) < -745.13e0 THEN 0e0 "
    "ELSE power({0}, {1}) END"
)
_LOG2: Final = (
    f"CASE WHEN {{0}} = {INFINITY} THEN {{0}} WHEN {{0}} > 0e0 THEN "
    "CASE WHEN abs(round(ln({0}) / 0.6931471805599453e0)) <= 1022e0 "
    "AND power(2e0, least(greatest(round(ln({0}) / 0.6931471805599453e0), -1022e0), 1022e0)) "
    "= {0} THEN round(ln({0}) / 0.6931471805599453e0) "
    "ELSE ln({0}) / 0.6931471805599453e0 END END"
)
_ROUND: Final = (
    "CASE WHEN abs({0}) < 4503599627370496e0 THEN CASE WHEN abs({0} - trunc({0})) >= 0.5e0 "
    "THEN trunc({0}) + sign({0}) ELSE trunc({0}) END ELSE {0} END"
)


def _round(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    digits = nodes[1].value if isinstance(nodes[1], Literal) else 0
    assert isinstance(digits, int | float)
    if digits == 0:
        return once(_ROUND, nodes[:1], texts[:1])
    by = 10.0 ** min(abs(int(digits)), 300)
    sign, back = ("*", "/") if digits > 0 else ("/", "*")
    whole = _ROUND.format(f"({{0}} {sign} {number(by)})")
    # Outside, nothing is left to round, or nothing of it.
    inner = f"abs({{0}}) < {number(1e307 / by)}" if digits > 0 else "abs({0}) BETWEEN 1e0 AND 1e307"
    outer = "{0}" if digits > 0 else "CASE WHEN abs({0}) < 1e0 THEN {0} * 0e0 ELSE {0} END"
    pattern = f"CASE WHEN {inner} THEN ({whole}) {back} {number(by)} ELSE {outer} END"
    return once(pattern, nodes[:1], texts[:1])


def _subtract(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    return once(_ADD, nodes, [texts[0], f"(-{texts[1]})"])


def _listed(word: str) -> Template:
    return lambda nodes, texts: f"{word}({', '.join(texts)})"


def ratio(value: str, by: float) -> str:
    """Write a value divided by a positive number: 0 where that is below about 1e-150 in size."""
    least = by * 1e-150
    if least == 0.0:  # then no quotient is as small
        return f"{value} / {number(by)}"
    return f"CASE WHEN abs({value}) < {number(least)} THEN 0e0 ELSE {value} / {number(by)} END"


half: Final = "CASE WHEN abs({0}) < 1e0 THEN 0e0 ELSE {0} * 0.5e0 END"


def _guarded(guard: str, then: str) -> Template:
    return bound(f"CASE WHEN {guard} THEN {then} END")


FUNCTIONS: Final[dict[Function, Template]] = {
    "negate": "(-{0})", "abs": "abs({0})",
    "add": bound(_ADD), "subtract": _subtract, "multiply": bound(_MULTIPLY),
    "divide": bound(_DIVIDE), "remainder": bound(_REMAINDER),
    "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "round": _round,
    "sign": "sign({0})",
    "sqrt": _guarded("{0} >= 0e0", "sqrt({0})"),
    "exp": bound(
        f"CASE WHEN {{0}} = {NAN} THEN {{0}} WHEN {{0}} > 709.782712893384e0 THEN {INFINITY} "
        "WHEN {0} < -745.1332191019411e0 THEN 0e0 ELSE exp({0}) END"
    ),
    "ln": _guarded("{0} > 0e0", "ln({0})"), "log10": _guarded("{0} > 0e0", "log({0})"),
    "log2": bound(_LOG2), "power": bound(_POWER),
    **{
        name: _guarded(f"abs({{0}}) < {INFINITY}", f"{name}({{0}})")
        for name in ("sin", "cos", "tan")
    },
    "asin": _guarded("{0} BETWEEN -1e0 AND 1e0", "asin({0})"),
    "acos": _guarded("{0} BETWEEN -1e0 AND 1e0", "acos({0})"),
    "atan": "atan({0})", "atan2": "atan2({0}, {1})",
    "clamp": bound("CASE WHEN {0} IS NULL THEN NULL ELSE least(greatest({0}, {1}), {2}) END"),
    "least": _listed("least"), "greatest": _listed("greatest"), "coalesce": _listed("coalesce"),
    "not_nan": f"nullif({{0}}, {NAN})",
    "plus_zero": bound("CASE WHEN {0} = 0e0 THEN 0e0 ELSE {0} END"),
}  # fmt: skip
