"""Empirical audits of whole questions: no attack on the answers beats what was promised.

Each audit compares what is released with one unit in the table and without it (or with another in
its place). Everything but the engine's exact table, which is the same each time, is carried out
anew for every sample.
"""

from fractions import Fraction

import pyarrow as pa
import pytest

from discreet import audit
from discreet.noise import SYSTEM
from discreet.privacy import Neighbours, Unit
from discreet.tables.algorithms.noise import Noise
from discreet.tables.algorithms.quantile_draw import Ranks
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import Groups, Norm, Totals
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import price
from discreet.tables.release.execution import context as release_context
from discreet.tables.release.execution import sums
from discreet.tables.release.execution.limits import Limits
from discreet.tables.release.execution.run import run
from discreet.tables.sql.parse import parse

FALSE_ALARM = 1e-9  # chance that a correct release fails an audit
QUICK, MANY = 800, 8_000
CONFIDENCE = Fraction(95, 100)


class Kept:
    """An engine that computes each exact table once.

    The units besides the audited one have one group each, so that salts decide nothing.
    """

    def __init__(self, rows):
        columns = {name: [row[i] for row in rows] for i, name in enumerate(("person", "key", "x"))}
        types = {"person": pa.int64(), "key": pa.string(), "x": pa.float64()}
        table = pa.table({k: pa.array(v, type=types[k]) for k, v in columns.items()})
        self.inner, self.known = DuckDBConnection({"t": table}, threads=1), {}

    def sql(self, statement, /):
        return ""

    def aggregate(self, statement, /):
        asked = ("of", "value", "cells", "bounding", "place", "least")
        known = (type(statement), *(getattr(statement, name, None) for name in asked))
        if known not in self.known:
            self.known[known] = self.inner.aggregate(statement)
        return self.known[known]


OTHERS = [(i, "common", 1.0) for i in range(1, 30)]
HEAVY = [(0, "common", 10.0)] * 50
SPREAD = [(0, f"key {i % 4}", 10.0) for i in range(40)]
MANY_VALUES = [(0, "common", 100.0 + i) for i in range(40)]
RARE = [(0, "mine alone", 5.0)] * 40
LOW = [(0, "common", -10.0)] * 50


class Audited:
    """A question, two neighbouring tables, and the number that an attacker looks at."""

    def __init__(self, sql, pair, output, *, rows=3, groups=2, epsilon=1, delta=0, **settings):
        self.sql, self.output = sql, output
        self.epsilon, self.delta = Fraction(epsilon), Fraction(delta)
        self.bounding = settings.get("bounding")
        self.share = settings.get("share", 1)  # of epsilon, that the output costs
        columns = [("person", "BIGINT"), ("key", "VARCHAR"), ("x", "DOUBLE")]
        self.catalog = Catalog(
            unit=settings.get("unit", Unit.column("person")),
            neighbours=Neighbours(settings.get("neighbours", "add_remove")),
            tables=(Table(name="t", columns=tuple(Column(name=n, type=t) for n, t in columns)),),
            rows=rows,
            groups=groups,
        )
        self.pair = tuple(Kept(OTHERS[: settings.get("others", 29)] + own) for own in pair)

    def prepared(self):
        query = parse(self.sql, self.catalog)
        layout = lay_out(query, bounding=self.bounding)
        found = price(
            query, layout, self.catalog,
            epsilon=self.epsilon, delta=self.delta, bounding=self.bounding,
        )  # fmt: skip
        return Prepared(
            question=self.sql, query=query, layout=layout, price=found, bounding=self.bounding
        )

    def audit(self, samples):
        prepared = self.prepared()

        def release(engine, count):
            return [
                self.output(
                    run(
                        prepared,
                        connection=engine,
                        catalog=self.catalog,
                        confidence=CONFIDENCE,
                        source=SYSTEM,
                    )
                )
                for _ in range(count)
            ]

        return audit.mechanism(
            release,
            pair=self.pair,
            epsilon=self.epsilon * self.share,
            delta=self.delta,
            samples=samples,
            confidence=1 - FALSE_ALARM,
            batch=True,
        )


