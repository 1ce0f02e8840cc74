"""SQLAlchemy and pandas, as notebooks and dashboards use them."""

import pandas as pd
import pytest

sa = pytest.importorskip("sqlalchemy", reason="needs sqlalchemy: pip install -e '.[dev]'")
pytestmark = pytest.mark.lengthy


@pytest.fixture
def engine(wire):
    url = wire.url(options="-c%20discreet.epsilon%3D0.1").replace(
        "postgresql:", "postgresql+psycopg:"
    )
    made = sa.create_engine(url)
    yield made
    made.dispose()


def test_pandas_reads_answers(engine):
    frame = pd.read_sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", engine)
    assert frame["sex"].tolist() == ["female", "male"]
    assert frame["n"].between(800, 1200).all()
    given = {"age": 30}
    frame = pd.read_sql(
        sa.text("SELECT COUNT(*) AS n FROM people WHERE age > :age"), engine, params=given
    )
    assert frame["n"].between(600, 1900).all()


def test_inspection_knows_tables_and_columns_and_is_free(wire, engine):
    before = wire.desk.datasets["people"].remaining
    found = sa.inspect(engine)
    assert found.has_table("people")
    assert not found.has_table("secrets")
    assert found.get_table_names() == ["people"]
    assert found.get_schema_names() == ["information_schema", "public"]
    columns = {column["name"]: column["type"] for column in found.get_columns("people")}
    assert isinstance(columns["income"], sa.BIGINT)
    assert isinstance(columns["sex"], sa.TEXT)
    assert found.get_pk_constraint("people")["constrained_columns"] == []
    for ask in (found.get_indexes, found.get_foreign_keys, found.get_unique_constraints,
                found.get_check_constraints):  # fmt: skip
        assert ask("people") == []
    assert found.get_table_comment("people") == {"text": None}
    for ask in (found.get_view_names, found.get_materialized_view_names, found.get_enums):
        assert ask() == []
    assert wire.desk.datasets["people"].remaining == before


def test_tables_are_reflected_and_asked_step_by_step(engine):
    meta = sa.MetaData()
    meta.reflect(engine)
    people = meta.tables["people"]
    question = (
        sa.select(people.c.sex, sa.func.count().label("n"))
        .where(people.c.region.in_(["north", "south"]), people.c.age > 40)
        .group_by(people.c.sex)
    )
    with engine.connect() as connection:
        assert [row.sex for row in connection.execute(question)] == ["female", "male"]
        with pytest.raises(sa.exc.NotSupportedError, match="Nothing was spent"):
            connection.execute(sa.select(people))
