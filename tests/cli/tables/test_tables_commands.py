"""`discreet protect`, `quote` and `query`."""

import json
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.datasets import census, visits
from discreet.ledger import Ledger
from discreet.ledger.verifier import check_receipt
from discreet.tables import Resources, load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    pq.write_table(pa.table(census(3000, seed=3)), "people.parquet")
    return tmp_path


def run(*args, code=0, entered=None):
    result = CliRunner().invoke(app, [*map(str, args)], input=entered)
    assert result.exit_code == code, result.output
    return result


def protect(*more, code=0):
    base = ["--name", "people", "--unit", "person_id", "--epsilon", "3", "--delta", "1e-6"]
    return run("protect", "people.parquet", *base, *more, code=code)


def test_protect_declares_limits(folder):
    limits = ("--memory", "1GB", "--disk", "2GB", "--seconds", "0.5", "--joined-rows", 5000)
    protect(*limits)
    declared = load("people.toml")
    assert declared.resources == Resources(memory="1GB", disk="2GB", seconds=Fraction(1, 2))
    assert declared.joined_rows == 5000


def test_protect_refuses_limits_that_are_none(folder):
    found = protect("--memory", "plenty", code=2)
    assert "memory must be a size" in " ".join(found.output.split())
    assert not (folder / "people.toml").exists()


def test_protect_writes_a_declaration_and_opens_an_account(folder):
    page = protect("--rows", 1).stdout
    assert "people.toml" in page
    text = (folder / "people.toml").read_text()
    assert 'source = "people.parquet"' in text
    assert "rows = 1" in text
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger["people"].guarantee.epsilon == 3


@pytest.mark.lengthy
def test_the_engine_is_named(folder):
    protect("--engine", "duckdb")
    run("query", "people", "SELECT COUNT(*) FROM people", "--epsilon", "0.5")


def test_an_unknown_engine_is_refused_before_anything_is_written(folder):
    found = protect("--engine", "abacus", code=2)
    assert "engine must be one of duckdb" in " ".join(found.output.split())
    assert not (folder / "people.toml").exists()


@pytest.mark.parametrize("how", [[], ["--ask"]])
def test_the_relation_that_was_asked_for_is_the_one_of_the_account(folder, how):
    base = ["--name", "people", "--unit", "person_id", "--epsilon", "3", "--delta", "1e-6"]
    relation = ["--neighbours", "replace_one", *how]
    run("protect", "people.parquet", *base, *relation, entered="\n" * 100)
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger["people"].neighbours == "replace_one"


@pytest.mark.lengthy
def test_guessed_types_are_shown_and_stay(folder):
    path = folder / "town.csv"
    lines = [f"{i},{i % 80}" for i in range(100)]
    path.write_text("\n".join(["person,age", *lines]) + "\n")
    base = ("--name", "town", "--unit", "person", "--epsilon", 3, "--delta", "1e-6")
    page = run("protect", "town.csv", *base).stdout
    assert "guessed from the rows of town, and public now: person BIGINT, age BIGINT" in page
    assert 'age = { type = "BIGINT", bounds = "infer" }' in (folder / "town.toml").read_text()
    path.write_text("\n".join(["person,age", *lines, *["7,none"] * 100]) + "\n")
    mean = run("query", "town", "SELECT AVG(age) AS age FROM town", "--epsilon", 1, "--json")
    assert "age" in json.loads(mean.stdout)[0]


@pytest.mark.lengthy
def test_quote_is_free_and_query_pays(folder):
    protect("--rows", 1)
    question = "SELECT COUNT(*) AS n FROM people"
    quoted = run("quote", "people", question, "--epsilon", "0.5").stdout
    assert "16.7% of the budget; about 5 more like it fit" in quoted
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger["people"].used == 0
    answer = json.loads(run("query", "people", question, "--epsilon", "0.5", "--json").stdout)
    assert abs(answer[0]["n"] - 3000) < 100
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger["people"].used == pytest.approx(1 / 6)


