"""A card states noise in the units of the answer: compared with how answers really vary."""

import numpy as np
import pyarrow as pa
import pytest

from discreet import Guarantee
from discreet.tables import protect, registry_entry
from discreet.tables.model.aggregates import SPECS

GROUPS, ROWS = 1600, 60
TOLERANCE = 0.15  # a deviation of 1600 draws is off by 2.5% (Laplace), so this is six of its errors

QUESTIONS = {
    "count": "COUNT(*)",
    "count_values": "COUNT(x)",
    "count_units": "COUNT(DISTINCT person)",
    "count_distinct": "COUNT(DISTINCT k)",
    "sum": "SUM(x)",
    "sum_distinct": "SUM(DISTINCT x)",
    "mean": "AVG(x)",
    "variance": "VARIANCE(x)",
    "deviation": "STDDEV(x)",
    "covariance": "COVAR_SAMP(x, y)",
    "correlation": "CORR(x, y)",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return groups that all hold the same rows, so that answers differ by their noise alone."""
    n = np.arange(GROUPS * ROWS)
    i = n % ROWS
    table = pa.table(
        {
            "person": n // 2,
            "g": n // ROWS,
            "x": pa.array(20.0 + (i * 37) % 61, mask=i % 15 == 14),
            "y": -30.0 + (i * 37) % 61 / 2 + (i * 17) % 13,
            "k": i % 7,
        }
    )
    with protect(
        table,
        name="t",
        unit="person",
        rows=2,
        guarantee=Guarantee(epsilon=10**6, delta=1e-6),
        ledger=tmp_path_factory.mktemp("card") / "budget.db",
        columns={
            "g": {"keys": range(GROUPS)},
            "x": {"bounds": (0, 100)},
            "y": {"bounds": (-40, 20)},
        },
    ) as made:
        yield made


def test_every_aggregate_is_asked_for():
    assert set(QUESTIONS) == {kind for kind, spec in SPECS.items() if spec.draws is None}


@pytest.mark.lengthy
@pytest.mark.parametrize("others", ["", ", AVG(x) AS other", ", CORR(x, y) AS other"])
@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_deviation_on_a_card_is_that_of_the_answers(tables, kind, others):
    sql = f"SELECT g, {QUESTIONS[kind]} AS a{others} FROM t GROUP BY g"
    result = tables.sql(sql, epsilon=40)
    stated = result.card()["mechanisms"][0]["deviation"]
    least, most = stated if isinstance(stated, list) else (stated, stated)
    true = np.std(result["a"])
    assert least * (1 - TOLERANCE) <= true <= most * (1 + TOLERANCE)
    assert most <= 3 * least  # or the pair would say nothing
    if SPECS[kind].counts is not None or kind == "sum":
        assert least == most


def test_an_entry_states_noise_in_the_units_of_the_answer(tables):
    curated = {
        "name": "Sums", "data_curators": ["A"], "description": "D.", "intended_use": "P.",
        "data_product_region": "U", "registry_authors": ["Ana"],
    }  # fmt: skip
    card = tables.sql("SELECT SUM(x), MEDIAN(x) FROM t", epsilon=1).card()
    told = registry_entry(card, **curated)["deployment"]["implementation"]["mechanisms"]
    # Two rows of at most 100 at epsilon 1/2: sqrt(2) * 2 * 100 / (1/2), and a chosen median.
    assert "standard deviation 565.7" in told
    assert "None" not in told
