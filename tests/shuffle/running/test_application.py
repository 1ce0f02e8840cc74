"""The shuffler over HTTP: who is answered what, and what is kept once it is acknowledged."""

import time
from threading import Thread

import anyio
import pytest
from shuffle_rooms import Rooms, in_batch
from starlette.testclient import TestClient

from discreet.errors import LedgerUnavailable, MissingExtra, ParameterError
from discreet.shuffle import Shuffler
from discreet.shuffle.running import create_shuffler_app, serve_shuffler


@pytest.fixture
def rooms(tmp_path) -> Rooms:
    return Rooms.make(tmp_path, seconds=0.02)


@pytest.fixture
def client(rooms):
    with TestClient(create_shuffler_app(rooms.shuffler())) as client:
        yield client


def post(client, token, envelope):
    return client.post(
        "/v1/envelopes", content=envelope, headers={"Authorization": f"Bearer {token}"}
    )


def of_analyser(rooms):
    return {"Authorization": f"Bearer {rooms.analyser_token}"}


def batch_in_time(client, rooms):
    deadline = time.monotonic() + 600
    while True:
        answer = client.get("/v1/batches/next", headers=of_analyser(rooms))
        if answer.status_code != 204:
            return answer
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_envelopes_come_in_and_a_batch_goes_out_until_it_is_taken(client, rooms):
    arrivals = rooms.arrivals(5)
    for arrival in arrivals:
        answer = post(client, *arrival)
        assert (answer.status_code, answer.json()) == (202, {"state": "waiting"})
    raw = batch_in_time(client, rooms).content
    assert batch_in_time(client, rooms).content == raw
    assert sorted(in_batch(raw, rooms.shuffler_key)) == sorted(a.envelope for a in arrivals)
    assert post(client, *arrivals[0]).json() == {"state": "known"}
    for _ in range(2):  # to say it twice does no harm
        assert client.delete("/v1/batches/1", headers=of_analyser(rooms)).status_code == 204
    assert client.get("/v1/batches/next", headers=of_analyser(rooms)).status_code == 204


def test_a_batch_never_leaves_because_somebody_asks(tmp_path):
    rooms = Rooms.make(tmp_path, seconds=1000)
    with TestClient(create_shuffler_app(rooms.shuffler())) as client:
        for arrival in rooms.arrivals(6):
            post(client, *arrival)
        for _ in range(3):
            answer = client.get("/v1/batches/next", headers=of_analyser(rooms))
            assert answer.status_code == 204


@pytest.mark.parametrize("token", ["", "ds_x", "Bearer"])
def test_strangers_get_nothing(client, rooms, token):
    (arrival,) = rooms.arrivals(1)
    assert post(client, token, arrival.envelope).status_code == 401
    for wrong in (token, arrival.token):
        headers = {"Authorization": f"Bearer {wrong}"}
        assert client.get("/v1/batches/next", headers=headers).status_code == 401
        assert client.delete("/v1/batches/1", headers=headers).status_code == 401


def test_an_envelope_that_never_arrives_holds_no_place_for_ever(rooms, monkeypatch):
    monkeypatch.setattr("discreet.shuffle.running.application._PATIENCE", 0.05)
    token, envelope = rooms.arrivals(1)[0]
    told = []

    async def receive():
        if told:
            return {"type": "http.disconnect"}
        if not pieces:
            await anyio.sleep(60)
        return {"type": "http.request", "body": pieces.pop(), "more_body": True}

    async def send(message):
        told.append(message)

    async def ask():
        async with app.router.lifespan_context(app):
            with anyio.fail_after(30):
                await app(scope, receive, send)

    pieces, app = [envelope[:9]], create_shuffler_app(rooms.shuffler())
    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/envelopes", "headers": headers}
    anyio.run(ask)
    assert told[0]["status"] == 503
    assert (b"connection", b"close") in told[0]["headers"]
    with rooms.shuffler() as shuffler:
        assert sum(shuffler.counts.values()) == 0


def test_what_is_no_envelope_is_refused_however_long_it_is(client, rooms):
    arrival, other = rooms.arrivals(2)
    for wrong in (b"", b"?", arrival.envelope + b"!", bytes(5_000_000)):
        answer = post(client, arrival.token, wrong)
        assert (answer.status_code, answer.json()) == (400, {"state": "malformed"})
    assert post(client, *arrival).status_code == 202
    assert post(client, arrival.token, other.envelope).status_code == 409


def test_many_at_once_are_all_told_the_truth(rooms):
    """Envelopes of many threads share transactions; each hears of its own."""
    rooms.tokens += with_tokens(rooms, 40)
    arrivals = rooms.arrivals(50)
    states = {}
    with TestClient(create_shuffler_app(rooms.shuffler())) as client:

        def send(part):
            for place in part:
                arrival = arrivals[place]
                broken = place % 5 == 0
                envelope = arrival.envelope[1:] if broken else arrival.envelope
                states[place] = post(client, arrival.token, envelope).json()["state"]

        threads = [Thread(target=send, args=(range(i, 50, 5),)) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [states[i] for i in range(50)] == ["malformed", *["waiting"] * 4] * 10
    with rooms.shuffler() as shuffler:
        assert (shuffler.counts["waiting"], shuffler.counts["malformed"]) == (40, 10)


def with_tokens(rooms: Rooms, count: int) -> list[str]:
    with rooms.shuffler() as shuffler:
        return shuffler.admit(count)


def test_what_is_public_is_told_and_nothing_secret(client, rooms):
    found = client.get("/v1/shuffler").json()
    assert found["analyser"] == rooms.key.text
    assert found["shuffler"] == rooms.shuffler_key
    assert found["parameters"] == rooms.parameters.document
    assert set(found) == {
        "format",
        "parameters",
        "analyser",
        "shuffler",
        "length",
        "minimum",
        "limit",
        "dummies",
        "seconds",
    }


def test_pages_of_any_origin_may_send(client, rooms):
    answer = client.options(
        "/v1/envelopes",
        headers={
            "Origin": "https://survey.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        },
    )
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


def test_a_full_disk_is_told_and_nothing_is_acknowledged(rooms, monkeypatch):
    def full(self, arrivals):
        raise LedgerUnavailable("no room left")

    monkeypatch.setattr(Shuffler, "accept", full)
    (arrival,) = rooms.arrivals(1)
    with TestClient(create_shuffler_app(rooms.shuffler())) as client:
        answer = post(client, *arrival)
        assert (answer.status_code, answer.json()["state"]) == (503, "later")


def test_tokens_do_not_cross_a_network_in_the_clear(rooms):
    with rooms.shuffler() as shuffler, pytest.raises(ParameterError, match="in the clear"):
        serve_shuffler(shuffler, host="192.0.2.1", port=8100)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    import importlib

    from discreet.shuffle import requirement

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'discreet\[serve\]'"):
        importlib.reload(requirement)
