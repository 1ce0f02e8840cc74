"""Data that is replaced while questions run: what is paid for is answered."""

from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Guarantee
from discreet.tables import protect
from discreet.tables.release import answer as answering

COUNT = "SELECT COUNT(*) AS n FROM people"


def _write(place: Path, n: int) -> None:
    pq.write_table(pa.table({"person": np.arange(n), "age": np.arange(n) % 80}), place)


@pytest.mark.lengthy
def test_questions_and_plans_under_way_outlive_a_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, run = tmp_path / "people.parquet", answering.run
    _write(place, 1000)
    with protect(
        place, name="people", unit="person", rows=1, guarantee=Guarantee(epsilon=30, delta=1e-6),
        ledger=tmp_path / "budget.db",
    ) as T:  # fmt: skip

        def run_late(*given: Any, **named: Any) -> Any:
            """Let others refresh after the charge, and before the data is read."""
            _write(place, 2000)
            others = [Thread(target=T.refresh) for _ in range(4)]
            for one in others:
                one.start()
            for one in others:
                one.join()
            return run(*given, **named)

        workload = T.plan([COUNT + " WHERE age > 1"], epsilon=5)
        monkeypatch.setattr(answering, "run", run_late)
        assert T.sql(COUNT, epsilon=5).value > 900
        monkeypatch.undo()
        assert not T.refresh()
        assert T.sql(COUNT, epsilon=5).value == pytest.approx(2000, abs=20)
        assert workload.release()[0].value > 900