def cell(family, place):
    return lambda released: float(released.families[family].noisy[0, place])


def in_profile(index, size):
    """Look at the bin of a profile that somebody of this size is in."""

    def output(released):
        profile = released.profiles[index]
        return float(profile.bins[sum(edge < size for edge in profile.edges)])

    return output


def shown(key):
    return lambda released: (key,) in released.shown.groups


AUDITED = {
    "count": lambda: Audited("SELECT COUNT(*) AS n FROM t", (HEAVY, []), cell(0, 0)),
    "sum": lambda: Audited("SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t", (HEAVY, []), cell(0, 0)),
    "whole sum": lambda: Audited(
        "SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t",
        (HEAVY, []),
        cell(0, 0),
        bounding=Totals(limit=Fraction(7, 3), order=1),
    ),
    "whole sum of a few rows": lambda: Audited(
        "SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t",
        (HEAVY[:3], []),
        cell(0, 0),
        bounding=Totals(limit=30, order=1),
    ),
    "whole sum, L2": lambda: Audited(
        "SELECT key, SUM(CLAMP(x, 0, 10)) AS s FROM t WHERE key IN ('common', 'key 0', 'key 1',"
        " 'key 2', 'key 3') GROUP BY key",
        (SPREAD, []),
        lambda released: float(released.families[0].noisy[1:, 0].sum()),
        bounding=Totals(limit=50, order=2),
        delta=Fraction(1, 100),
    ),
    "whole sum, replace": lambda: Audited(
        "SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t",
        (HEAVY, LOW),
        cell(0, 0),
        bounding=Totals(limit=30, order=1),
        neighbours="replace_one",
    ),
    "inferred total": lambda: Audited(
        "SELECT SUM(CLAMP(x, 0, 10)) AS s FROM t",
        (HEAVY, []),
        in_profile(0, 50),  # 50 rows of the largest value
        rows=None,
        epsilon=5,
        share=Fraction(1, 5),
        others=3,
    ),
    "mean": lambda: Audited("SELECT AVG(CLAMP(x, 0, 10)) AS m FROM t", (HEAVY, []), cell(0, 1)),
    "Gaussian count": lambda: Audited(
        "SELECT COUNT(*) AS n FROM t",
        (HEAVY, []),
        cell(0, 0),
        bounding=Norm(limit=3, order=2),
        delta=Fraction(1, 100),
    ),
    "private keys": lambda: Audited(
        "SELECT key, COUNT(*) AS n FROM t GROUP BY key",
        (RARE, []),
        shown("mine alone"),
        bounding=Norm(limit=3, order=1),
        delta=Fraction(1, 20),
    ),
    "private keys, L2": lambda: Audited(
        "SELECT key, COUNT(*) AS n FROM t GROUP BY key",
        (RARE, []),
        shown("mine alone"),
        bounding=Norm(limit=3, order=2),
        delta=Fraction(1, 20),
    ),
    "quantile": lambda: Audited(
        "SELECT MEDIAN(CLAMP(x, 0, 10)) AS q FROM t",
        (HEAVY, []),
        lambda released: float(released.ranked[0].value[0]),
        others=3,
    ),
    "maximum": lambda: Audited(
        "SELECT MAX(CLAMP(x, 0, 10)) AS q FROM t",
        (HEAVY, []),
        lambda released: float(released.ranked[0].value[0]),
        others=3,
    ),
    "inferred limit": lambda: Audited(
        "SELECT COUNT(*) AS n FROM t",
        (HEAVY, []),
        in_profile(0, 50),
        rows=None,
        epsilon=5,
        share=Fraction(1, 5),
        others=3,
    ),
    "inferred bound": lambda: Audited(
        "SELECT SUM(x) AS s FROM t",
        (HEAVY, []),
        in_profile(1, 10),
        epsilon=10,
        share=Fraction(1, 10),
        others=3,
    ),
    "distinct values": lambda: Audited(
        "SELECT COUNT(DISTINCT x) AS n FROM t",
        (MANY_VALUES, []),
        lambda released: float(released.distinct[0].noisy[0, 0]),
    ),
    "groups": lambda: Audited(
        "SELECT key, COUNT(*) AS n FROM t WHERE key IN ('common', 'key 0', 'key 1', 'key 2',"
        " 'key 3') GROUP BY key",
        (SPREAD, []),
        lambda released: float(released.families[0].noisy[1:, 0].sum()),
        bounding=Groups(groups=2, rows=3),
    ),
    "replace": lambda: Audited(
        "SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t",
        (HEAVY, LOW),
        cell(0, 0),
        neighbours="replace_one",
    ),
    "records": lambda: Audited(
        "SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t",
        (HEAVY[:1], []),
        cell(0, 0),
        unit=Unit.record(),
        rows=None,
    ),
    "groups of two units": lambda: Audited(
        "SELECT COUNT(*) AS n FROM t",
        (HEAVY + [(99, "common", 1.0)] * 9, []),
        cell(0, 0),
        unit=Unit.column("person").group(2),
    ),
}


