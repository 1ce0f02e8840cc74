"""The wizard proposes from names and types, asks for the rest, and never sees a value."""

import io
import tomllib

import pytest
from rich.console import Console

from discreet.cli.tables.wizard import ask, propose
from discreet.errors import ParameterError
from discreet.privacy import Guarantee, Unit
from discreet.tables import DeclaredColumn, likely_units, load

SCHEMA = {
    "people": {
        "user_id": "BIGINT",
        "age": "INTEGER",
        "smokes": "BOOLEAN",
        "born": "DATE",
        "region": "VARCHAR",
        "job": "ENUM('spy', 'clerk')",
        "photo": "BLOB",
    }
}
COMMON = {"name": "people", "guarantee": Guarantee(epsilon=3, delta=1e-6)}


def answered(*answers, schema=SCHEMA, **changes):
    console = Console(file=io.StringIO(), width=200)
    stream = io.StringIO("".join(f"{answer}\n" for answer in answers))
    made = ask(console, schema, **{**COMMON, **changes}, stream=stream)
    return made, console.file.getvalue()


def test_the_proposal_says_what_types_say_and_no_more():
    made = propose(SCHEMA, unit="user_id", **COMMON)
    assert made.tables["people"].columns == {
        "age": DeclaredColumn(),
        "smokes": DeclaredColumn(keys=(False, True)),
    }


def test_the_file_invites_to_go_on_and_hides_categories(tmp_path):
    made = propose(SCHEMA, unit="user_id", sources={"people": "people.parquet"}, **COMMON)
    made.save(tmp_path / "people.toml", SCHEMA)
    text = (tmp_path / "people.toml").read_text()
    assert 'age = { bounds = "infer" }  # INTEGER' in text
    assert '# region = { keys = ["this", "that"] }  # VARCHAR' in text
    assert "user_id =" not in text.split("[tables")[1]  # nothing to declare
    assert "spy" not in text  # the categories of an ENUM are data
    assert load(tmp_path / "people.toml") == made
    # A custodian removes the signs of comments and has a valid file.
    opened = "\n".join(line.removeprefix("# ") for line in text.splitlines()[1:])
    columns = tomllib.loads(opened)["tables"]["people"]["columns"]
    assert columns["region"] == {"keys": ["this", "that"]}


def test_units_are_guessed_by_name_only():
    assert likely_units({"a": {"x": "INT", "id": "INT", "patient_id": "INT"}}) == [
        "patient_id",
        "id",
    ]
    assert likely_units({"a": {"user_id": "INT"}, "b": {"visitor": "INT"}}) == []
    assert likely_units({"a": {"income": "INT", "paid": "INT", "idea": "INT"}}) == []


def test_pressing_enter_throughout_gives_the_proposal():
    made, _ = answered(*[""] * 10)
    assert made == propose(SCHEMA, unit="user_id", **COMMON)


def test_answers_become_bounds_and_keys():
    made, _ = answered("user_id", "0 120", 'north, "south, east"', "", "")
    columns = made.tables["people"].columns
    assert columns["age"].bounds == (0, 120)
    assert columns["region"].keys == ("north", "south, east")
    assert columns["smokes"].keys == (False, True)
    assert "job" not in columns


@pytest.mark.parametrize("wrong", ["120 0", "zero ten", "5", "nan 1", "0 inf"])
def test_a_bad_answer_is_asked_for_again(wrong):
    made, shown = answered("user_id", wrong, "0.5, 120")
    assert made.tables["people"].columns["age"].bounds == (0.5, 120)
    assert "must be two" in shown


def test_the_number_of_units_may_be_public():
    schema = {"people": {"user_id": "BIGINT"}}
    made, shown = answered("user_id", "some", "1000", schema=schema)
    assert made.size == 1000
    assert "size must be" in shown
    assert answered("user_id", "", schema=schema)[0].size is None


def test_a_unit_must_be_a_column_of_all_tables():
    both = {"people": {"user_id": "INT", "age": "INT"}, "visits": {"user_id": "INT", "at": "DATE"}}
    made, shown = answered("age", "user_id", schema=both)
    assert made.unit == Unit.column("user_id")
    assert "unit must be one of user_id" in shown
    with pytest.raises(ParameterError, match="there is none"):
        answered("a", schema={"a": {"a": "INT"}, "b": {"b": "INT"}})


def test_input_that_ends_is_no_endless_loop():
    with pytest.raises(ParameterError, match="unit must be one of"):
        answered(schema={"a": {"x": "INT", "y": "INT"}})


def test_a_unit_that_is_known_is_not_asked_for():
    made, shown = answered("0 120", unit=Unit.record(), schema={"p": {"age": "INTEGER"}})
    assert made.unit == Unit.record()
    assert "whose rows" not in shown
    assert made.tables["p"].columns["age"].bounds == (0, 120)


def test_names_with_markup_or_escapes_are_shown_as_text():
    schema = {"p[red]": {"user_id": "INT", "[bold]a\x1b[31m": "INTEGER"}}
    _, shown = answered("user_id", "", schema=schema)
    assert "p[red].[bold]a\\x1b[31m" in shown
    assert "\x1b[31m" not in shown
