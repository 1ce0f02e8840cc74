# ruff: noqa: E501 (a question reads better on one line)
"""Questions over released answers: they mean what SQL means, cost what their parts cost."""

from fractions import Fraction

import duckdb
import numpy as np
import outside_tables as outside
import pytest

from discreet import protect
from discreet.errors import BudgetExceeded, Refused
from discreet.privacy import Guarantee, Unit
from discreet.tables import Offer
from discreet.testing import temporary_tables

pytestmark = pytest.mark.filterwarnings("ignore::discreet.errors.PrivacyWarning")

MUCH = {"epsilon": 1e6, "delta": 1e-12, "confidence": 1 - 1e-9}
TABLES = ("players", "sales", "stock", "purchases")

SHAPES = {
    "the largest of groups": "SELECT MAX(n) AS m FROM (SELECT region, COUNT(*) AS n FROM sales GROUP BY region)",
    "a mean of sums": "SELECT AVG(s) AS m, COUNT(*) AS k FROM (SELECT region, SUM(amount) AS s FROM sales GROUP BY region)",
    "groups of groups": "SELECT type, MAX(n) AS most FROM (SELECT type, name, COUNT(*) AS n FROM stock GROUP BY type, name) GROUP BY type",
    "how many groups": "SELECT COUNT(*) AS k FROM (SELECT DISTINCT region FROM sales)",
    "a rank": "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM sales GROUP BY region ORDER BY r",
    "a share of the whole": "SELECT region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM sales GROUP BY region",
    "a running sum": "SELECT quantity + 1 AS m, SUM(SUM(amount)) OVER (ORDER BY quantity + 1) AS s FROM sales GROUP BY m ORDER BY m",
    "the one before": "SELECT quantity, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY quantity) AS d FROM sales GROUP BY quantity",
    "a named window": "SELECT region, product, SUM(amount) AS s, RANK() OVER w AS r FROM sales GROUP BY region, product WINDOW w AS (PARTITION BY region ORDER BY SUM(amount) DESC)",
    "QUALIFY": "SELECT region, product, COUNT(*) AS n FROM sales GROUP BY region, product QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY COUNT(*) DESC) = 1",
    "QUALIFY by a name": "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM sales GROUP BY region QUALIFY r <= 2",
    "a subquery in HAVING": "SELECT region, COUNT(*) AS n FROM sales GROUP BY region HAVING COUNT(*) > (SELECT COUNT(*) / 5 FROM sales)",
    "a subquery in SELECT": "SELECT region, AVG(amount) - (SELECT AVG(amount) FROM sales) AS d FROM sales GROUP BY region",
    "two parts joined": "SELECT a.region, a.s / b.n AS mean FROM (SELECT region, SUM(amount) AS s FROM sales GROUP BY region) a JOIN (SELECT region, COUNT(*) AS n FROM sales GROUP BY region) b USING (region)",
    "WITH, twice": "WITH t AS (SELECT region, SUM(amount) AS s FROM sales GROUP BY region) SELECT region, s FROM t WHERE s > (SELECT AVG(s) FROM t) ORDER BY s DESC",
    "WITH over WITH": "WITH rows AS (SELECT person, region, amount FROM sales WHERE amount > 50), t AS (SELECT region, COUNT(*) AS n FROM rows GROUP BY region) SELECT MIN(n) AS least, MAX(n) AS most FROM t",
    "a star": "SELECT * FROM (SELECT region, COUNT(*) AS n FROM sales GROUP BY region) WHERE region <> 'east' ORDER BY n",
    "a public table": "SELECT p.name, s.n * p.cost AS spent FROM products p JOIN (SELECT product, COUNT(*) AS n FROM purchases GROUP BY product) s ON s.product = p.product",
    "UNION ALL": "SELECT 'sales' AS what, COUNT(*) AS n FROM sales UNION ALL SELECT 'stock', COUNT(*) FROM stock",
    "UNION": "SELECT region FROM sales GROUP BY region UNION SELECT 'nowhere'",
    "EXCEPT": "SELECT product FROM products EXCEPT SELECT product FROM purchases WHERE product < 3 GROUP BY product",
    "ROLLUP": "SELECT region, product, COUNT(*) AS n, AVG(amount) AS m FROM sales GROUP BY ROLLUP (region, product)",
    "CUBE with HAVING": "SELECT region, product, COUNT(*) AS n FROM sales GROUP BY CUBE (region, product) HAVING COUNT(*) > 700",
    "GROUPING in CASE": "SELECT CASE WHEN GROUPING(region) = 1 THEN 'all' ELSE region END AS region, COUNT(*) AS n FROM sales GROUP BY ROLLUP (region) ORDER BY GROUPING(region), n DESC LIMIT 3",
    "sets beside a key": "SELECT type, name, SUM(amount) AS s FROM stock GROUP BY type, GROUPING SETS ((name), ())",
    "a key that is aggregated too": "SELECT quantity, SUM(quantity) AS s FROM sales GROUP BY ROLLUP (quantity)",
    "a window over sets": "SELECT region, GROUPING(region) AS g, COUNT(*) AS n, RANK() OVER (PARTITION BY GROUPING(region) ORDER BY COUNT(*) DESC) AS r FROM sales GROUP BY ROLLUP (region)",
    "an inner LIMIT": "SELECT SUM(n) AS s FROM (SELECT quantity, COUNT(*) AS n FROM sales WHERE quantity > 2 GROUP BY quantity ORDER BY quantity LIMIT 3)",
    "a schema's name": "SELECT main.sales.region, COUNT(*) AS n FROM main.sales WHERE sales.amount > 9 GROUP BY main.sales.region",
    "a quoted schema": "SELECT COUNT(*) AS n FROM \"main\".\"sales\" AS s WHERE s.amount > 9",
    "a table in parentheses": "SELECT COUNT(*) AS n FROM (sales)",
    "joins in parentheses": "SELECT p.name, COUNT(*) AS n FROM (purchases s JOIN products p ON s.product = p.product) GROUP BY p.name",
    "joins after parentheses": "SELECT p.name, COUNT(*) AS n FROM (purchases s JOIN products p USING (product)) JOIN fruits f ON f.fruit = 'fig' GROUP BY p.name",
    "a RIGHT JOIN": "SELECT p.name, COUNT(*) AS n, COUNT(p.cost) AS k FROM products p RIGHT JOIN purchases s ON s.product = p.product AND p.cost > 12 GROUP BY p.name",
    "a RIGHT JOIN of people": "SELECT COUNT(*) AS n, COUNT(a.amount) AS k FROM sales a RIGHT JOIN players b ON a.person = b.person AND a.amount > 50",
    "units first, groups then": "SELECT MAX(m) AS most FROM (SELECT k, COUNT(*) AS m FROM (SELECT person, COUNT(*) AS k FROM sales GROUP BY person) GROUP BY k)",
}  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def tables(plain, tmp_path_factory):
    private = outside.made(plain, {name: outside.PEOPLE[name] for name in TABLES})
    columns = {name: outside.COLUMNS[name] for name in TABLES}
    public = outside.made(plain, outside.PUBLIC)
    with protect(
        private, name="people", unit="person", rows=4, public=public, columns=columns,
        guarantee=Guarantee(epsilon=1e10, delta=1e-3),
        ledger=tmp_path_factory.mktemp("composite") / "budget.db",
    ) as opened:  # fmt: skip
        yield opened


