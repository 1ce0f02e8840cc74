"""Ten thousand messages that are wrong: none ends the server, tells a secret, or is charged."""

import random
from collections import Counter
from types import SimpleNamespace

import pytest
from gateway_sites import asked, free_port, make_site, people, processes
from malformed import QUESTIONS, numbers
from malformed import mutated as spoilt
from wire_gateway import TOKEN, RawClient, errors_in, framed, startup

MESSAGES = 10_000
SEED = 20_261_118

GOOD = [
    startup(user="token", database="people"),
    framed(b"p", f"{TOKEN}\0".encode()),
    framed(b"Q", b"SELECT 1\0"),
    framed(b"Q", b"SELECT relname FROM pg_class; SHOW TimeZone\0"),
    framed(b"Q", b"SET discreet.notices = off; BEGIN; ROLLBACK\0"),
    framed(b"Q", b"SELECT COUNT(*) FROM people\0"),  # which nobody offers to pay for
    framed(b"P", b"p\0SELECT $1::int\0\0\1\0\0\0\x17"),
    framed(b"B", b"c\0p\0\0\1\0\1\0\1\0\0\0\4\0\0\0\7\0\1\0\1"),
    framed(b"D", b"Sp\0"),
    framed(b"D", b"Pc\0"),
    framed(b"E", b"c\0\0\0\0\1"),
    framed(b"C", b"Pc\0"),
    framed(b"S"),
    framed(b"H"),
    framed(b"X"),
    framed(b"F", b"\0\0\0\1"),
    framed(b"d", b"data"),
]


def mutated(chance: random.Random) -> bytes:
    """Return a message with something wrong about it, mostly."""
    made = bytearray(chance.choice(GOOD))
    for _ in range(chance.randint(0, 4)):
        way = chance.randrange(6)
        at = chance.randrange(len(made) + 1)
        if way == 0 and made:
            made[at % len(made)] = chance.randrange(256)
        elif way == 1:
            made[at:at] = chance.randbytes(chance.randint(1, 8))
        elif way == 2:
            del made[at : at + chance.randint(1, 8)]
        elif way == 3 and len(made) >= 5:  # another length
            made[1:5] = chance.choice([b"\0\0\0\0", b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\0\0\0\4",
                                       chance.randbytes(4)])  # fmt: skip
        elif way == 4:
            made += made[: chance.randint(0, 20)]
        else:
            made = bytearray(chance.randbytes(chance.randint(0, 40)))
    return bytes(made)


def answers(client):
    client.socket.shutdown(1)  # nothing more comes
    return client.rest()


@pytest.mark.lengthy
def test_ten_thousand_wrong_messages_do_no_harm(wire, caplog):
    chance = random.Random(SEED)
    before = wire.desk.datasets["people"].remaining, len(wire.desk.asked)
    sent = 0
    while sent < MESSAGES:
        is_known = chance.random() < 0.8
        with RawClient(wire, begin=is_known) as client:
            batch = [mutated(chance) for _ in range(chance.randint(1, 40 if is_known else 3))]
            sent += len(batch)
            try:
                client.send(*batch)
                found = answers(client)
            except OSError:
                continue  # it hung up while we spoke
        for one in errors_in([(kind, body) for kind, body in found if kind == b"E"]):
            assert one["C"] != "XX000", one
            assert TOKEN not in str(one)
    with RawClient(wire) as client:
        assert [kind for kind, _ in client.query("SELECT 1")] == [b"T", b"D", b"C", b"Z"]
    assert caplog.text == ""
    assert (wire.desk.datasets["people"].remaining, len(wire.desk.asked)) == before
    assert wire.server._house.connections <= 1


# The gateway that users run, and questions --------------------------------------------------


def wrong_statement(chance: random.Random) -> bytes:
    """Return a question, by either protocol, that is wrong in some way, mostly."""
    text = chance.choice(QUESTIONS)
    for _ in range(chance.randint(1, 4)):
        text = spoilt(text, chance)
    said = text.replace("\0", "").encode(errors="replace")
    kind = chance.random()
    if kind < 0.6:
        return framed(b"Q", said + b"\0")
    if kind < 0.7:
        return framed(b"Q", b"EXPLAIN " + said + b"\0")
    prepared = framed(b"P", b"\0" + said + b"\0\0\0")
    value = chance.choice([b"", b"1", b"north", b"\xff", b"9" * 400, b"';--"])
    bound = b"\0\0\0\0\0\1" + len(value).to_bytes(4, "big") + value + b"\0\0"
    if kind < 0.85:
        bound = b"\0\0\0\0\0\0\0\0"
    described = framed(b"D", chance.choice([b"S\0", b"P\0"]))
    run = framed(b"E", b"\0\0\0\0\0") + framed(b"S")
    return prepared + framed(b"B", bound) + described + run


def questioned(folder, number):
    """Send so many statements to a gateway; return how often each SQLSTATE came."""
    rows = people()
    site = make_site(folder, epsilon=10_000, data=rows)
    secrets = {str(one) for one in rows["income"].to_pylist() if one >= 10_000}
    chance, seen, pg_port = random.Random(), Counter(), free_port()
    with processes(site, workers=1, pg_port=pg_port) as (port, process):
        place = SimpleNamespace(port=pg_port)
        how = {"password": site.keys["ana"], "options": "-c discreet.epsilon=1e-4"}
        left = number
        while left:
            batch = [wrong_statement(chance) for _ in range(min(left, 50))]
            left -= len(batch)
            with RawClient(place, **how) as client:
                for one in batch:
                    found = client.send(one).until(b"Z")
                    for error in errors_in(found):
                        seen[error["C"]] += 1
                        assert (error["S"], error["C"][:2]) != ("ERROR", "XX"), (one, error)
                        told = numbers(str(error)) - numbers(one.decode(errors="ignore"))
                        assert not told & secrets, (one, error)
        assert process.poll() is None
        assert asked(port, "GET", "/readyz")[0] == 200
    log = (folder / "log.txt").read_text()
    assert "Traceback" not in log
    assert not [line for line in log.splitlines() if '"error"' in line]
    return seen


@pytest.mark.lengthy
def test_wrong_questions_get_errors_of_the_protocol(tmp_path):
    seen = questioned(tmp_path, 600)
    assert seen["42601"] + seen["0A000"] > 200


@pytest.mark.slow
def test_ten_thousand_wrong_questions_get_errors_of_the_protocol(tmp_path):
    seen = questioned(tmp_path, 10_000)
    assert seen["42601"] + seen["0A000"] > 3_000