@pytest.mark.lengthy
def test_a_receipt_and_a_card_come_along(folder):
    protect("--rows", 1)
    asked = ["SELECT COUNT(*) AS n FROM people", "--share", "5%", "--explain"]
    page = run("query", "people", *asked, "--receipt", "r.json", "--card", "c.json").stdout
    assert "Who is protected" in page
    with Ledger.open("budget.db", read_only=True) as ledger:
        vkey = ledger.vkey
    assert check_receipt((folder / "r.json").read_text(), vkey)
    assert json.loads((folder / "c.json").read_text())["privacy"]["neighbours"] == "add_remove"


@pytest.mark.lengthy
def test_it_works_from_another_folder(folder, tmp_path_factory, monkeypatch):
    protect("--rows", 1)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    asked = ["SELECT COUNT(*) AS n FROM people", "--within", "20"]
    assert "95%" in run("query", folder / "people.toml", *asked).stdout


@pytest.mark.lengthy
def test_several_tables_share_a_budget(folder):
    log = visits(5000, users=300)
    pq.write_table(pa.table({"person_id": log["user_id"], "place": log["place"]}), "visits.parquet")
    base = ["--name", "city", "--unit", "person_id", "--epsilon", "3", "--delta", "1e-6"]
    run("protect", "people=people.parquet", "visits=visits.parquet", *base)
    joined = (
        "SELECT sex, COUNT(*) AS n FROM people JOIN visits USING (person_id) "
        "WHERE sex IN ('female', 'male') GROUP BY sex"
    )
    answer = json.loads(run("query", "city", joined, "--epsilon", 1, "--json").stdout)
    assert [row["sex"] for row in answer] == ["female", "male"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["query", "nobody", "SELECT 1", "--epsilon", "1"], "there is no nobody.toml here"),
        (["protect", "people.parquet", "--name", "p", "--epsilon", "1", "--delta", "0"], "unit"),
        (["protect", "none.parquet", "--name", "p", "--unit", "u", "--epsilon", "1", "--delta",
          "0"], "none.parquet"),
        (["protect", "people.parquet", "--name", "p", "--unit", "nope", "--epsilon", "1",
          "--delta", "0"], "nope"),
        (["protect", "people.parquet", "--name", "p", "--unit", "person_id", "--epsilon", "1",
          "--delta", "0", "--neighbours", "cousins"], "neighbours must be one of"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(folder, args, words):
    result = run(*args, code=2)
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (folder / "p.toml").exists()


@pytest.mark.lengthy
def test_questions_are_refused_with_position_and_remedy(folder):
    protect("--rows", 1)
    result = run("query", "people", "SELECT * FROM people", "--epsilon", "1", code=2)
    assert "line 1, column 8" in result.stderr
    assert "Nothing was spent" in result.stderr
    result = run("query", "people", "SELECT COUNT(*) FROM people", code=2)
    assert "exactly one of --epsilon, --share and --within" in result.stderr


@pytest.mark.lengthy
def test_protecting_twice_mints_no_new_budget(folder):
    protect("--rows", 1)
    assert "is there already" in protect(code=2).stderr
    again = ["protect", "people.parquet", "--name", "second", "--unit", "person_id"]
    result = run(*again, "--epsilon", "3", "--delta", "1e-6", code=2)
    assert "belongs to account 'people'" in result.stderr
    assert not (folder / "second.toml").exists()


@pytest.mark.lengthy
def test_a_copy_shares_the_account_or_says_why_not(folder):
    protect("--rows", 1)
    pq.write_table(pq.read_table("people.parquet").slice(0, 2000), "copy.parquet")
    terms = ["--unit", "person_id", "--epsilon", "3", "--delta", "1e-6"]
    result = run("protect", "copy.parquet", "--name", "copy", *terms, code=2)
    said = " ".join(result.stderr.split())
    assert "this data is that of account 'people'" in said
    assert "--account" in said
    assert "--override" in said
    assert not (folder / "copy.toml").exists()
    run("protect", "copy.parquet", "--name", "copy", "--account", "people", *terms)
    run("query", "copy", "SELECT COUNT(*) FROM copy", "--epsilon", "0.5")
    other = ["protect", "copy.parquet", "--name", "other", *terms]
    run(*other, "--override", "other people, numbered alike")
    shown = " ".join(run("ledger", "history", "--json").stdout.split())
    assert "although it is like that of people: other people, numbered alike" in shown
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert {one.name: one.used > 0 for one in ledger} == {"people": True, "other": False}
        ledger.verify()
