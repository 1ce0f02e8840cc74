"""`discreet demo`: private answers near the truth, the price stated, the truth never shown."""

import csv
import os
import re

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from discreet.cli import _demo as demo
from discreet.cli import _people, app
from discreet.cli._people import People, load

FALSE_ALARM = 1e-9
HONEST = demo.DiscreteLaplace
REAL = os.environ.get("DISCREET_DATA")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)


def run(*args, **environment):
    return CliRunner().invoke(app, ["demo", *map(str, args)], env=environment)


def truth(people):
    low, high = demo.WORKING_AGE
    working = (people.age >= low) & (people.age <= high)
    income = np.clip(people.income, 0, demo.HIGHEST_INCOME)[working]
    bands = np.bincount(np.clip(people.age // demo.BAND, 0, demo.BANDS - 1), minlength=demo.BANDS)
    return int(working.sum()), income.mean(), bands


def test_the_page_has_everything_and_fits_80_columns():
    result = run()
    assert result.exit_code == 0, result.output
    page = result.stdout
    assert max(map(len, page.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in page  # rich's mark of a cut cell
    words = " ".join(page.split())
    assert "split 1/4 for the count, 1/2 for the sum of incomes and 1/4 for the histogram" in words
    assert "Total price: epsilon = 1" in words
    assert "In plain words" in words
    assert len(re.findall(r"\d \N{PLUS-MINUS SIGN} \d", page)) == 2 + demo.BANDS


def test_a_narrow_console_cuts_nothing():
    console = Console(width=60, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        demo.run_demo(console, data=None, rows=1000)
    assert "\N{HORIZONTAL ELLIPSIS}" not in console.export_text()


def test_answers_are_near_the_truth():
    people = load(None, rows=20_000)
    count, mean, bands = truth(people)
    said = demo.answer(people)
    # A Laplace tail: at r times the 95% bar, a miss has chance below 0.05^r, so 9 bars are
    # beyond FALSE_ALARM / 11 for each of the 11 numbers.
    assert FALSE_ALARM / 11 > 0.05**9
    assert abs(said.count.value - count) <= 9 * (said.count.error + 1)
    assert abs(said.mean.value - mean) <= 9 * (said.mean.error + 1)
    for band, exact in zip(said.bands, bands, strict=True):
        assert abs(band.value - exact) <= 9 * (band.error + 1)


def test_the_shares_are_the_budget_and_the_prices_are_the_shares():
    assert demo.COUNT_SHARE + demo.SUM_SHARE + demo.BANDS_SHARE == 1
    said = demo.answer(load(None, rows=1000))
    assert said.count.price == 0.25
    assert said.mean.price == 0.5
    assert said.bands[0].price == 0.25
    assert said.price == 1


def recorded(people, monkeypatch):
    """The exact values handed to the mechanisms, with the sensitivity promised for each."""
    seen = []

    class Recording:
        def __init__(self, honest):
            self.honest = honest

        @classmethod
        def calibrated(cls, **parameters):
            return cls(HONEST.calibrated(**parameters))

        def release(self, value):
            seen.append((np.array(value), self.honest.sensitivity))
            return self.honest.release(value)

        def __getattr__(self, name):
            return getattr(self.honest, name)

    with monkeypatch.context() as patch:
        patch.setattr(demo, "DiscreteLaplace", Recording)
        demo.answer(people)
    return seen


def test_one_person_moves_each_statistic_by_its_sensitivity_at_most(monkeypatch):
    everyone = load(None, rows=300)
    # Incomes beyond every bound: clipping has to hold them.
    everyone = People(about="", age=everyone.age, income=everyone.income * 10**6)
    full = recorded(everyone, monkeypatch)
    assert len(full) == 3
    reached = np.zeros(3)
    for person in range(300):
        keep = np.arange(300) != person
        fewer = People(about="", age=everyone.age[keep], income=everyone.income[keep])
        for i, ((x, sensitivity), (y, _)) in enumerate(
            zip(full, recorded(fewer, monkeypatch), strict=True)
        ):
            moved = np.abs(x - y).sum()
            assert moved <= sensitivity
            reached[i] = max(reached[i], moved / sensitivity)
    assert reached.tolist() == [1, 1, 1]  # the promised sensitivity is not padded either


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_tiny_tables_end_well(rows):
    assert run("--rows", rows).exit_code == 0


def test_a_mean_that_drowns_in_noise_is_not_given():
    nobody = People(about="", age=np.array([5]), income=np.array([0]))
    # The count is noise around 0 with error bar 12 and more: its lower end is above 0 rarely.
    assert any(demo.answer(nobody).mean is None for _ in range(60))


@pytest.fixture
def data(tmp_path):
    rows = ["name,age,income"]
    rows += [f"p{i},{20 + i % 60},{i * 10}" for i in range(500)]
    rows += ["x,,", "y,old,rich", "z,nan,inf", "w,-3,-1e999", "v"]
    (tmp_path / "people.csv").write_text("\n".join(rows))
    return tmp_path


def test_real_data_by_option_and_by_variable(data):
    for result in (run("--data", data), run(DISCREET_DATA=str(data))):
        assert result.exit_code == 0, result.output
        assert "Three questions about the table people.csv" in result.stdout


def test_unreadable_cells_count_as_zero(data):
    people = load(data, rows=1)
    assert len(people.age) == 505
    assert people.age[-5:].tolist() == [0, 0, 0, -3, 0]


def test_a_file_is_read_whole_so_removing_a_person_changes_one_row(data, monkeypatch):
    # Were the file cut after some rows, removing one person would pull another one in.
    lines = (data / "people.csv").read_text().splitlines()
    for rows in (1, 3, 10, 10**6):
        full = recorded(load(data, rows=rows), monkeypatch)
        for person in (1, 2, 7, 100):
            (data / "people.csv").write_text("\n".join(lines[:person] + lines[person + 1 :]))
            fewer = recorded(load(data, rows=rows), monkeypatch)
            for (x, sensitivity), (y, _) in zip(full, fewer, strict=True):
                assert np.abs(x - y).sum() <= sensitivity
            bands = full[2][0] - fewer[2][0]
            assert np.abs(bands).sum() == 1
        (data / "people.csv").write_text("\n".join(lines))


def test_rows_and_data_exclude_each_other(data):
    for result in (run("--data", data, "--rows", 7), run("--rows", 7, DISCREET_DATA=str(data))):
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "read whole" in " ".join(result.stderr.split())
    page = CliRunner().invoke(app, ["demo", "--help"]).stdout
    page = " ".join(re.sub("[^\\w.,-]", " ", page).split())
    assert "Not with --data" in page
    assert "All of it is read" in page


def test_odd_cells_neither_fail_nor_show(data):
    # NUL bytes, a cell beyond the parser's usual limit, broken encoding and a byte order mark.
    text = "age,income\n30,1000\n40\x00,5\n50," + "9" * 200_000 + "\n60,7\n"
    (data / "people.csv").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\xff\xfe,3\n")
    limit = csv.field_size_limit()
    people = load(data, rows=1)
    assert people.age.tolist() == [30, 0, 50, 60, 0]
    assert csv.field_size_limit() == limit
    assert run("--data", data).exit_code == 0


def test_what_is_no_csv_is_refused_without_its_values(data, monkeypatch):
    monkeypatch.setattr(_people, "LONGEST_CELL", 10)
    (data / "people.csv").write_text("age,income\n30,secret-secret-secret\n")
    result = run("--data", data)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "cannot be read as CSV" in result.stderr
    assert "secret" not in result.stderr + result.stdout


def test_a_folder_without_people_says_what_is_wanted(tmp_path):
    result = run("--data", tmp_path)
    assert result.exit_code == 2
    assert "people.csv" in result.stderr
    (tmp_path / "people.csv").write_text("age,wage\n1,2\n")
    result = run("--data", tmp_path)
    assert result.exit_code == 2
    assert "no column income" in result.stderr


@pytest.mark.parametrize(
    "args",
    [["--rows", "0"], ["--rows", "x"], ["--rows", "1" + "0" * 400], ["--data", "no/such/folder"]],
)
def test_bad_input_is_one_line(args):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.needs("real data")
def test_the_real_folder_answers_or_says_why_not():
    result = run("--data", REAL)
    assert result.exit_code == 0 or "has none of the files" in result.stderr