@pytest.mark.lengthy
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_means_what_it_means_in_sql(shape, tables, plain):
    answer = tables.sql(SHAPES[shape], **MUCH)
    truth = plain.sql(SHAPES[shape]).to_arrow_table()
    assert list(answer.columns) == truth.column_names
    shown = outside.plain_rows([answer.values[name].tolist() for name in answer.columns])
    meant = outside.plain_rows([column.to_pylist() for column in truth.columns])
    assert meant
    assert len(shown) == len(meant)
    assert outside.unmatched(shown, meant, 0.01) == []
    if "ORDER BY" in SHAPES[shape].rsplit(")", 1)[-1]:
        assert all(
            outside.unmatched([a], [b], 0.01) == [] for a, b in zip(shown, meant, strict=True)
        )


@pytest.mark.lengthy
def test_public_tables_alone_are_exact_and_free(tables, plain):
    before = tables.remaining
    for sql in (
        "SELECT * FROM products",
        "SELECT name, price - cost AS margin FROM products WHERE price > 20 ORDER BY 2 DESC LIMIT 2",
        "SELECT COUNT(*) AS n, AVG(price) AS mean FROM products",
        "SELECT p.name, f.fruit FROM products p, fruits f WHERE p.product = 1",
    ):
        answer = tables.sql(sql, epsilon=1)
        truth = plain.sql(sql).fetchall()
        assert [tuple(row.values()) for row in _values(answer)] == truth
        assert (answer.epsilon, answer.delta) == (0, 0)
        assert "exact" in answer.notes[0]
    assert tables.quote("SELECT * FROM products", epsilon=1).share == 0
    assert tables.remaining == before


def _values(answer):
    return [{name: row[name] for name in answer.columns} for row in answer]


def test_bars_stand_where_a_column_is_a_released_one_and_nowhere_else():
    with temporary_tables(epsilon=30) as T:
        plain = T.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        ranked = T.sql(
            "SELECT sex, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r, 2 * COUNT(*) AS twice "
            "FROM people GROUP BY sex", epsilon=1,
        )  # fmt: skip
        assert ranked.keys == ("sex",)
        assert np.array_equal(ranked.errors["n"], plain.errors["n"])
        assert np.allclose(ranked.errors["twice"], 2 * plain.errors["n"])
        assert np.isnan(ranked.errors["r"]).all()
        assert ranked.notes == ("Computed from released values, without error bars: r.",)
        sets = T.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)", epsilon=1)
        assert sets.keys == ("sex",)
        assert (sets.lows["n"] <= sets["n"]).all()
        assert (sets["n"] <= sets.highs["n"]).all()
        assert (sets.errors["n"] > plain.errors["n"].max()).all()  # each set has half of the price
        most = T.sql("SELECT MAX(n) AS m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)",
                     epsilon=1)  # fmt: skip
        assert np.isnan(most.errors["m"]).all()
        assert np.isnan(most.highs["m"]).all()


