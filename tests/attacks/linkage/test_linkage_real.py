"""Linkage on real data, where there is some."""

import duckdb
import pyarrow as pa
import pytest

from discreet.attacks import linkage
from discreet.datasets import folder

NAMES = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "income",
)  # fmt: skip
SEVEN = ("age", "education", "marital_status", "occupation", "race", "sex", "native_country")


@pytest.mark.lengthy
@pytest.mark.needs("real data")
def test_seven_columns_single_out_a_third_of_adult():
    columns = dict.fromkeys(NAMES, "VARCHAR")
    run = duckdb.connect()
    parts = [
        run.sql(
            f"SELECT * FROM read_csv(?, header=false, skip={skip}, columns={columns}, "
            "strict_mode=false, null_padding=true) WHERE sex IS NOT NULL",
            params=[str(folder() / "adult" / name)],
        ).to_arrow_table()
        for name, skip in (("adult.data.gz", 0), ("adult.test.gz", 1))
    ]
    adult = pa.concat_tables(parts)
    assert adult.num_rows == 48_842
    assert linkage.uniqueness(adult, SEVEN).success == pytest.approx(0.3198, abs=1e-4)
    worst = linkage.worst_set(adult.drop_columns(["fnlwgt"]), size=3)
    assert worst.details["columns"] == ["age", "occupation", "hours_per_week"]
    assert worst.success == pytest.approx(0.1268, abs=1e-4)


@pytest.mark.lengthy
@pytest.mark.needs("real data")
def test_eight_ratings_find_most_people_of_movietweetings():
    run = duckdb.connect()
    sheet = run.sql(
        "SELECT split_part(line, '::', 1)::INT AS user, split_part(line, '::', 2)::INT AS item, "
        "split_part(line, '::', 3)::INT AS rating, split_part(line, '::', 4)::BIGINT AS time "
        "FROM read_csv(?, header=false, columns={'line': 'VARCHAR'}, delim='\t', quote='')",
        params=[str(folder() / "movietweetings" / "ratings.dat.gz")],
    ).to_arrow_table()
    assert sheet.num_rows == 100_000
    found = linkage.scoreboard(sheet, known=8)
    assert found.success > 0.9
    assert linkage.scoreboard(sheet, known=8, wrong=2).success > 0.7
