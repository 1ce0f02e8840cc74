"""Reports stored once, counted exactly, and told above the minimum, whatever ends the process."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from datetime import date

import numpy as np
import pytest

from discreet import local
from discreet.errors import DataError, LedgerUnavailable, ParameterError
from discreet.ledger import Ledger
from discreet.local.collection import charging
from discreet.local.collection.collection import Collection
from discreet.local.wire import encode, parameters_of
from discreet.privacy import Unit


def reports_of(collection, values):
    randomiser = collection.parameters.randomiser
    return encode(collection.parameters, randomiser.release(values))


def test_rejects_are_counted_exactly_and_change_nothing(collection):
    good = reports_of(collection, [1] * 50)
    elsewhere = parameters_of(
        local.HadamardResponse(domain=8, epsilon=2), name="other", a_day=2, lifetime=2
    )
    foreign = encode(elsewhere, [3, 4])
    impossible = bytearray(good[0])
    impossible[-1] = 255
    came = [*good, *good[:5], *foreign, b"", b"?", good[1][:-1], bytes(impossible)]
    random.Random(1).shuffle(came)
    told = collection.take(came)
    expected = {"accepted": 50, "malformed": 3, "foreign": 2, "out_of_range": 1, "replayed": 5}
    assert told == collection.counts == expected
    assert collection.take(good) == dict.fromkeys(expected, 0) | {"replayed": 50}
    assert collection.counts["accepted"] == 50


def test_100_000_reports_of_bytes_by_chance_never_fail(collection):
    chance = random.Random(2)
    good = reports_of(collection, [0] * 1000)
    came = []
    for _ in range(100_000):
        raw = bytearray(chance.choice(good))
        for _ in range(chance.randrange(3)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        came.append(bytes(raw[: chance.randrange(len(raw) + 1)] if chance.random() < 0.1 else raw))
    told = collection.take(came)
    assert sum(told.values()) == 100_000
    assert collection.counts == told
    assert collection.estimate().n == told["accepted"]


def test_estimates_are_published_above_the_minimum_and_again_for_free(collection, ledger):
    account = ledger["devices"]
    collection.take(reports_of(collection, [1] * 99))
    with pytest.raises(DataError, match="99 reports have come, and estimates are published from"):
        collection.publish()
    collection.take(reports_of(collection, [1]))
    used, first = account.used, collection.publish()
    assert (first.number, first.n) == (1, 100)
    collection.take(reports_of(collection, [1] * 99))
    again = collection.publish()  # the difference of two would tell of 99
    assert (again.number, again.document) == (1, first.document)
    collection.take(reports_of(collection, [1]))
    second = collection.publish()
    assert (second.number, second.n) == (2, 200)
    assert account.used == used == 1.0
    for published in (first, second):
        proven = collection.prove(published)
        assert [entry["kind"] for entry in proven.entries] == ["charge", "charge", "release"]
        assert proven.loss == collection.dues.loss
        assert ledger.answer_of(proven.entries[-1]["index"]) == published.document
    ledger.verify()


def test_what_is_published_is_the_estimate_of_what_was_stored(collection):
    values = np.repeat([0, 5], [300, 700])
    randomiser = collection.parameters.randomiser
    codes = randomiser.release(values)
    collection.take(encode(collection.parameters, codes))
    numbers = collection.publish().numbers
    expected = randomiser.estimate(codes)
    assert numbers["counts"] == pytest.approx(expected.counts, abs=1e-5)
    assert numbers["standard_error"] == pytest.approx(expected.standard_error, abs=1e-5)


def test_the_card_says_what_was_asked_and_no_number_of_the_answer(collection):
    collection.take(reports_of(collection, [1] * 100))
    published = collection.publish()
    card = published.card()
    json.dumps(card, allow_nan=False)
    assert card["trust_model"].startswith("local")
    assert card["privacy"]["epsilon"] == pytest.approx(10)
    assert card["privacy"]["neighbours"] == "replace_one"
    assert card["reports"]["counted"] == 100
    assert card["evidence"]["account"] == "devices"
    assert not {"counts", "standard_error", "estimate"} & set(json.dumps(card).split('"'))


def test_a_crash_while_publishing_is_made_good(collection, ledger, tmp_path, monkeypatch):
    collection.take(reports_of(collection, [1] * 100))

    def crash(*_, **__):
        raise KeyboardInterrupt

    for place in ("ledger.accounts.answers.release", "local.collection.file.ReportFile.settle"):
        name = f"discreet.{place}{'_publication' if 'settle' in place else ''}"
        with monkeypatch.context() as broken:
            broken.setattr(name, crash)
            with pytest.raises(KeyboardInterrupt):
                collection.publish()
    with Collection.resume(ledger, collection.path) as found:
        published = found.publish()
    assert published.number == 1
    kinds = [entry["kind"] for entry in ledger["devices"].history()]
    assert kinds == ["account", "charge", "charge", "release"]
    assert ledger.prove(published.receipt).is_proven


def test_a_crash_while_publishing_is_made_good_on_another_day(
    make_account, open_collection, ledger, monkeypatch
):
    make_account(unit=Unit.column("device").per("day"))
    monkeypatch.setattr(charging, "today", lambda: date(2026, 3, 1))
    collection = open_collection()
    collection.take(reports_of(collection, [1] * 100))

    def crash(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("discreet.ledger.accounts.answers.release", crash)
        with pytest.raises(KeyboardInterrupt):
            collection.publish()
    monkeypatch.setattr(charging, "today", lambda: date(2026, 3, 2))
    with Collection.resume(ledger, collection.path) as found:
        assert ledger.prove(found.publish().receipt).is_proven


def test_the_file_is_its_owners_and_knows_neither_time_nor_sender(collection):
    assert collection.path.stat().st_mode & 0o777 == 0o600
    first, second = reports_of(collection, [1, 2])
    collection.take([first])
    collection.take([second])
    with sqlite3.connect(collection.path) as connection:
        rows = connection.execute("SELECT * FROM reports").fetchall()
        columns = [row[1] for row in connection.execute("PRAGMA table_info(reports)")]
    connection.close()
    assert columns == ["token", "payload"]
    assert [token for token, _ in rows] == sorted([first[17:33], second[17:33]])


def test_threads_and_processes_share_a_collection(collection, ledger):
    reports = reports_of(collection, [3] * 2000)
    with Collection.resume(ledger, collection.path) as other:
        homes = [collection, other] * 4  # each report comes eight times
        threads = [
            threading.Thread(
                target=lambda home=home: [
                    home.take(reports[i : i + 100]) for i in range(0, 2000, 100)
                ]
            )
            for home in homes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert collection.counts["accepted"] == 2000
    assert collection.counts["replayed"] == 14_000


def test_no_collection_and_no_file_are_told_apart(ledger, tmp_path, collection):
    with pytest.raises(ParameterError, match="discreet collect init"):
        Collection.resume(ledger, tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at")
    with pytest.raises(LedgerUnavailable, match="did not answer"):
        Collection.resume(ledger, tmp_path / "text.db")
    with pytest.raises(DataError, match="is no collection"):
        Collection.resume(ledger, tmp_path / "budget.db")


SENDING = """
import sys
from discreet.ledger import Ledger
from discreet.local.collection import charging
from discreet.local.collection.collection import Collection

