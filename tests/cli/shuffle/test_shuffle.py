"""``discreet shuffle`` from the first key to the estimate, with three processes."""

import os

import pytest
from command_line import did, facts, run
from shuffle_rooms import Process, await_answer, free_port

from discreet.local import DirectResponse
from discreet.local.wire import parameters_of


@pytest.fixture
def collection(tmp_path):
    law = DirectResponse(domain=3, epsilon=1)
    values = ("tea", "coffee", "water")
    parameters = parameters_of(law, name="drinks", a_day=1, lifetime=1, values=values)
    place = tmp_path / "drinks.json"
    place.write_bytes(parameters.canonical)
    return place


@pytest.fixture
def halves(tmp_path, collection):
    """Set both up, and return their facts."""
    setup = ("--collection", collection, "--minimum", 30)
    analyser, shuffler = tmp_path / "analyser.db", tmp_path / "shuffler.db"
    found = facts(
        *("shuffle", "new-analyser", analyser, *setup), *("--honest", "0.9", "--delta", "1e-8")
    )
    found |= facts(
        *("shuffle", "new-shuffler", shuffler, *setup, "--analyser", found["analyser"]),
        *("--dummies", 5, "--seconds", 0.05),
    )
    return found


@pytest.mark.lengthy
def test_from_the_first_key_to_the_estimate(tmp_path, collection, halves):
    book = tmp_path / "budget.db"
    did("ledger", "init", "--ledger", book)
    did(
        *("ledger", "create", "drinks", "--unit", "record", "--neighbours", "replace_one"),
        *("--epsilon", "5", "--delta", "1e-6", "--ledger", book),
    )
    tokens, values = tmp_path / "tokens.txt", tmp_path / "values.txt"
    tokens.write_text(did("shuffle", "admit", tmp_path / "shuffler.db", 30))
    values.write_text("tea\n" * 20 + "coffee\n" * 10)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    serving = Process("shuffle", "serve", tmp_path / "shuffler.db", "--port", port)
    serving.start()
    try:
        await_answer(port)
        said = did(
            *("shuffle", "send", collection, values, "--to", url),
            *("--analyser", halves["analyser"], "--tokens", tokens),
        )
        assert said == "The shuffler keeps 30 envelopes and refused 0.\n"
        analysing = Process(
            *("shuffle", "analyse", tmp_path / "analyser.db", "--shuffler", url, "--signed-by"),
            *(halves["shuffler"], "--account", "drinks", "--ledger", book, "--once"),
            environment=os.environ | {"DISCREET_SHUFFLE_TOKEN": halves["token"]},
        )
        while facts("shuffle", "show", tmp_path / "analyser.db")["reports"] < 35:
            analysing.start()
            code, said = analysing.wait()
            assert code == 0, said
    finally:
        serving.kill()
    found = facts("shuffle", "estimate", tmp_path / "analyser.db")
    assert found["reports"] == 30
    assert {row["value"] for row in found["counts"]} == {"tea", "coffee", "water"}
    assert 0 < found["epsilon"] <= 1
    told = did("shuffle", "estimate", tmp_path / "analyser.db")
    assert "if shuffler and analyser work" in " ".join(told.split())
    shown = facts("shuffle", "show", tmp_path / "shuffler.db")
    assert (shown["waiting"], shown["envelopes waiting"]) == (30, 0)
    assert shown["shuffler"] == halves["shuffler"]


def test_what_was_set_up_is_shown(tmp_path, halves):
    shown = did("shuffle", "show", tmp_path / "shuffler.db")
    assert f"shuffler: {halves['shuffler']}" in shown
    assert f"analyser: {halves['analyser']}" in did("shuffle", "show", tmp_path / "analyser.db")
    assert halves["token"] not in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("estimate", "none.db"), "there is no file none.db"),
        (("show", "none.db"), "there is no file none.db"),
        (("admit", "none.db", "3"), "there is no file none.db"),
        (("serve", "none.db"), "there is no file none.db"),
    ],
)
def test_files_that_are_not_there_are_told_in_one_line(words, told):
    result = run("shuffle", *words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_it_refuses_what_would_protect_nobody(tmp_path, collection):
    setup = ("shuffle", "new-analyser", tmp_path / "a.db", "--collection", collection)
    for wrong in (
        ("--minimum", 1, "--honest", 1, "--delta", "1e-8"),
        ("--minimum", 10, "--honest", 2, "--delta", "1e-8"),
        ("--minimum", 10, "--honest", 1, "--delta", "1"),
    ):
        assert run(*setup, *wrong).exit_code == 2
        assert not (tmp_path / "a.db").exists()


def test_nothing_is_estimated_of_nothing(tmp_path, halves):
    result = run("shuffle", "estimate", tmp_path / "analyser.db")
    assert result.exit_code == 2
    assert "no estimate of fewer than 30 senders" in " ".join(result.output.split())


def test_values_that_are_none_of_the_collection_are_not_sent(tmp_path, collection, halves):
    values, tokens = tmp_path / "values.txt", tmp_path / "tokens.txt"
    tokens.write_text("ds_a\n")
    values.write_text("milk\n")
    sent = ("shuffle", "send", collection, values, "--to", "http://127.0.0.1:1")
    result = run(*sent, "--analyser", halves["analyser"], "--tokens", tokens)
    assert result.exit_code == 2
    assert "milk" not in result.output


def test_it_says_how_to_begin():
    assert "discreet shuffle new-analyser analyser.db" in " ".join(did("shuffle").split())