def test_all_parts_are_one_charge_of_the_whole_price_and_asking_again_is_free():
    asked = "SELECT sex, region, COUNT(*) AS n FROM people GROUP BY CUBE (sex, region)"
    with temporary_tables(epsilon=30, delta=1e-5) as T:
        quote = T.quote(asked, epsilon=1, delta=1e-7)
        first = T.sql(asked, epsilon=1, delta=1e-7)
        assert sum(entry["kind"] == "charge" for entry in T.account.history()) == 1
        assert first.epsilon == 1
        assert first.delta <= 1e-7
        assert first.loss == quote.loss
        assert T.remaining == pytest.approx(1 - quote.share, abs=1e-6)
        left = T.remaining
        again = T.sql(asked, epsilon=1, delta=1e-7)
        assert again.is_recalled
        assert again.to_json() == first.to_json()
        assert T.remaining == left
        assert "answered before" in T.quote(asked, epsilon=1, delta=1e-7).notes[0]


@pytest.mark.parametrize("offer", [Offer(share="4%"), Offer(within=40)])
def test_parts_are_paid_as_any_question_is(offer):
    asked = "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)"
    with temporary_tables(epsilon=3) as T:
        quote = T.quote(asked, offer)
        if offer.share is not None:
            assert quote.share <= Fraction(4, 100) * (1 + 1e-6)
            assert quote.share > 0.02
        else:
            assert all(one.half_width <= 40 for one in quote.expected)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT MAX(k) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)", "outer"),
        ("SELECT ARRAY_AGG(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)", "outer"),
        ("SELECT n + sex AS x FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)", "outer"),
        ("SELECT MAX(n) FROM (SELECT sex, COUNT(*) AS n FROM peple GROUP BY sex)", "unknown_table"),
        ("SELECT MAX(n) FROM (SELECT sox, COUNT(*) AS n FROM people GROUP BY 1)", "unknown_column"),
        ("SELECT getenv('HOME') FROM (SELECT COUNT(*) AS n FROM people)", "system"),
        ("SELECT random() FROM (SELECT COUNT(*) AS n FROM people)", "random"),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM people), read_text('/etc/passwd')", "table_function"),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM people), range(9)", "table_function"),
        # One row of each person, or rows of people beside released groups: never shown.
        ("SELECT MAX(m) FROM (SELECT person_id, MEDIAN(age) AS m FROM people GROUP BY person_id)", "aggregate_rows"),
        ("SELECT p.age, g.n FROM people p, (SELECT COUNT(*) AS n FROM people) g", "unit_missing"),
        ("SELECT age FROM people UNION ALL SELECT COUNT(*) FROM people", "set_operation"),
        ("SELECT age, RANK() OVER (ORDER BY age) FROM people", "not_grouped"),
        ("SELECT * FROM (SELECT age FROM people)", "star"),
        ("SELECT (SELECT MAX(age) FROM people p WHERE p.sex = g.sex) FROM (SELECT sex FROM people GROUP BY sex) g", "unknown_table"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY CUBE (sex, region, role, education, employment, age, hours)", "too_complex"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused_before_the_charge(sql, code):
    with temporary_tables(epsilon=3) as T:
        with pytest.raises(Refused) as refusal:
            T.sql(sql, epsilon=1)
        assert refusal.value.code == code
        assert "Nothing was spent" in str(refusal.value)
        assert T.remaining == 1


def test_a_price_that_does_not_fit_is_refused_as_a_whole():
    with temporary_tables(epsilon=1) as T:
        with pytest.raises(BudgetExceeded):
            T.sql("SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)", epsilon=1.5)
        assert T.remaining == 1


def test_records_as_units_have_shapes_too():
    with temporary_tables(epsilon=30, unit=Unit.record(), rows=None) as T:
        answer = T.sql("SELECT MAX(n) AS m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)",
                       epsilon=10)  # fmt: skip
        assert 900 < answer.value < 1200


def test_what_cannot_be_computed_of_released_values_is_null():
    """By then it is paid for, so nothing may fail: not even an integer that is too large."""
    asked = "SELECT k * k * k AS cube, n FROM (SELECT CAST(age // 50 AS BIGINT) * 9000000000000000000 AS k, COUNT(*) AS n FROM people GROUP BY 1)"
    with temporary_tables(epsilon=1e7) as T:
        answer = T.sql(asked, epsilon=1e5)
    assert len(answer) > 0