with Ledger.open(sys.argv[1]) as ledger, Collection.resume(ledger, sys.argv[2]) as collection:
    raw = open(sys.argv[3], "rb").read()
    length = int(sys.argv[4])
    for start in range(0, len(raw), 50 * length):
        part = raw[start : start + 50 * length]
        collection.take(part[i : i + length] for i in range(0, len(part), length))
        print(start // length + 50, flush=True)
"""


@pytest.mark.lengthy
def test_kill_9_loses_no_acknowledged_report_and_counts_none_twice(ledger, collection, tmp_path):
    raw = reports_of(collection, [3] * 20_000)
    (tmp_path / "reports.bin").write_bytes(b"".join(raw))
    places = [str(tmp_path / "budget.db"), str(collection.path), str(tmp_path / "reports.bin")]
    acknowledged = 0
    for patience in (1, 7, 40):  # lines after which it is killed
        command = [sys.executable, "-c", SENDING, *places, str(len(raw[0]))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(patience):
                acknowledged = max(acknowledged, int(process.stdout.readline()))
            os.kill(process.pid, signal.SIGKILL)
            rest = process.stdout.read().split()
            acknowledged = max([acknowledged, *map(int, rest)])
        with Ledger.open(places[0]) as book, Collection.resume(book, places[1]) as found:
            accepted = found.counts["accepted"]
            stored = found.estimate().n
        assert acknowledged <= accepted == stored <= acknowledged + 50
    collection.take(raw)
    counts = collection.counts
    assert counts["accepted"] == 20_000 == collection.estimate().n
