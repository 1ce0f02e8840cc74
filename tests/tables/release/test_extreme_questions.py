"""A question is refused before it is charged or answered, whatever its text and offer say."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from discreet.errors import ParameterError, Refused
from discreet.tables import Protected
from discreet.testing import temporary_tables

SHARES = ("0", "1", "1e-7", "0.9999999", "1e-400", "-0", "1e-6", "0.5", "2", "NULL")
QUANTILES = (
    "QUANTILE(age, {})",
    "QUANTILE_CONT(age, {})",
    "QUANTILE_DISC(age, {})",
    "APPROX_QUANTILE(age, {})",
    "PERCENTILE_CONT({}) WITHIN GROUP (ORDER BY age DESC)",
    "PERCENTILE_DISC({}) WITHIN GROUP (ORDER BY age)",
)
ENDS = ("0", "-1e300", "1e300", "1e-320", "9223372036854775807")
CLAMPED = (
    "COUNT(CLAMP(age, {0}, {1}))",
    "COUNT(DISTINCT CLAMP(age, {0}, {1}))",
    "SUM(CLAMP(age, {0}, {1}))",
    "AVG(CLAMP(age, {0}, {1}))",
    "VARIANCE(CLAMP(age, {0}, {1}))",
    "STDDEV_POP(CLAMP(age, {0}, {1}))",
    "MIN(CLAMP(age, {0}, {1}))",
    "MAX(CLAMP(age, {0}, {1}))",
    "MEDIAN(CLAMP(age, {0}, {1}))",
    "CORR(CLAMP(age, {0}, {1}), income)",
    "COVAR_SAMP(CLAMP(age, {0}, {1}), CLAMP(income, {0}, {1}))",
    "HISTOGRAM(age, {0}, {1}, 3)",
    "HISTOGRAM(age, 0, 100, {0})",
)
PLAIN = (
    "COUNT(*)",
    "COUNT(DISTINCT age)",
    "COUNT(DISTINCT person_id)",
    "SUM(age)",
    "AVG(age)",
    "STDDEV(age)",
    "MIN(age)",
    "MAX(age)",
    "MEDIAN(age)",
    "QUANTILE(age, 1e-6)",
    "CORR(age, income)",
    "HISTOGRAM(age, 0, 100, 4)",
)
OFFERS: tuple[dict[str, Any], ...] = (
    {"epsilon": 1e-320},
    {"epsilon": 1e-200},
    {"epsilon": 1e-30},
    {"epsilon": 1e30},
    {"epsilon": 1, "confidence": 1e-300},
    {"epsilon": 1, "confidence": 1 - 2**-53},
    {"epsilon": 1, "delta": 0},
    {"epsilon": 1, "delta": 1e-300},
    {"epsilon": 1e-30, "delta": 0},
)


@pytest.fixture(scope="module")
def people() -> Iterator[Protected]:
    with temporary_tables(n=50, epsilon=10**40, delta=0.5) as tables:
        yield tables


def _entries(tables: Protected) -> int:
    return int(tables.account.history(last=1)[-1]["index"])


def _faults(tables: Protected, texts: Iterable[str], **offer: Any) -> dict[str, str]:
    """Return the questions that were neither answered nor refused for free, and how they ended."""
    found = {}
    for text in texts:
        before = _entries(tables)
        try:
            tables.sql(text, **offer)
        except Exception as error:  # no question may end otherwise, whatever it is
            is_charged = _entries(tables) != before
            if is_charged or not isinstance(error, Refused | ParameterError):
                found[text] = f"{type(error).__name__}, {'charged' if is_charged else 'free'}"
    return found


@pytest.mark.lengthy
@pytest.mark.parametrize("call", QUANTILES)
def test_no_share_of_a_quantile_fails_after_the_charge(people: Protected, call: str) -> None:
    texts = [f"SELECT {call.format(share)} AS v FROM people" for share in SHARES]
    assert _faults(people, texts, epsilon=1, delta=1e-9) == {}


@pytest.mark.lengthy
@pytest.mark.parametrize("call", CLAMPED)
def test_no_bounds_fail_after_the_charge(people: Protected, call: str) -> None:
    pairs = itertools.product(ENDS, repeat=2)
    texts = dict.fromkeys(f"SELECT {call.format(*ends)} AS v FROM people" for ends in pairs)
    assert _faults(people, texts, epsilon=1, delta=1e-9) == {}


@pytest.mark.lengthy
@pytest.mark.parametrize("offer", OFFERS, ids=str)
@pytest.mark.parametrize("tail", ["", " GROUP BY sex", " GROUP BY age"])
def test_no_offer_fails_after_the_charge(
    people: Protected, offer: dict[str, Any], tail: str
) -> None:
    texts = [f"SELECT {call} AS v FROM people{tail}" for call in PLAIN]
    assert _faults(people, texts, **{"delta": 1e-9, **offer}) == {}
