# ruff: noqa: E501 (a question reads better on one line)
"""Questions over released answers: they mean what SQL means, cost what their parts cost."""

from fractions import Fraction

import duckdb
import numpy as np
import outside_tables as outside
import pyarrow as pa
import pytest

from discreet import protect
from discreet.errors import BudgetExceeded, Refused
from discreet.privacy import Guarantee, Unit
from discreet.tables import Offer
from discreet.tables.engines.compile.scalars import scalar_sql
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.filling import filled, lookups_in
from discreet.tables.model.resources import Resources
from discreet.tables.model.scalar import Call, ColumnRef, Literal, ReleasedValue
from discreet.tables.release.outer import _literal
from discreet.tables.sql.parse import parse, parse_question
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
    "a mode": "SELECT MODE(region) AS m FROM sales WHERE amount > 20",
    "modes of groups": "SELECT product, UPPER(MODE(region)) AS m FROM sales WHERE amount > 20 GROUP BY product ORDER BY product",
    "a mode within a group": "SELECT MODE() WITHIN GROUP (ORDER BY type) AS m FROM stock",
    "a mode of few": "SELECT MODE(region) AS m FROM sales WHERE amount > (SELECT AVG(amount) FROM sales)",
    "rows below a mean": "SELECT COUNT(*) AS n, SUM(amount) AS s FROM sales WHERE amount < (SELECT AVG(amount) FROM sales)",
    "rows above a computed value": "SELECT region, COUNT(*) AS n FROM sales WHERE amount > (SELECT 1.2 * AVG(amount) + 0.5 FROM sales WHERE quantity > 1) GROUP BY region",
    "rows of large groups": "SELECT COUNT(*) AS n FROM sales WHERE region IN (SELECT region FROM sales GROUP BY region HAVING COUNT(*) > 100)",
    "rows of other groups": "SELECT product, COUNT(*) AS n FROM sales WHERE product NOT IN (SELECT product FROM sales GROUP BY product ORDER BY SUM(amount) DESC, product LIMIT 1) GROUP BY product",
    "rows of no group": "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE amount > 50) AS k FROM sales WHERE region NOT IN (SELECT region FROM sales GROUP BY region HAVING COUNT(*) < 0)",
    "the first group's rows": "SELECT COUNT(*) AS n FROM sales WHERE region = (SELECT region FROM sales GROUP BY region ORDER BY COUNT(*) DESC, region LIMIT 1)",
    "a value in CASE": "SELECT region, SUM(CASE WHEN amount > (SELECT AVG(amount) FROM sales) THEN 1 ELSE 0 END) AS n FROM sales GROUP BY region",
    "a value in an inner query": "SELECT region, SUM(over) AS s FROM (SELECT person, region, GREATEST(LEAST(amount - (SELECT AVG(amount) FROM sales), 500), 0) AS over FROM sales) GROUP BY region",
    "a value of WITH": "WITH m AS (SELECT AVG(amount) AS a FROM sales), large AS (SELECT person, region FROM sales WHERE amount > (SELECT a FROM m)) SELECT region, COUNT(*) AS n FROM large GROUP BY region",
    "values of values": "SELECT COUNT(*) AS n FROM sales WHERE amount > (SELECT AVG(amount) FROM sales WHERE quantity > (SELECT AVG(quantity) FROM sales))",
    "a value inside IN": "SELECT COUNT(*) AS n FROM players WHERE person IN (SELECT person FROM sales WHERE amount > (SELECT AVG(amount) FROM sales))",
    "a public value": "SELECT COUNT(*) AS n FROM purchases WHERE product > (SELECT AVG(product) FROM products)",
    "a public list in an aggregate": "SELECT COUNT(DISTINCT CASE WHEN product IN (SELECT product FROM products) THEN product END) AS n FROM purchases",
    "a value before a rank": "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM sales WHERE amount > (SELECT AVG(amount) FROM sales) GROUP BY region",
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
        # One mode, alone.
        ("SELECT MODE(sex), COUNT(*) FROM people", "aggregate_top"),
        ("SELECT MODE(sex), MODE(region) FROM people", "aggregate_top"),
        ("SELECT MODE(person_id) FROM people", "unit_key"),
        ("SELECT sex, MODE(region) FROM people", "not_grouped"),
        # A value that is another for each row, or of rows that nobody released.
        ("SELECT COUNT(*) FROM people p WHERE age < (SELECT AVG(age) FROM people q WHERE q.sex = p.sex)", "subquery"),
        ("SELECT COUNT(*) FROM people p WHERE age < (SELECT MAX(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) g WHERE g.sex = p.sex)", "subquery"),
        ("SELECT COUNT(*) FROM people WHERE age = (SELECT age FROM people)", "subquery"),
        ("SELECT COUNT(*) FROM people WHERE age > (SELECT sex, COUNT(*) FROM people GROUP BY sex)", "subquery"),
        ("SELECT COUNT(*) FROM people WHERE age > released(0)", "function"),
        ("SELECT COUNT(*) FROM people WHERE age > (SELECT random() * COUNT(*) FROM people)", "subquery"),
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


