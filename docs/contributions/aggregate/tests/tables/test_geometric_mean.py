import math

import numpy as np

import discreet


def test_the_geometric_mean_has_a_value_and_an_error_bar(tmp_path):
    x = np.exp(np.linspace(0, 4, 20_001))
    table = {"id": np.arange(len(x)), "x": x}
    with discreet.protect(
        table,
        name="people",
        unit="id",
        rows=1,
        guarantee=discreet.Guarantee(epsilon=3, delta=1e-6),
        ledger=tmp_path / "budget.db",
    ) as protected:
        answer = protected.sql("SELECT GEOMEAN(CLAMP(x, 1, 55)) AS g FROM people", epsilon=1)
        (row,) = answer.to_pandas(errors=True).to_dict("records")
    truth = math.exp(np.log(np.clip(x, 1, 55)).mean())
    error = next(value for name, value in row.items() if name != "g" and "err" in name)
    assert 0 < error < 0.1 * truth
    assert abs(row["g"] - truth) < 10 * error
