"""Protected tables as their users see them: paying, asking again, plans, watches, files."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import Guarantee, Unit, datasets
from discreet.accounting import delta as delta_of
from discreet.errors import BudgetExceeded, DataError, LedgerError, ParameterError, Refused
from discreet.ledger import Ledger
from discreet.tables import Groups, Norm, count, histogram, mean, median, open_tables, protect

PEOPLE = datasets.census(4000, seed=5)
VISITS = datasets.visits(8000, users=500, seed=5)
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def people(place):
    with protect(
        PEOPLE,
        name="people",
        unit="person_id",
        rows=1,
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        ledger=place,
        columns={"income": {"bounds": (0, 200_000)}, "sex": {"keys": ["female", "male"]}},
    ) as tables:
        yield tables


@pytest.fixture
def visits(place):
    with protect(
        {"visits": VISITS, "people": {"user_id": PEOPLE["person_id"], "age": PEOPLE["age"]}},
        name="city",
        unit="user_id",
        guarantee=Guarantee(epsilon=1000, delta=1e-4),
        ledger=place,
        public={"places": {"place": np.unique(VISITS["place"]), "is_indoor": np.arange(12) % 2}},
    ) as tables:
        yield tables


def test_a_quote_is_free_and_matches_what_is_charged(people):
    quote = people.quote(COUNT, epsilon=0.5)
    assert people.account.used == 0
    assert quote
    assert quote.delta == 0  # Laplace noise needs none
    result = people.sql(COUNT, epsilon=0.5)
    assert people.account.used == pytest.approx(quote.budgets.used_after)
    assert result.errors["n"][0] == pytest.approx(np.sqrt(2) / 0.5, rel=1e-6)
    half = (result.highs["n"] - result.lows["n"])[0] / 2
    assert half == pytest.approx(quote.expected[0].half_width)


def test_the_same_question_again_is_free_also_for_less_and_in_other_words(people):
    first = people.sql(COUNT, epsilon=0.5)
    used = people.account.used
    told = " ".join(str(people.quote(COUNT, epsilon=0.5)).split())
    assert "asking again costs the total nothing" in told
    for text, epsilon in ((COUNT, 0.5), ("select  count(*) as n\nfrom People", 0.1)):
        again = people.sql(text, epsilon=epsilon)
        assert again.is_recalled
        assert again.value == first.value
        assert again.to_json() == first.to_json()
    assert people.account.used == used
    better = people.sql(COUNT, epsilon=0.6)
    assert not better.is_recalled
    assert people.account.used > used


def test_what_within_promises_is_kept_by_the_cheapest_price(people):
    quote = people.quote(COUNT, within=20)
    assert quote.expected[0].half_width <= 20
    assert people.quote(COUNT, epsilon=quote.epsilon * 0.99).expected[0].half_width > 20
    relative = people.quote(COUNT, within="1%", of=4000)
    assert relative.expected[0].half_width == pytest.approx(40, rel=1e-2)
    mean_of = "SELECT AVG(income) AS pay FROM people"
    assert people.quote(mean_of, within=500, size=4000).expected[0].half_width <= 500
    with pytest.raises(ParameterError, match="needs of="):
        people.quote(COUNT, within="1%")
    with pytest.raises(ParameterError, match="cannot be told beforehand"):
        people.quote(mean_of, within=500)


def test_a_share_is_a_share_of_the_whole_budget_at_any_time(people):
    for question in (COUNT, "SELECT sex, AVG(income) AS pay FROM people GROUP BY sex"):
        before = people.account.used
        people.sql(question, share="10%")
        assert people.account.used - before == pytest.approx(0.1, rel=1e-2)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "exactly one of"),
        ({"epsilon": 1, "share": "5%"}, "exactly one of"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"share": "150%"}, "share must be"),
        ({"share": "much"}, "share must be"),
        ({"within": -1}, "within must be"),
        ({"epsilon": 1, "delta": 1}, "delta must be"),
        ({"epsilon": 1, "confidence": 1}, "confidence must be"),
        ({"epsilon": 1, "bounding": 5}, "bounding must be"),
        ({"epsilon": 1, "size": 0}, "size must be"),
    ],
)
def test_bad_terms_are_refused_before_anything_is_spent(people, terms, words):
    for ask in (people.quote, people.sql):
        with pytest.raises(ParameterError, match=words):
            ask(COUNT, **terms)
    assert people.account.used == 0


def test_what_does_not_fit_is_refused_and_no_data_is_read(people, monkeypatch):
    monkeypatch.setattr(
        people._opened.connection, "aggregate", lambda statement: pytest.fail("data was read")
    )
    assert not people.quote(COUNT, epsilon=4)
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        people.sql(COUNT, epsilon=4)
    assert people.account.used == 0


def test_a_budget_without_delta_gives_pure_answers_and_lists_only(place):
    with protect(
        PEOPLE, name="p", unit="person_id", rows=1, guarantee=Guarantee(epsilon=3), ledger=place
    ) as tables:
        listed = "SELECT sex, COUNT(*) AS n FROM p WHERE sex IN ('female', 'male') GROUP BY sex"
        assert len(tables.sql(listed, epsilon=1)) == 2
        with pytest.raises(ParameterError, match="delta above 0"):
            tables.sql("SELECT sex, COUNT(*) AS n FROM p GROUP BY sex", epsilon=1)


@pytest.mark.lengthy
def test_the_builder_asks_the_same_as_sql(people):
    asked = (
        people.where("age >= 18")
        .group_by("sex")
        .agg(n=count(), pay=mean("income", bounds=(0, 100_000)))
        .order_by("n DESC")
        .limit(1)
    )
    result = asked.release(epsilon=0.5)
    assert result.columns == ("sex", "n", "pay")
    assert len(result) == 1
    assert people.sql(asked.sql, epsilon=0.5).is_recalled
    assert asked.quote(epsilon=0.5).epsilon == 0.5
    listed = people.group_by("region", keys={"region": ["Ashford", "nowhere"]}).agg(n=count())
    assert list(listed.release(epsilon=0.5)["region"]) == ["Ashford", "nowhere"]
    bins = people.agg(people=histogram("age", bounds=(0, 100), bins=4)).release(epsilon=0.2)
    assert len(bins) == 4
    with pytest.raises(ParameterError, match="not among the columns"):
        people.group_by("sex", keys={"age": [1]})
    with pytest.raises(ParameterError, match="ask for something"):
        people.where("age > 3").release(epsilon=1)
    with pytest.raises(ParameterError, match="must be an aggregate"):
        people.agg(n="COUNT(*)")


@pytest.mark.lengthy
def test_sources_of_every_kind_give_the_same_answer(tmp_path):
    table = pa.table(PEOPLE)
    pq.write_table(table, tmp_path / "people.parquet")
    table.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    import duckdb

    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("arrived", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrived")
    sources = [
        PEOPLE, table, table.to_pandas(), pl.DataFrame(PEOPLE), str(tmp_path / "people.parquet"),
        tmp_path / "people.csv", f"{tmp_path / 'people.duckdb'}::people",
    ]  # fmt: skip
    question = "SELECT sex, COUNT(*) AS n, SUM(hours) AS h FROM people GROUP BY sex ORDER BY sex"
    for i, source in enumerate(sources):
        with protect(
            source,
            name="people",
            unit="person_id",
            rows=1,
            guarantee=Guarantee(epsilon=10**8, delta=1e-3),
            ledger=tmp_path / f"{i}.db",
            columns={"hours": {"bounds": (0, 100)}},
        ) as tables:
            found = tables.sql(question, epsilon=10**6).to_pandas(errors=False)
        frame = pd.DataFrame(PEOPLE).groupby("sex").agg(n=("sex", "size"), h=("hours", "sum"))
        assert found["sex"].tolist() == frame.index.tolist()
        assert np.allclose(found["n"], frame["n"], atol=1e-2)
        assert np.allclose(found["h"], frame["h"], atol=1)


def test_columns_of_several_tables_are_declared_by_table(place):
    with pytest.raises(ParameterError, match="speaks of table 'age'; the tables are people, odd"):
        protect(
            {"people": PEOPLE}, name="people", unit="person_id", ledger=place,
            guarantee=Guarantee(epsilon=3, delta=1e-6), public={"odd": {"n": [1, 3]}},
            columns={"age": {"bounds": (0, 100)}},
        )  # fmt: skip


def test_tables_of_one_account_join_on_the_unit_and_with_public_tables(visits):
    joined = (
        "SELECT is_indoor, COUNT(*) AS n, COUNT(DISTINCT visits.user_id) AS u "
        "FROM visits JOIN people USING (user_id) JOIN places ON visits.place = places.place "
        "WHERE age >= 18 AND is_indoor IN (0, 1) GROUP BY is_indoor"
    )
    result = visits.sql(joined, epsilon=100, bounding=Norm(limit=10**6, order=1))
    frame = pd.DataFrame(VISITS).merge(
        pd.DataFrame({"user_id": PEOPLE["person_id"], "age": PEOPLE["age"]}), on="user_id"
    )
    places = dict(zip(np.unique(VISITS["place"]), np.arange(12) % 2, strict=True))
    frame = frame[frame["age"] >= 18]
    exact = frame.groupby(frame["place"].map(places)).size()
    width = 25 * result.errors["n"]
    assert (np.abs(result["n"] - exact.to_numpy()) < width).all()


def test_limits_and_bounds_are_found_privately_where_none_are_declared(visits):
    result = visits.sql("SELECT COUNT(*) AS n, AVG(minutes) AS stay FROM visits", epsilon=20)
    facts = result.facts
    assert facts["bounding"]["origin"] == "inferred"
    assert 1 < facts["limits"]["rows"] < 10_000
    low, high = facts["aggregates"][1]["bounds"]
    assert low <= 5
    assert 100 <= high <= 500
    assert result["stay"][0] == pytest.approx(VISITS["minutes"].mean(), rel=0.1)


def test_bounding_by_groups_counts_at_most_so_many(visits):
    question = "SELECT place, COUNT(*) AS n FROM visits WHERE place IN ({}) GROUP BY place".format(
        ", ".join(f"'{p}'" for p in np.unique(VISITS["place"]))
    )
    result = visits.sql(question, epsilon=500, bounding=Groups(groups=2, rows=1))
    users = len(np.unique(VISITS["user_id"]))
    assert result["n"].sum() <= 2 * users + 100
    assert result.facts["bounding"] == {
        "kind": "groups", "groups": 2, "rows": 1, "origin": "asked",
    }  # fmt: skip


@pytest.mark.lengthy
def test_a_plan_shares_what_questions_have_in_common(people):
    texts = [
        "SELECT COUNT(*) AS n FROM people WHERE age >= 18",
        "SELECT AVG(income) AS pay FROM people WHERE age >= 18",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        "SELECT ROUND(AVG(income) / 12) AS monthly FROM people WHERE age >= 18",
        "SELECT HISTOGRAM(age, 0, 100, 5) AS n FROM people",
    ]
    plan = people.plan(texts, epsilon=1)
    assert people.account.used == 0
    assert len(plan.parts) == 3
    assert delta_of(plan.loss, epsilon=1) <= plan.delta
    results = plan.release()
    assert [len(one) for one in results] == [1, 1, 2, 1, 5]
    assert results[0].receipt.index == results[1].receipt.index == results[3].receipt.index
    assert results[3].value == pytest.approx(results[1].value / 12, abs=0.5)
    assert people.account.used == pytest.approx(plan.quote.used)
    assert "5 questions in 3 releases" in str(plan)
    # What composition saves is spent on less noise.
    assert sum(float(part.price.epsilon) for _, part in plan.parts) >= 0.999


@pytest.mark.lengthy
def test_a_plan_gives_more_to_what_weighs_more_and_fits_whole_or_not(people):
    texts = [COUNT, "SELECT COUNT(*) AS n FROM people WHERE age > 3"]
    plan = people.plan(texts, epsilon=1, weights=[8, 1])
    first, second = (float(part.price.epsilon) for _, part in plan.parts)
    assert first / second == pytest.approx(2)  # the cube root of eight
    with pytest.raises(BudgetExceeded):
        people.plan(texts, epsilon=5).release()
    assert people.account.used == 0
    with pytest.raises(ParameterError):
        people.plan([], epsilon=1)
    with pytest.raises(ParameterError):
        people.plan(texts, epsilon=1, weights=[1])
    with pytest.raises(Refused):
        people.plan([COUNT, "SELECT * FROM people"], epsilon=1)


def test_a_watch_pays_for_its_alerts_in_the_beginning(people):
    ages = np.bincount(PEOPLE["age"], minlength=91)
    texts = [f"SELECT COUNT(*) FROM people WHERE age = {age}" for age in range(0, 91, 10)]
    texts.insert(3, "SELECT COUNT(DISTINCT person_id) FROM people")
    watch = people.watch(texts, threshold=1000, positives=2, epsilon=1)
    assert people.account.used == pytest.approx(1 / 3)
    alerts = watch.ask()
    assert [one.place for one in alerts] == [3]
    assert alerts[0].gap == pytest.approx(3000, abs=200)
    assert ages.max() < 700
    assert watch.positives_left == 1
    assert people.account.used == pytest.approx(1 / 3)
    for bad in ("SELECT AVG(age) FROM people", "SELECT sex, COUNT(*) FROM people GROUP BY sex"):
        with pytest.raises(ParameterError, match="single count"):
            people.watch([bad], threshold=1, epsilon=0.1)
    assert people.account.used == pytest.approx(1 / 3)


@pytest.mark.lengthy
def test_a_declaration_is_saved_and_opened_again_with_the_same_budget(tmp_path, monkeypatch):
    pq.write_table(pa.table(PEOPLE), tmp_path / "people.parquet")
    with protect(
        tmp_path / "people.parquet",
        name="people",
        unit="person_id",
        rows=1,
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        ledger=tmp_path / "budget.db",
        columns={"sex": {"keys": ["female", "male"]}},
    ) as tables:
        tables.save(tmp_path / "people.toml")
        first = tables.sql(COUNT, epsilon=0.5)
    assert 'source = "people.parquet"' in (tmp_path / "people.toml").read_text()
    monkeypatch.chdir("/")
    with open_tables(tmp_path / "people.toml") as again:
        assert again.account.used == pytest.approx(1 / 6)
        assert again.sql(COUNT, epsilon=0.5).value == first.value
        assert len(again.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)) == 2


@pytest.mark.lengthy
def test_appended_rows_are_a_new_version_of_the_same_account(tmp_path):
    path = tmp_path / "people.parquet"
    table = pa.table(PEOPLE)
    pq.write_table(table.slice(0, 3000), path)
    with protect(
        path, name="people", unit="person_id", rows=1,
        guarantee=Guarantee(epsilon=300, delta=1e-6), ledger=tmp_path / "b.db",
    ) as tables:  # fmt: skip
        before = tables.sql(COUNT, epsilon=50)
        version = tables.account.sources()["people"]
        pq.write_table(table, path)
        after = tables.sql(COUNT, epsilon=50)
        assert not after.is_recalled
        assert round(before.value) == 3000
        assert round(after.value) == 4000
        assert tables.account.sources()["people"] != version
        assert tables.account.used == pytest.approx(100 / 300)
        pq.write_table(table.drop_columns(["person_id"]), path)
        with pytest.raises(DataError, match="person_id"):
            tables.sql(COUNT, epsilon=50)


def test_what_is_protected_cannot_be_loosened_or_protected_twice(people, place, tmp_path):
    ledger = people.account.ledger
    for change in (
        {"unit": "household_id"},
        {"guarantee": Guarantee(epsilon=4, delta=1e-6)},
        {"neighbours": "replace_one"},
    ):
        facts = {
            "unit": "person_id", "guarantee": Guarantee(epsilon=3, delta=1e-6), **change,
        }  # fmt: skip
        with pytest.raises(ParameterError, match="is fixed when data is first protected"):
            protect(PEOPLE, name="people", ledger=ledger, **facts)
    with pytest.raises(LedgerError, match="belongs to account 'people'"):
        protect(PEOPLE, name="other", unit="person_id", guarantee=people.account.guarantee,
                ledger=ledger)  # fmt: skip


def test_versions_in_the_log_tell_nothing_about_the_data(tmp_path):
    versions = []
    for i in range(2):
        with protect(
            PEOPLE, name="people", unit="person_id", guarantee=Guarantee(epsilon=1),
            ledger=tmp_path / f"{i}.db",
        ) as tables:  # fmt: skip
            versions.append(tables.account.sources()["people"])
    # The same data, under two ledgers: without the secret nobody can try data against a version.
    assert versions[0] != versions[1]


@pytest.mark.lengthy
def test_units_of_other_kinds(place):
    with protect(
        PEOPLE, name="households", unit=Unit.household("household_id"), rows=6,
        guarantee=Guarantee(epsilon=300, delta=1e-6), ledger=place,
    ) as tables:  # fmt: skip
        homes = "SELECT COUNT(DISTINCT household_id) AS n FROM households"
        exact = len(np.unique(PEOPLE["household_id"]))
        assert tables.sql(homes, epsilon=50).value == pytest.approx(exact, abs=3)
    with protect(
        datasets.salaries(), name="salaries", unit=Unit.record(),
        guarantee=Guarantee(epsilon=300, delta=1e-6), ledger=place,
    ) as tables:  # fmt: skip
        assert tables.sql("SELECT COUNT(*) AS n FROM salaries", epsilon=50).value == pytest.approx(
            100, abs=3
        )
    with protect(
        {**VISITS, "time": VISITS["time"]}, name="days",
        unit=Unit.column("user_id").per("month", time="time"), rows=50,
        guarantee=Guarantee(epsilon=300, delta=1e-6), ledger=place,
    ) as tables:  # fmt: skip
        months = VISITS["time"].astype("datetime64[M]")
        exact = int((months == np.datetime64("2025-03")).sum())
        march = tables.sql("SELECT COUNT(*) AS n FROM days", epsilon=50, periods="2025-03")
        assert march.value == pytest.approx(exact, abs=40)
        with pytest.raises(Refused, match="period"):
            tables.sql("SELECT COUNT(*) AS n FROM days", epsilon=50)


@pytest.mark.lengthy
def test_a_larger_unit_and_a_stronger_relation_get_more_noise(tmp_path):
    errors = []
    for i, (unit, neighbours) in enumerate(
        [
            (Unit.column("person_id"), "add_remove"),
            (Unit.column("person_id"), "replace_one"),
            (Unit.column("person_id").group(3), "add_remove"),
        ]
    ):
        with protect(
            PEOPLE, name="p", unit=unit, neighbours=neighbours, rows=1,
            guarantee=Guarantee(epsilon=3, delta=1e-6), ledger=tmp_path / f"{i}.db",
        ) as tables:  # fmt: skip
            errors.append(tables.sql("SELECT COUNT(*) AS n FROM p", epsilon=1).errors["n"][0])
    assert errors[1] == pytest.approx(2 * errors[0], rel=1e-6)
    assert errors[2] == pytest.approx(3 * errors[0], rel=1e-6)


def test_tight_bounds_are_noticed_where_a_quantile_was_released(place):
    with protect(
        PEOPLE, name="p", unit="person_id", rows=1, ledger=place,
        guarantee=Guarantee(epsilon=30, delta=1e-6), columns={"age": {"bounds": (0, 30)}},
    ) as tables:  # fmt: skip
        asked = "SELECT AVG(age) AS a FROM p"
        assert "tight" not in str(tables.quote(asked, epsilon=1))
        tables.agg(m=median("age")).release(epsilon=5)
        assert "the bounds of age look tight" in str(tables.quote(asked, epsilon=1))


def test_everything_shows_well(people):
    assert "people" in repr(people)
    assert people.tables["people"]["age"] == "BIGINT"
    quote = people.quote("SELECT AVG(income) AS pay FROM people", epsilon=0.5)
    assert "<table>" in quote._repr_html_()
    assert "divided by the number of rows" in str(quote)
    assert "times in 100" in str(quote)
    with pytest.raises(ParameterError, match="the protected tables are people"):
        people.table("visits")
    assert discreet.protect is protect
    assert Fraction(people.quote(COUNT, share="5%").epsilon) > 0
    assert isinstance(people.account.ledger, Ledger)
