"""What noise did not touch, and what reaches the wrong analyst.

Each scan that must pass fails with probability at most 1e-9.
"""

import hashlib
import itertools
import logging
import secrets

import numpy as np
import pytest

import discreet
from discreet import audit
from discreet.errors import ParameterError

EPSILON = 0.1


def released(planted):
    return int(planted.rows + np.rint(np.random.default_rng().laplace(scale=1 / EPSILON)))


def app(planted, *, tag):
    async def answer(scope, receive, send):
        assert scope["type"] == "http"
        body = str(released(planted)).encode()
        headers = [(b"etag", tag(planted, body).encode()), (b"server", b"ours")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


def digest(planted, body):
    return hashlib.sha256(b"fixed salt" + str(sum(planted.table["salary"])).encode()).hexdigest()


def salted(key):
    return hashlib.md5(b"salt" + key.encode()).hexdigest()


LEAKS = {
    "exact count in a debug log": (
        lambda p, f: lambda: logging.getLogger("shop").debug("scanned %d rows", p.rows),
        lambda p, f: lambda: logging.getLogger("shop").debug("released %d rows", released(p)),
    ),
    "ETag of the true result": (
        lambda p, f: app(p, tag=digest),
        lambda p, f: app(p, tag=lambda p, body: hashlib.sha256(body).hexdigest()),
    ),
    "name of a cache file by the content": (
        lambda p, f: lambda: (f / digest(p, b"")[:8]).write_text(""),
        lambda p, f: lambda: (f / secrets.token_hex(4)).write_text(""),
    ),
    "largest salary rounded to three digits": (
        lambda p, f: lambda: f"up to {max(p.table['salary']):.3g}",
        lambda p, f: lambda: "up to 1e+06",
    ),
    "keys without a threshold, hashed with a fixed salt": (
        lambda p, f: lambda: sorted({salted(city) for city in p.table["city"]}),
        lambda p, f: lambda: sorted({salted(team) for team in p.table["team"]}),
    ),
    "size of the answer": (
        lambda p, f: lambda: b"\0" * p.rows,
        lambda p, f: lambda: b"\0" * max(0, released(p)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.lengthy
def test_what_noise_did_not_touch_is_found_and_the_twin_passes(name):
    leaky, correct = LEAKS[name]
    planted = audit.plant(rows=60)
    found = audit.scan_determinism(leaky, epsilon=EPSILON, planted=planted, requests=["/"])
    assert not found.passed
    twin = audit.scan_determinism(correct, epsilon=EPSILON, planted=planted, requests=["/"])
    assert twin.passed, twin


def test_a_scan_that_would_never_end_is_refused():
    with pytest.raises(ParameterError, match="spend less"):
        audit.scan_determinism(lambda p, f: lambda: "words", epsilon=12)
    with pytest.raises(ParameterError, match="epsilon must be"):
        audit.scan_determinism(lambda p, f: lambda: "words", epsilon=-1)


@pytest.mark.lengthy
def test_the_product_has_nothing_that_noise_did_not_touch(tmp_path):
    """The database itself is left out: its sketch of the data is for custodians (docs/proofs)."""
    ledgers = itertools.count()

    def make(planted, folder):
        ledger = tmp_path / f"{next(ledgers)}.db"
        table = discreet.protect(
            dict(planted.table), name="people", unit="person_id", rows=1,
            guarantee=discreet.Guarantee(epsilon=1, delta=1e-9), ledger=ledger,
            columns={"salary": {"bounds": (0, 1_000_000)}},
        )  # fmt: skip

        def ask():
            for question in (
                "SELECT COUNT(*) AS n, SUM(salary) AS s, MAX(salary) AS high FROM people",
                "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
            ):
                answer = table.sql(question, epsilon=EPSILON)
                yield [answer, str(answer), answer.to_json()]
                yield table.account.ledger.prove(answer.receipt).to_json()
            answer.to_csv(folder / "answer.csv")
            table.account.ledger.export(folder / "log.txt")
            table.close()
            completed.append(True)

        return ask

    completed = []
    found = audit.scan_determinism(make, epsilon=2 * EPSILON, delta=1e-9)
    assert len(completed) == next(ledgers)
    assert found.passed, found


def desk(planted, *, by_analyst=True, told=None):
    cache, asked = {}, itertools.count(1)

    def ask(analyst):
        key = analyst if by_analyst else "all"
        if key not in cache:
            cache[key] = {"n": released(planted), "receipt": f"{next(asked)} of {analyst}"}
        return cache[key]["n"] if told is None else cache[key][told]

    return ask


def test_an_answer_cached_for_the_wrong_analyst():
    found = audit.scan_analysts(lambda p, f: desk(p, by_analyst=False))
    assert [one.what for one in found.leaks] == ["an answer"]
    assert audit.scan_analysts(lambda p, f: desk(p)).passed


def test_a_receipt_of_somebody_else():
    found = audit.scan_analysts(lambda p, f: desk(p, by_analyst=False, told="receipt"))
    assert "name of the first analyst" in {one.what for one in found.leaks}
    assert audit.scan_analysts(lambda p, f: desk(p, told="receipt")).passed


def test_answers_that_are_always_alike_teach_nothing():
    assert audit.scan_analysts(lambda p, f: lambda analyst: "refused").passed


def test_answers_of_few_values_are_compared_in_more_rounds():
    def make(planted, folder):
        coin = secrets.randbelow(2)
        return lambda analyst: coin

    found = audit.scan_analysts(make)
    assert not found.passed
    assert int(found.leaks[0].form.split()[-2]) > 30
    assert audit.scan_analysts(lambda p, f: lambda analyst: secrets.randbelow(2)).passed
