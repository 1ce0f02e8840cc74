"""`discreet collect` from a declaration to an estimate, and what it says where it refuses."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest
from command_line import did, facts, run

COMMANDS = ("init", "encode", "serve", "estimate", "show")


def encoded(values, *, out="reports.bin"):
    with open("values.txt", "w", encoding="utf-8") as file:
        file.write("".join(f"{value}\n" for value in values))
    return did("collect", "encode", "moods.parameters.json", "values.txt", "--out", out)


def test_init_charges_and_says_what_devices_get(moods):
    assert "at most 5 reports of a device" in moods
    assert "Charged epsilon 10 to devices: 100.0% used." in moods
    assert "discreet collect serve moods" in moods
    told = json.loads(did("collect", "show", "moods", "--parameters"))
    assert told["values"] == ["bad", "fair", "good"]
    assert (told["randomiser"]["kind"], told["lifetime"]) == ("direct", "10")
    page = did("collect", "show", "moods")
    assert "0 accepted" in page
    assert "for a device's lifetime: entry 2" in page
    assert facts("collect", "show", "moods")["paid"] == {"": 2}


def test_many_values_are_asked_by_what_errs_least(book):
    page = did(
        *("collect", "init", "pages", "--account", "devices", "--domain", 1000),
        *("--epsilon", "0.5", "--per-day", 1, "--lifetime", 3, "--minimum", 10),
    )
    assert "projective response, at most 6 reports" in page


def test_from_values_to_an_estimate_that_a_stranger_checks(moods):
    assert encoded(["good"] * 300 + ["bad"] * 100).startswith("Wrote 400 reports")
    page = did(
        *("collect", "estimate", "moods", "--reports", "reports.bin"),
        *("--receipt", "receipt.json", "--answer", "answer.json", "--card", "card.md"),
    )
    lines = page.splitlines()
    assert lines[0].startswith("moods: 400 reports, entry 4 of the ledger")
    assert lines[4].split()[0] == "good"
    assert all(len(line) <= 80 for line in lines)
    with open("card.md", encoding="utf-8") as card:
        assert "local" in card.read()
    proven = did("verify", "receipt.json", "--key", "budget.db.pub", "--answer", "answer.json")
    assert "proven" in proven
    told = facts("collect", "estimate", "moods")
    with open("answer.json", encoding="utf-8") as answer:
        assert told == json.load(answer)
    again = did("collect", "estimate", "moods", "--reports", "reports.bin")
    assert "400 reports" in again
    assert facts("collect", "show", "moods")["counts"]["replayed"] == 400


def test_reports_go_through_a_pipe(moods, tmp_path):
    command = [sys.executable, "-m", "discreet", "collect", "encode", "moods.parameters.json"]
    ran = subprocess.run(command, input=b"good\nfair\n", capture_output=True, check=True)
    assert len(ran.stdout) == 2 * 34


def test_too_few_reports_are_not_published(moods):
    encoded(["good"] * 99)
    refused = run("collect", "estimate", "moods", "--reports", "reports.bin")
    assert refused.exit_code == 2
    assert "99 reports have come, and estimates are published from 100 on" in refused.output


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (("show", "none"), "there is no collection at none.reports. There is moods. Make one"),
        (("init", "moods", "--domain", 3), "moods.reports exists already. Nothing was charged."),
        (("init", "new"), "--values FILE with one in a line"),
        (("init", "new", "--domain", 3, "--values", "moods.txt"), "or --domain K"),
        (("init", "new", "--values", "none.txt"), "none.txt cannot be read as text"),
        (("init", "new", "--domain", 1), "--domain must be a whole number of at least 2"),
        (("init", "new", "--domain", 3), "Nothing was spent"),  # the budget is used up
        (("serve", "moods", "--host", "0.0.0.0"), "which report is whose"),
        (("serve", "moods", "--certificate", "a.pem"), "go together"),
        (("serve", "moods", "--port", 99999), "65535"),
        (
            ("serve", "moods", "--host", "203.0.113.1", "--proxy", "127.0.0.1"),
            "nothing can listen on port 8080",
        ),
        (("encode", "none.json"), "none.json cannot be read"),
        (("encode", "moods.txt"), "must be a JSON document"),
        (("estimate", "moods", "--reports", "none.bin"), "none.bin cannot be read"),
    ],
)
def test_refusals_say_what_to_do(moods, said, told):
    if said[0] == "init":
        said += ("--account", "devices", "--epsilon", 2, "--per-day", 2, "--lifetime", 10)
        said += ("--minimum", 100)
    refused = run("collect", *said)
    assert refused.exit_code == 2
    assert told in " ".join(refused.output.split())
    assert len(refused.output.strip().splitlines()) == 1


def test_a_value_that_is_none_is_named_by_its_line_alone(moods, tmp_path):
    (tmp_path / "values.txt").write_text("good\nterrible secret\n")
    refused = run("collect", "encode", "moods.parameters.json", "values.txt", "--out", "r.bin")
    assert "line 2 must be one of the labels. No report was made." in refused.output
    assert "secret" not in refused.output


def test_an_account_of_another_relation_is_refused(book):
    did("ledger", "create", "people", "--unit", "record", "--epsilon", 50)
    refused = run(
        *("collect", "init", "moods", "--account", "people", "--values", "moods.txt"),
        *("--epsilon", 2, "--per-day", 2, "--lifetime", 10, "--minimum", 100),
    )
    assert refused.exit_code == 2
    assert "--neighbours replace_one" in refused.output
    assert "Nothing was charged" in refused.output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_has_an_example(command):
    page = did("collect", command, "--help", COLUMNS="80")
    assert "Example" in page
    assert all(len(line) <= 80 for line in page.splitlines())


@pytest.mark.lengthy
def test_a_real_collector_takes_reports_and_ends_when_told(moods):
    encoded(["good"] * 150)
    command = [sys.executable, "-m", "discreet", "collect", "serve", "moods", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            first = process.stdout.readline().decode().split()
            url = first[-1].removesuffix("/reports")
            with open("reports.bin", "rb") as file:
                raw = file.read()
            with urllib.request.urlopen(f"{url}/reports", data=raw) as answer:
                assert answer.status == 202
            with urllib.request.urlopen(f"{url}/estimate") as answer:
                told = json.load(answer)
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
    assert told["published"]["n"] == told["counts"]["accepted"] == 150
    assert errors == b""
    assert facts("collect", "show", "moods")["counts"]["accepted"] == 150
