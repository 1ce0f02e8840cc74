"""Questions in plain files: their plan, their price and their bounded answer."""

import json
import math
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import pytest
import tables_oracle as oracle
from scipy.optimize import brentq
from scipy.stats import norm

from discreet.accounting import epsilon as certified_epsilon
from discreet.noise import SYSTEM
from discreet.tables.algorithms import limit_choice as limits
from discreet.tables.engines import DuckDBConnection, open_sources
from discreet.tables.release.answer import fingerprinted
from discreet.tables.release.columns import columns_of
from discreet.tables.release.execution.run import run

CASES = list(oracle.cases())
INFERENCE_SHARE = Fraction(1, 10)


@pytest.fixture(scope="module")
def types():
    return oracle.all_types()


@pytest.fixture(scope="module")
def engine():
    private, public = oracle.tables()
    with DuckDBConnection(open_sources(private, public=public), threads=2) as opened:
        yield opened


def named(case):
    return case.name


def test_there_are_enough_cases_and_no_two_of_one_name():
    assert len(CASES) >= 110
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_plan(case, types):
    catalog = oracle.catalog_of(case, types)
    one = oracle.prepared(case, catalog)
    assert [aggregate.kind for aggregate in one.query.aggregates] == case.aggregates
    families = [f.kind + "+" * f.with_absent for f in one.layout.families]
    assert families == case.families
    if not one.query.keys:
        assert case.key_kind == "none"
    else:
        assert case.key_kind == ("known" if one.query.has_known_keys else "private")
    assert one.layout.selector == (case.selects if case.key_kind == "private" else None)
    assert one.query.unit_is_row == (case.unit["kind"] == "record")
    # The plan is a function of the question: byte for byte the same when asked again.
    again = oracle.prepared(case, oracle.catalog_of(case, types))
    assert fingerprinted(one, catalog) == fingerprinted(again, catalog)
    json.loads(fingerprinted(one, catalog))


def gaussian_multiplier(epsilon, delta):
    """Return the least noise of (epsilon, delta), from the formula of the Gaussian mechanism."""

    def excess(sigma):
        a, b = 1 / (2 * sigma), epsilon * sigma
        return norm.cdf(a - b) - math.exp(epsilon + norm.logcdf(-a - b)) - delta

    return brentq(excess, 1e-3, 1e4, xtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_price(case, types):
    """Recompute the split of epsilon and the noise from what the case says is released."""
    catalog = oracle.catalog_of(case, types)
    found = oracle.prepared(case, catalog).price
    ranks = sum(kind in ("quantile", "minimum", "maximum") for kind in case.aggregates)
    is_private = case.key_kind == "private"
    units = int("count_units" in case.aggregates or (is_private and case.selects == "units"))
    distinct = case.aggregates.count("count_distinct")
    noisy = len(case.families) + units + distinct
    assert [inference.of for inference in found.inferences] == case.infers
    share = INFERENCE_SHARE if case.key_kind != "none" else 2 * INFERENCE_SHARE
    kept = oracle.EPSILON * (1 - share if case.infers else 1)
    each = kept / (noisy + ranks)
    assert found.rank_epsilon == each
    profiles = len(case.infers)
    if profiles and case.noise != "gaussian":
        assert found.inference_noise.multiplier == profiles / (oracle.EPSILON - kept)
    if noisy:
        assert found.noise.kind == case.noise
        if case.noise == "laplace":
            assert found.noise.multiplier == 1 / each
            # All but a millionth, which leaves accountants something to round with.
            most = oracle.DELTA * (1 - Fraction(1, 10**6))
            assert found.key_delta == (most if is_private else 0)
        else:
            left = oracle.DELTA * (Fraction(1, 2) if is_private else 1)
            assert found.key_delta == oracle.DELTA - left
            # One Gaussian for all; profiles get their share of its inverse variance.
            whole = gaussian_multiplier(float(oracle.EPSILON - each * ranks), float(left))
            part = float(share) if profiles else 0
            wanted = whole * math.sqrt(noisy / (1 - part))
            assert wanted * (1 - 1e-9) <= found.noise.multiplier <= wanted * (1 + 1e-4)
            if profiles:
                wanted = whole * math.sqrt(profiles / part)
                assert wanted * (1 - 1e-9) <= found.inference_noise.multiplier
                assert found.inference_noise.multiplier <= wanted * (1 + 1e-4)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_composed_cost_is_what_was_asked(case, types):
    catalog = oracle.catalog_of(case, types)
    found = oracle.prepared(case, catalog).price
    assert certified_epsilon(found.loss, delta=found.delta) <= float(found.epsilon) * (1 + 1e-9)


@pytest.mark.lengthy
@pytest.mark.parametrize("case", CASES, ids=named)
def test_answer(case, types, engine, monkeypatch):
    """Without noise, the answer is the oracle's."""
    # Where limits are found, the tightest that leaves nobody out.
    monkeypatch.setattr(limits, "good_rank", lambda *given, **named: 0.5)
    catalog = oracle.catalog_of(case, types)
    one = oracle.without_noise(oracle.prepared(case, catalog))
    # An extreme may lie beyond the data with the rest of it.
    confidence = 1 - Fraction(1, 10**12)
    released = run(one, connection=engine, catalog=catalog, confidence=confidence, source=SYSTEM)
    if len(one.layout.families) > len(one.layout.totals):
        wanted = case.bounding
        got = released.bounding
        if got is not None and hasattr(got, "limit"):
            got = replace(got, limit=Fraction(got.limit))
        assert got == wanted
    if case.threshold is not None:
        assert float(released.threshold) == pytest.approx(case.threshold, abs=2e-3)
    columns = columns_of(one, released, confidence=confidence)
    shown = [
        dict(zip(columns.values, row, strict=True))
        for row in zip(*(column.to_pylist() for column in columns.values.values()), strict=True)
    ]
    compare(case, shown, oracle.Meaning(case).answers())


def compare(case, shown, meant):
    keys = list(case.keys)
    if case.check == "total":
        for name in case.answer:
            assert close(sum(r[name] for r in shown), sum(r[name] for r in meant), case)
        return
    if case.sort is None:
        shown, meant = (sorted(rows, key=lambda r: order(r, keys)) for rows in (shown, meant))
    assert [order(r, keys) for r in shown] == [order(r, keys) for r in meant]
    for got, wanted in zip(shown, meant, strict=True):
        for name in case.answer:
            assert close(got[name], wanted[name], case), (name, got, wanted)


def order(row, keys):
    return tuple(plain(row[key]) for key in keys)


def plain(value):
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    return f"{float(value):g}" if isinstance(value, int | float) else str(value)


def close(got, wanted, case):
    if isinstance(wanted, oracle.Between):
        slack = 1e-9 * max(1.0, abs(wanted.high))
        return wanted.low - slack <= got <= wanted.high + slack
    if isinstance(wanted, float) and math.isnan(wanted):
        return True  # a mean of nothing: whatever it says, it says it is unreliable
    return math.isclose(got, wanted, rel_tol=case.relative, abs_tol=case.absolute)