def test_a_part_that_compares_with_a_released_value_is_the_question_with_that_value():
    """Whatever was released, what is run then is a plain question, of the same price."""
    with temporary_tables(epsilon=3) as T:
        catalog = T.catalog
    asked = parse_question(
        "SELECT COUNT(*) AS n FROM people WHERE hours < (SELECT AVG(hours) FROM people)", catalog
    )
    listed = parse_question(
        "SELECT COUNT(*) AS n FROM people WHERE sex IN (SELECT sex FROM people GROUP BY sex)",
        catalog,
    )
    assert [len(one.parts) for one in (asked, listed)] == [2, 2]
    assert [lookups_in(part.rows) for part in asked.parts] == [set(), {0}]
    for value in (0.5, -3.25, 1e300):
        rows = filled(asked.parts[1].rows, {0: (Literal(value, "double"),)})
        assert (
            rows == parse(f"SELECT COUNT(*) AS n FROM people WHERE hours < {value}", catalog).rows
        )
    some = tuple(Literal(one, "text") for one in ("f", "m"))
    rows = filled(listed.parts[1].rows, {0: some})
    assert rows == parse("SELECT COUNT(*) AS n FROM people WHERE sex IN ('f', 'm')", catalog).rows


def test_a_list_of_released_values_says_what_in_says():
    among = Call("in", (ColumnRef("x"), ReleasedValue(0)))
    one, null = Literal(1.0, "double"), Literal(None, "double")
    meanings = {
        (): "FALSE", (one,): "x IN (1)", (null,): "x IN (NULL)", (one, null): "x IN (1, NULL)",
    }  # fmt: skip
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest([1, 2, NULL])::DOUBLE AS x")
        for values, meant in meanings.items():
            node = scalar_sql(filled(among, {0: values}), DUCKDB)
            asked = f"SELECT COUNT(*) FROM t WHERE ({node}) IS DISTINCT FROM ({meant})"
            assert connection.execute(asked).fetchone() == (0,), node


def test_released_values_that_no_literal_can_tell_are_null():
    odd = (
        (float("nan"), "double"),
        (float("inf"), "double"),
        ("a\0b", "text"),
        ("10000-01-01", "date"),
    )
    for value, type_ in odd:
        assert _literal(value, type_) == Literal(None, type_)
    moment = "2024-01-01 10:00:00.000000"
    assert _literal(moment, "timestamp") == Literal(moment, "timestamp")


def test_looking_up_is_part_of_the_one_charge_and_asking_again_is_free():
    asked = "SELECT COUNT(*) AS n FROM people WHERE income > (SELECT AVG(income) FROM people)"
    with temporary_tables(epsilon=30) as T:
        quote = T.quote(asked, epsilon=1)
        assert "2 releases" in quote.notes[0]
        first = T.sql(asked, epsilon=1)
        assert sum(entry["kind"] == "charge" for entry in T.account.history()) == 1
        assert first.loss == quote.loss
        assert first.epsilon == 1
        assert first.errors["n"][0] > 0
        again = T.sql(asked, epsilon=1)
        assert again.is_recalled
        assert again.to_json() == first.to_json()
        other = T.sql(asked.replace("AVG(income)", "AVG(income) + 1"), epsilon=1)
        assert not other.is_recalled


@pytest.mark.lengthy
def test_what_takes_too_long_over_public_tables_is_refused_before_the_charge(tmp_path):
    many = {"many": pa.table({"i": range(3000)})}
    joined = ", ".join(f"many AS m{i}" for i in range(6))
    asked = f"SELECT SUM(m0.i * m5.i) AS s, MAX(g.n) AS n FROM {joined}, (SELECT COUNT(*) AS n FROM people) g"
    with protect(
        pa.table({"person": range(50)}), name="people", unit="person", public=many,
        guarantee=Guarantee(epsilon=3), resources=Resources(seconds=0.5), ledger=tmp_path / "budget.db",
    ) as T:  # fmt: skip
        with pytest.raises(Refused, match="longer than it may"):
            T.sql(asked, epsilon=1)
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
