"""Nothing that anybody can look at tells when an answer was ready, before it is due."""

import datetime
import json
import threading
import time

import pytest
from gateway_sites import COUNT, QUERY, asked, make_site

pytestmark = pytest.mark.lengthy
DUE = 1.5


def entries(port):
    return int(asked(port, "GET", "/v1/ledger/checkpoint")[1]["checkpoint"].splitlines()[1])


def test_neither_the_log_nor_asking_again_tells_when_an_answer_was_ready(tmp_path):
    site = make_site(tmp_path, answer_after=DUE)
    with site.running() as url:
        port = int(url.rpartition(":")[2])
        ask = {"key": site.keys["ana"], "body": COUNT, "request": "one"}
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(asked(port, "POST", QUERY, **ask)))
        before = entries(port)
        began = time.monotonic()
        waiting.start()
        while entries(port) == before:
            time.sleep(0.01)
        seen = set()
        while time.monotonic() - began < DUE - 0.2:
            again = asked(port, "POST", QUERY, **ask)[0]
            seen.add((entries(port), again))
        waiting.join()
    assert seen == {(before + 1, 409)}
    ((status, answer),) = answers
    assert status == 200
    charge, release = (
        datetime.datetime.fromisoformat(json.loads(one)["time"]) for one in answer["receipt"]
    )
    assert (release - charge).total_seconds() > DUE / 3