IN_SHORT = (
    "count", "mean", "private keys", "quantile", "inferred limit", "distinct values", "groups",
    "replace",
)  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("name", IN_SHORT)
def test_no_attack_refutes_the_promise(name):
    found = AUDITED[name]().audit(QUICK)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_no_attack_refutes_the_promise_with_many_samples(name):
    # Every bound that is found has an exact table of its own to be computed.
    found = AUDITED[name]().audit(QUICK if name == "inferred bound" else MANY)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "sum", "mean", "replace", "records", "distinct values"])
def test_the_promise_is_not_far_from_the_truth(name):
    """Where one unit moves the answer as far as it can, much of epsilon is really lost."""
    assert AUDITED[name]().audit(MANY).epsilon_lower > 0.5


# Broken releases: each audit above can fail.


def little_noise(patch):
    real = Noise.add

    def add(self, values, *, sensitivity, source=SYSTEM):
        return real(self, values, sensitivity=Fraction(sensitivity) / 20, source=source)

    patch.setattr(Noise, "add", add)


def no_weights(patch):
    patch.setattr(Limits, "of_sums", lambda self: Norm(limit=10**6, order=1))
    patch.setattr(release_context, "sensitivity", lambda *given, **named: Fraction(3))


def no_totals(patch):
    patch.setattr(Limits, "of_total", lambda self, value: Fraction(10**6))
    patch.setattr(release_context, "sensitivity", lambda *given, **named: Fraction(3))


def no_threshold(patch):
    patch.setattr(sums, "threshold", lambda *given, **named: Fraction(0))


def sharp_ranks(patch):
    patch.setattr(Ranks, "sensitivity", lambda self, q=None: Fraction(1, 100))


BROKEN = {
    "count": little_noise,
    "sum": no_totals,
    "whole sum": no_totals,
    "whole sum of a few rows": little_noise,
    "whole sum, L2": little_noise,
    "whole sum, replace": little_noise,
    "inferred total": little_noise,
    "mean": no_weights,
    "Gaussian count": little_noise,
    "private keys": no_threshold,
    "private keys, L2": no_threshold,
    "quantile": sharp_ranks,
    "maximum": sharp_ranks,
    "inferred limit": little_noise,
    "inferred bound": little_noise,
    "distinct values": little_noise,
    "groups": little_noise,
    "replace": little_noise,
    "records": little_noise,
    "groups of two units": little_noise,
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", IN_SHORT)
def test_a_broken_release_is_refuted(name, monkeypatch):
    audited = AUDITED[name]()
    BROKEN[name](monkeypatch)
    assert not audited.audit(QUICK).passed


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BROKEN) - set(IN_SHORT)))
def test_any_broken_release_is_refuted(name, monkeypatch):
    audited = AUDITED[name]()
    BROKEN[name](monkeypatch)
    assert not audited.audit(QUICK).passed


def test_every_audit_has_a_broken_twin():
    assert set(BROKEN) == set(AUDITED)
