"""`discreet train` and `discreet demo learn`: paid for, judged honestly, refused with a remedy."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.demo import learn as _demo_learn
from discreet.datasets import census, digits
from discreet.learn import recipes
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit
from discreet.tables import protect

pytestmark = pytest.mark.lengthy

COLUMNS = {
    "age": {"bounds": (0, 100)},
    "hours": {"bounds": (0, 80)},
    "sex": {"keys": ["female", "male"]},
}
SMALL = ["--delta", "1e-6", "--epochs", "1", "--batch-size", "200"]
RICH = ["people", "--target", "rich", *SMALL]


def run(*args, code=0):
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result


def refused(*args):
    error = run(*args, code=2).stderr
    assert len(error.splitlines()) == 1
    return error


def people(n, seed):
    table = census(n, seed=seed)
    return pa.table({**table, "rich": table["income"] > 25_000})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    pq.write_table(people(800, 1), "people.parquet")
    pq.write_table(people(300, 2), "public.parquet")
    return tmp_path


@pytest.fixture
def protected(folder):
    make()
    return folder


def make(unit="person_id", **more):
    facts = {"guarantee": Guarantee(epsilon=8, delta=1e-4), "ledger": "budget.db", **more}
    with protect("people.parquet", name="people", unit=unit, columns=COLUMNS, **facts) as tables:
        tables.save("people.toml")


def history():
    with Ledger.open("budget.db", read_only=True) as ledger:
        return ledger["people"].history()


def used():
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger.verify()
        return ledger["people"].used


def kinds():
    return [entry["kind"] for entry in history()]


class TestPaying:
    def test_every_step_is_on_the_account_that_the_table_has(self, protected):
        asked = ["--features", "age,hours,sex", "--epsilon", 2, "--who", "ana", "--json"]
        found = json.loads(run("train", *RICH, *asked, "--purpose", "credit").stdout)
        (only,) = found["runs"]
        assert only["certified_epsilon"] <= 2
        assert (only["unit"], only["neighbours"]) == ("all records of one person_id", "add_remove")
        reserved = next(entry for entry in history() if entry["kind"] == "reserve")
        assert reserved["index"] == only["ledger_entry"]
        assert (reserved["who"], reserved["purpose"]) == ("ana", "credit")
        spent = [sum(entry["steps"]) for entry in history() if entry["kind"] == "spend"]
        assert sum(spent) == only["steps"] == 4
        assert kinds()[-1] == "settle"
        assert found["remaining"] == pytest.approx(1 - used())
        assert only["accuracy"] is None  # nobody declared whom to judge it by
        assert any("population" in note for note in found["notes"])

    def test_a_declared_size_is_the_population(self, folder):
        make(size=1000)
        found = json.loads(run("train", *RICH, "--epsilon", 2, "--json").stdout)
        assert found["notes"] == []
        assert found["runs"][0]["steps"] == 5

    def test_households_are_drawn_whole(self, folder):
        make(unit=Unit.household("household_id"), rows=3)
        small = ["--batch-size", 50, "--unit", "household_id"]
        found = json.loads(run("train", *RICH, *small, "--epsilon", 2, "--json").stdout)
        assert found["runs"][0]["unit"] == "all records of one household_id"

    def test_replaced_people_are_drawn_without_replacement(self, folder):
        make(neighbours="replace_one")
        found = json.loads(run("train", *RICH, "--epsilon", 4, "--json").stdout)
        assert found["runs"][0]["neighbours"] == "replace_one"

    def test_what_does_not_fit_leaves_everything_as_it_was(self, protected):
        error = refused(
            "train", *RICH, "--epsilons", "1,2,50", "--held-out", "public.parquet", "--json"
        )
        assert "Nothing was spent" in error
        assert used() == 0
        assert "spend" not in kinds()

    def test_an_evaluation_that_does_not_fit_leaves_everything_as_it_was(self, protected):
        assert "budget 'total'" in refused("train", *RICH, "--epsilon", 1, "--evaluate-epsilon", 9)
        assert used() == 0

    def test_who_interrupts_gets_back_what_never_began(self, protected, monkeypatch):
        def stop(private):
            raise KeyboardInterrupt

        monkeypatch.setattr(recipes, "finish", stop)
        CliRunner().invoke(app, ["train", *RICH, "--epsilon", "2"])
        assert "reserve" in kinds()
        assert used() == 0

    def test_an_error_gives_nothing_back(self, protected, monkeypatch):
        def fail(private):
            raise RuntimeError

        monkeypatch.setattr(recipes, "finish", fail)
        result = CliRunner().invoke(app, ["train", *RICH, "--epsilon", "2"])
        assert "(RuntimeError). What was charged stays charged." in " ".join(result.output.split())
        assert used() > 0


class TestJudging:
    def test_several_budgets_are_compared_on_public_rows_and_one_model_is_kept(self, protected):
        asked = ["--epsilons", "1,2", "--epsilon", 2, "--held-out", "public.parquet"]
        page = run("train", *RICH, *asked, "--out", "model.pt", "--plot", "gap.svg").stdout
        words = " ".join(page.split())
        assert "Accuracy on public.parquet, which was declared public." in words
        assert "Protected: all records of one person_id, under add_remove." in words
        assert "NOT PRIVATE" not in page
        assert "accuracy in %" in (protected / "gap.svg").read_text()
        kept = recipes.load("model.pt")
        assert kept.privacy["epsilon"] <= 2
        assert kept.encoding.columns == ("age", "sex", "hours", "rich")

    def test_private_rows_are_judged_for_a_price(self, protected):
        asked = ["--epsilon", 1, "--evaluate-epsilon", "0.5", "--json"]
        found = json.loads(run("train", *RICH, *asked).stdout)
        assert 0 <= found["runs"][0]["accuracy"] <= 1
        assert 0 < found["runs"][0]["accuracy_error"] < 0.5
        assert "kept out of training" in found["evaluated_on"]
        paid = [entry for entry in history() if entry.get("purpose") == "training: evaluation"]
        assert [entry["kind"] for entry in paid] == ["reserve"]
        assert "discrete_laplace" in json.dumps(paid[0]["loss"]).lower()
        jobs = [entry["job"] for entry in history() if entry["kind"] == "spend"]
        assert jobs.count(paid[0]["index"]) == 1
        assert kinds().count("settle") == 2

    @pytest.mark.parametrize(
        "asked", [["--epsilons", "1,2"], ["--epsilon", "1", "--plot", "gap.png"]]
    )
    def test_no_accuracy_comes_silently_from_private_rows(self, protected, asked):
        assert "a release of its own" in refused("train", *RICH, *asked)
        assert used() == 0

    def test_protected_rows_are_not_public_under_another_name(self, protected):
        (protected / "again.parquet").hardlink_to(protected / "people.parquet")
        for name in ("people.parquet", "again.parquet"):
            error = refused("train", *RICH, "--epsilon", 1, "--held-out", name)
            assert "same data as the protected table" in error
        assert used() == 0

    def test_a_twin_without_privacy_must_be_allowed_and_is_marked(self, protected):
        asked = ["--epsilon", 1, "--held-out", "public.parquet", "--compare"]
        assert "--allow-non-private" in refused("train", *RICH, *asked)
        assert used() == 0
        page = run("train", *RICH, *asked, "--allow-non-private", "--out", "model.pt").stdout
        assert page.count("NOT PRIVATE") == 2
        assert "lost to" in page
        assert recipes.load("model.pt").privacy["epsilon"] <= 1  # never the twin


class TestRefusals:
    def test_columns_without_public_bounds_or_keys(self, protected):
        error = refused("train", *RICH, "--epsilon", 1, "--features", "age,income")
        assert "income = { bounds = [LOW, HIGH] }" in error
        error = refused("train", *RICH, "--epsilon", 1, "--features", "region")
        assert 'region = { keys = ["ONE", "OTHER"] }' in error
        error = refused("train", "people", "--target", "education", *SMALL, "--epsilon", 1)
        assert "people.toml" in error
        assert used() == 0

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            ([*RICH], "--epsilon 1"),
            ([*RICH, "--epsilon", "lots"], "epsilon must be"),
            ([*RICH, "--epsilons", "1,-1"], "epsilon must be"),
            ([*RICH, "--epsilon", "1", "--delta", "0"], "delta must be"),
            ([*RICH, "--epsilon", "1", "--epochs", "x"], "epochs must be"),
            ([*RICH, "--epsilon", "1", "--batch-size", "0.5"], "batch_size must be"),
            ([*RICH, "--epsilon", "1", "--features", "agee"], "has no column 'agee'; it has"),
            ([*RICH, "--epsilon", "1", "--features", "person_id"], "whose row it is"),
            ([*RICH, "--epsilon", "1", "--features", "age,rich"], "named twice"),
            ([*RICH, "--epsilon", "1", "--unit", "region"], "Leave --unit out"),
            ([*RICH, "--epsilon", "1", "--table", "cats"], "not 'cats'"),
            ([*RICH, "--epsilon", "1", "--out", "no/model.pt"], "cannot be written"),
            ([*RICH, "--epsilons", "1,2", "--out", "model.pt"], "whose model"),
            ([*RICH, "--epsilon", "1", "--held-out", "public.parquet", "--plot", "gap.xyz"],
             "no picture"),
            ([*RICH, "--epsilon", "1", "--held-out", "public.parquet", "--evaluate-epsilon", "1"],
             "not by both"),
            ([*RICH, "--epsilon", "1", "--model", "cnn"], "cnn"),
            ([*RICH, "--epsilon", "1", "--batch-size", "5000"], "at most the population"),
            (["nobody", *RICH[1:], "--epsilon", "1"], "there is no nobody.toml here"),
            (["people.parquet", *RICH[1:], "--epsilon", "1"], "discreet protect people.parquet"),
        ],
    )  # fmt: skip
    def test_bad_input_is_one_line_and_spends_nothing(self, protected, args, words):
        assert words in refused("train", *args)
        assert used() == 0

    @pytest.mark.parametrize(
        "args",
        [["train", *RICH, "--epsilon", "1"], ["train", "images", ".", *SMALL], ["demo", "learn"]],
    )
    def test_without_torch_the_way_to_install_it_is_told(self, folder, monkeypatch, args):
        monkeypatch.setitem(sys.modules, "torch", None)
        assert "pip install 'discreet[learn]'" in refused(*args)

    def test_the_command_line_starts_without_anything_heavy(self):
        program = "import sys, discreet.cli; print({'numpy', 'torch'} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout.strip() == "set()", done.stderr

    def test_help_teaches_by_example(self):
        for args in (["train"], ["train", "--help"]):
            assert "discreet train images mnist" in " ".join(run(*args).stdout.split())
        assert "--evaluate-epsilon" in run("train", "table", "--help").stdout
        assert "t10k" in run("train", "images", "--help").stdout


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    body = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)


@pytest.fixture
def pictures(folder):
    place = folder / "pictures"
    place.mkdir()
    for part, n, end in (("train", 400, ".gz"), ("t10k", 200, "")):
        table = digits(n, seed=n)
        write_idx(place / f"{part}-images-idx3-ubyte{end}", table["image"])
        write_idx(place / f"{part}-labels-idx1-ubyte{end}", table["label"])
    return place


class TestImages:
    def test_without_an_account_nothing_is_charged_and_that_is_said(self, pictures):
        asked = ["--epsilons", "1,8", *SMALL, "--compare", "--plot", "gap.png"]
        page = run("train", "images", pictures, *asked).stdout
        assert "cnn on images of pictures" in page
        assert page.count("NOT PRIVATE") == 2
        assert "No account was charged" in page
        assert (pictures.parent / "gap.png").read_bytes().startswith(b"\x89PNG")

    def test_an_account_is_charged_and_the_images_belong_to_it(self, pictures):
        run("ledger", "init")
        for name in ("people", "other"):
            run("ledger", "create", name, "--unit", "record", "--epsilon", 5, "--delta", "1e-4")
        asked = ["train", "images", pictures, "--epsilon", 2, *SMALL, "--account"]
        found = json.loads(run(*asked, "people", "--json", "--model", "logistic").stdout)
        assert found["runs"][0]["unit"] == "one record"
        assert used() > 0
        assert "pictures" in {entry.get("source", {}).get("name") for entry in history()}
        assert "belongs to account 'people'" in refused(*asked, "other")
        copied = pictures.parent / "copied"  # and in another packing
        copied.mkdir()
        for file in pictures.iterdir():
            body = gzip.decompress(file.read_bytes()) if file.suffix else file.read_bytes()
            (copied / file.stem).write_bytes(body)
        again = refused("train", "images", copied, *asked[3:], "other")
        assert "belongs to account 'people'" in again
        assert "--allow-non-private" in refused(*asked, "people", "--compare")

    def test_folders_and_files_that_are_no_images(self, pictures):
        asked = ["--epsilon", 2, *SMALL]
        assert "train-images-idx3-ubyte" in refused("train", "images", pictures.parent, *asked)
        (pictures / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x05abc")
        assert "train-labels-idx1-ubyte is no IDX" in refused("train", "images", pictures, *asked)
        (pictures / "t10k-images-idx3-ubyte").unlink()
        error = refused("train", "images", pictures, *asked, "--compare")
        assert "the t10k files" in error


class TestDemo:
    def test_it_tells_accuracies_budgets_and_entries(self, folder, monkeypatch):
        monkeypatch.setattr(_demo_learn, "EPOCHS", 1)
        page = run("demo", "learn", "--rows", 300, "--plot", "gap.png").stdout
        words = " ".join(page.split())
        assert "cnn on 300 generated digits" in words
        for row in ("NOT PRIVATE", " 0.5 ", " 2 ", " 8 "):
            assert row in page
        assert "entries verified" in words
        assert "epsilon 2: guesses right whether it was used 88.1 times in 100" in words
        assert "% of the budget of 'digits' is left" in words
        assert (folder / "gap.png").exists()

    def test_bad_input_is_one_line(self, folder):
        for bad in (["learn", "--rows", "0"], ["--rows", "5", "learn"], ["nothing"]):
            refused("demo", *bad)
