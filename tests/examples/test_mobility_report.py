"""The mobility report flags what changed, withholds what is noise, and says what it cost."""

import csv
import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FALSE_ALARM = 1e-9


@pytest.fixture(scope="module")
def mobility():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import mobility_report
    finally:
        sys.path.pop(0)
    return mobility_report


@pytest.fixture(scope="module")
def log(mobility):
    return mobility.generated(4_000)


@pytest.mark.lengthy
def test_made_up_events_are_flagged_and_nothing_else(mobility, log):
    exact = mobility.truth(log)
    epsilon, threshold = 200, 100  # so much that hardly any noise is left: the data are made up
    with TemporaryDirectory() as folder, mobility.protected(log, folder, epsilon=epsilon) as T:
        watch = mobility.watched(T, log, epsilon=epsilon, threshold=threshold)
        alerts = watch.ask()
    error = watch.error(confidence=1 - FALSE_ALARM)
    assert error < 6  # beyond which an answer is wrong with that chance: a weaker one would show
    week_at = {week: i for i, week in enumerate(log.weeks)}
    certain, possible = set(), set()
    for change in mobility.changes(log):
        place, week, way = change
        row, at = exact[log.places.index(place)], week_at[week]
        size = way * (row[at] - row[at - 1])
        certain |= {change} if size > threshold + error else set()
        possible |= {change} if size > threshold - error else set()
    flagged = [mobility.changes(log)[one.place] for one in alerts]
    assert set(flagged) <= possible
    assert watch.positives_left == 0 or certain <= set(flagged)
    assert {("station", log.weeks[2], -1), ("station", log.weeks[3], 1)} <= set(flagged)


@pytest.mark.lengthy
def test_the_budget_is_split_as_the_weights_say_and_all_of_it_fits(mobility, log):
    with TemporaryDirectory() as folder, mobility.protected(log, folder, epsilon=3) as tables:
        workload = mobility.planned(tables, epsilon=1.8)
        by_week, by_place, both = workload.release()
        mobility.watched(tables, log, epsilon=0.9, threshold=100)
        assert 0 <= tables.remaining < 0.1
    assert (len(by_week), len(by_place), len(both)) == (13, 12, 156)
    assert both.epsilon == pytest.approx(2 * by_week.epsilon)  # the cube root of 8
    for expected, result in zip(workload.expected, (by_week, by_place, both), strict=True):
        width = (result.highs["n"] - result.lows["n"]) / 2
        assert width == pytest.approx(expected[0].half_width, rel=0.02)


@pytest.mark.lengthy
def test_a_report_of_80_columns_with_tables_flags_cards_and_a_plot(
    mobility, tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    mobility.main(["--people", "4000", "--out", str(tmp_path)])
    told = capsys.readouterr().out.splitlines()
    assert max(map(len, told[:-1])) <= 80  # the last one is a path
    with (tmp_path / "by_place_and_week.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 156
    assert any(not row["n"] for row in rows)
    for row in rows:
        if row["n"]:  # whole numbers: an end may be one farther
            n, low, high = (float(row[name]) for name in ("n", "n_low", "n_high"))
            assert max(n - low, high - n) <= 0.5 * n + 1.5
        else:
            assert not row["n_low"]
            assert not row["n_error"]
    assert isinstance(json.loads((tmp_path / "changes.json").read_text()), list)
    assert "sparse vector" in (tmp_path / "changes_card.md").read_text()
    assert (tmp_path / "places.png").read_bytes().startswith(b"\x89PNG")


def test_counting_exactly_is_counting(mobility, log):
    exact = mobility.truth(log)
    here = (log.rows["place"] == "cinema") & (log.rows["week"] == np.datetime64(log.weeks[3]))
    assert exact[log.places.index("cinema"), 3] == len(np.unique(log.rows["unit"][here]))


@pytest.mark.lengthy
@pytest.mark.needs("real data")
def test_it_runs_on_flights(mobility, tmp_path, capsys):
    folder = Path(os.environ["DISCREET_DATA"])
    if not (folder / "nycflights13" / "flights.csv.gz").exists():
        pytest.skip("no nycflights13/flights.csv.gz there")
    mobility.main(["--data", str(folder), "--out", str(tmp_path)])
    assert "one aircraft" in capsys.readouterr().out
