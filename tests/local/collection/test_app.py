"""The collector over HTTP: durable before 202, and the same answer whatever the bytes are."""

import asyncio
import json
import logging
import threading

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from discreet.errors import LedgerUnavailable, TryLater
from discreet.ledger.verifier import check_receipt
from discreet.local.collection.app import CollectorLimits, collector
from discreet.local.collection.gathering import Gathering
from discreet.local.collection.senders import SenderLimit
from discreet.local.wire import encode, read_parameters


def asked(collection, **said):
    return TestClient(collector(collection, limits=CollectorLimits(seconds=0, **said)))


@pytest.fixture
def client(collection):
    return asked(collection, reports_per_minute=0)


def test_from_the_parameters_to_an_estimate_with_its_receipt(client, collection, ledger):
    parameters = read_parameters(client.get("/parameters").content)
    assert parameters == collection.parameters
    waiting = client.get("/estimate").json()
    assert waiting["published"] is None
    assert waiting["minimum"] == 100
    reports = encode(parameters, parameters.randomiser.release([6] * 150))
    assert client.post("/reports", content=reports[0]).status_code == 202
    assert client.post("/reports", content=b"".join(reports[1:])).status_code == 202
    told = client.get("/estimate").json()
    assert told["counts"]["accepted"] == told["published"]["n"] == 150
    counts = told["published"]["estimate"]["counts"]
    assert max(range(8), key=counts.__getitem__) == 6
    answer = json.dumps(told["published"], sort_keys=True, separators=(",", ":")).encode()
    proven = check_receipt(json.dumps(told["receipt"]), ledger.vkey, answer=answer)
    assert [entry["kind"] for entry in proven.entries] == ["charge", "charge", "release"]
    assert proven.answer == proven.entries[-1]["index"]


def test_answers_to_reports_do_not_depend_on_what_is_in_them(client, collection):
    good = encode(collection.parameters, [1, 2])
    bodies = [good[0], good[0], good[0] + good[1], b"", b"?", b"x" * 999, good[1][:-1], bytes(5000)]
    answers = [client.post("/reports", content=body) for body in bodies]
    assert {(a.status_code, a.content, tuple(sorted(a.headers.items()))) for a in answers} == {
        (202, b"", tuple(sorted(answers[0].headers.items())))
    }
    counts = collection.counts
    assert counts["accepted"] == 2
    assert counts["replayed"] == 2


def test_too_much_is_refused_before_it_is_read(collection):
    client = asked(collection, body_bytes=1024)
    refused = client.post("/reports", content=b"x" * 1025)
    assert (refused.status_code, refused.json()["status"]) == (413, 413)
    assert sum(collection.counts.values()) == 0


def test_an_address_may_send_so_many_and_nobody_writes_down_which(collection, caplog):
    caplog.set_level(logging.DEBUG)
    client = asked(collection, reports_per_minute=60)
    reports = encode(collection.parameters, [1] * 20)
    assert client.post("/reports", content=b"".join(reports[:10])).status_code == 202
    refused = client.post("/reports", content=b"".join(reports[10:]))
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert collection.counts["accepted"] == 10
    assert not any("testclient" in record.getMessage() for record in caplog.records)


def test_senders_are_told_apart_by_network_and_forgotten_by_age():
    limit = SenderLimit(per_minute=6)
    assert limit.take("2001:db8::1", reports=1) == 0
    assert limit.take("2001:db8::ffff:1", reports=1) > 0  # the same network
    assert limit.take("2001:db8:0:1::1", reports=1) == 0
    assert limit.take("no address", reports=50) == 0  # the first may be of any size
    assert limit.take("no address", reports=1) > 400


def test_any_page_may_bring_reports(client):
    asking = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    allowed = client.options("/reports", headers=asking)
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == "*"
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert "content-type" in allowed.headers["access-control-allow-headers"]
    for answer in (client.get("/estimate"), client.post("/reports"), client.get("/nowhere")):
        assert answer.headers["access-control-allow-origin"] == "*"


def test_health_and_nowhere_and_wrong_methods(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/").status_code == 404
    assert client.get("/reports").status_code == 405


def test_what_cannot_be_stored_is_not_acknowledged(client, collection, monkeypatch):
    def full(*_):
        raise LedgerUnavailable("the disk at /srv/secret is full")

    report = encode(collection.parameters, [1])[0]
    with monkeypatch.context() as broken:
        broken.setattr(type(collection), "take", full)
        refused = client.post("/reports", content=report)
    assert refused.status_code == 503
    assert "secret" not in refused.text
    assert collection.counts["accepted"] == 0
    assert client.post("/reports", content=report).status_code == 202
    assert collection.counts["accepted"] == 1


def test_it_may_be_mounted_below_an_address(collection):
    app = Starlette(routes=[Mount("/collections/emoji", collector(collection))])
    client = TestClient(app)
    assert client.get("/collections/emoji/parameters").status_code == 200
    assert client.get("/collections/emoji/none").status_code == 404


def test_what_arrives_meanwhile_is_stored_together_and_in_order():
    calls, gate = [], threading.Event()

    def store(bodies):
        gate.wait(10)
        calls.append(list(bodies))

    async def work():
        gathering = Gathering(store, room=100)
        first = asyncio.create_task(gathering.put(b"0"))
        await asyncio.sleep(0.01)
        rest = [asyncio.create_task(gathering.put(b"%d" % i)) for i in range(1, 9)]
        await asyncio.sleep(0.01)
        assert not first.done()
        gate.set()
        await asyncio.gather(first, *rest)

    asyncio.run(work())
    assert calls == [[b"0"], [b"%d" % i for i in range(1, 9)]]


def test_too_much_waiting_is_turned_away_and_a_failure_reaches_whom_it_concerns():
    gate = threading.Event()

    def store(bodies):
        gate.wait(10)
        if b"bad" in bodies:
            raise LedgerUnavailable("no")

    async def work():
        gathering = Gathering(store, room=10)
        first = asyncio.create_task(gathering.put(b"x" * 100))  # the first may be of any size
        await asyncio.sleep(0.01)
        second = asyncio.create_task(gathering.put(b"bad"))
        await asyncio.sleep(0.01)
        with pytest.raises(TryLater):
            await gathering.put(b"x" * 8)
        gate.set()
        await first
        with pytest.raises(LedgerUnavailable):
            await second
        await gathering.put(b"later")

    asyncio.run(work())
