"""Real processes: several workers at exhaustion, one that is killed, and a quiet end."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from gateway_sites import QUERY, asked, make_site, processes

from discreet.ledger import Ledger
from discreet.service import Records, Role, create
from discreet.testing import PostgresServer

pytestmark = pytest.mark.lengthy
ANALYSTS = 32


def entries(site, kind):
    with Ledger.open(site.settings.ledger, key=site.settings.ledger_key) as ledger:
        ledger.verify()
        return [one for one in ledger.history() if one["kind"] == kind]


def question(number):
    return {
        "question": f"SELECT COUNT(*) AS n FROM people WHERE income > {number}", "epsilon": 0.05,
    }  # fmt: skip


def logins(site, number):
    """Make so many analysts, and return their keys by name."""
    with Records.open(site.settings.records_location) as records:
        return {
            f"analyst {one}": create(records, who=f"analyst {one}", roles=[Role.ANALYST])[1]
            for one in range(number)
        }


def crowded(site, ports):
    """Let all analysts ask at once for more than there is; check that no more was given."""
    keys = logins(site, ANALYSTS)
    body = {"epsilon": 0.2, "delta": 1e-6, "analyst": "*"}
    path = "/v1/datasets/people/limits"
    assert asked(ports[0], "POST", path, key=site.keys["chris"], body=body)[0] == 200

    def ask(one):
        number, (who, key) = one
        return who, [
            asked(
                ports[(number + i) % len(ports)], "POST", QUERY, key=key,
                body=question(100 * number + i),
            )[0]
            for i in range(10)
        ]  # fmt: skip

    with concurrent.futures.ThreadPoolExecutor(ANALYSTS) as crowd:
        found = dict(crowd.map(ask, enumerate(keys.items())))
    path = "/v1/datasets/people/quote"
    _, quote = asked(ports[0], "POST", path, key=site.keys["ana"], body=question(7))
    everything = Counter(status for each in found.values() for status in each)
    assert set(everything) == {200, 409}
    assert not quote["fits"]
    assert quote["budgets"][0]["used"] <= 1 < quote["budgets"][0]["used_after"]
    charges = Counter(one["who"] for one in entries(site, "charge"))
    assert charges == {who: each.count(200) for who, each in found.items() if 200 in each}
    assert max(charges.values()) <= 4  # 0.2 for each of them, at 0.05 a question


def test_four_workers_and_32_analysts_at_exhaustion_do_not_overspend(tmp_path):
    """There is room for about a sixth of the 320 questions, and for four of each analyst."""
    site = make_site(tmp_path, epsilon=1)
    with processes(site, workers=4) as (port, _):
        crowded(site, [port])


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_two_hosts_on_postgresql_do_not_overspend_either(tmp_path):
    with PostgresServer() as server:
        url, key = server.new_database(), tmp_path / "budget.key"
        site = make_site(tmp_path, epsilon=1, ledger=url, ledger_key=key)
        shared = {"ledger": url, "ledger_key": str(key)}
        with (
            processes(site, workers=2, **shared) as (first, _),
            processes(site, workers=2, **shared) as (second, _),
        ):
            crowded(site, [first, second])


def test_a_killed_worker_loses_no_charge_and_the_service_goes_on(tmp_path):
    """Each answer that came is on record; each question is charged at most once, by its key."""
    site = make_site(tmp_path, epsilon=1000)
    with processes(site, workers=2) as (port, process):
        stop, done = time.monotonic() + 8, {}

        def ask(analyst):
            number = 0
            while time.monotonic() < stop:
                name = f"{analyst}/{number}"
                body = question(1000 * analyst + number)
                for _ in range(100):  # as a client does whose connection broke
                    try:
                        done[name] = asked(
                            port, "POST", QUERY, key=site.keys["ana"], body=body, request=name
                        )
                        break
                    except (OSError, http.client.HTTPException):
                        time.sleep(0.1)
                number += 1

        with concurrent.futures.ThreadPoolExecutor(8) as crowd:
            running = [crowd.submit(ask, analyst) for analyst in range(8)]
            for _ in range(3):
                time.sleep(1.5)
                os.kill(workers_of(process.pid)[0], signal.SIGKILL)
            for one in running:
                one.result()
        assert asked(port, "POST", QUERY, key=site.keys["ana"], body=question(99_999))[0] == 200
    charges, releases = entries(site, "charge"), entries(site, "release")
    answered = [document for status, document in done.values() if status == 200]
    lost = [document for status, document in done.values() if status == 409]
    assert len(answered) + len(lost) == len(done)
    assert all(one["type"].endswith("already-charged") for one in lost)
    assert len(answered) > 50
    # Every answer was charged and recorded, and nothing was charged twice.
    assert {one["entry"] for one in answered} <= {one["charge"] for one in releases}
    assert len(charges) == len(done) + 1
    assert {one["entry"] for one in answered + lost} <= {one["index"] for one in charges}


def workers_of(parent):
    """Return the worker processes; Python's resource tracker is no worker."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            told = (place / "cmdline").read_text()
            if int(fields[1]) == parent and "resource_tracker" not in told:
                found.append(int(place.name))
    return found


def test_a_quiet_end_answers_what_is_under_way(tmp_path):
    site = make_site(tmp_path)
    with (
        concurrent.futures.ThreadPoolExecutor(1) as beside,
        processes(site, workers=1, answer_after=1.5) as (port, process),
    ):
        waiting = beside.submit(asked, port, "POST", QUERY, key=site.keys["ana"], body=question(1))
        for _ in range(100):
            if entries(site, "charge"):
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert waiting.result()[0] == 200
    assert len(entries(site, "release")) == 1


def test_logs_are_lines_of_json_without_questions_or_keys(tmp_path):
    site = make_site(tmp_path)
    with processes(site, workers=1) as (port, _):
        asked(port, "POST", QUERY, key=site.keys["ana"], body=question(4711))
        asked(port, "POST", QUERY, key="dk_wrong", body=question(4711))
    text = (tmp_path / "log.txt").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert any(line.get("route") == "query" and line["status"] == 200 for line in lines)
    assert "4711" not in text
    assert not any(key in text for key in site.keys.values())
