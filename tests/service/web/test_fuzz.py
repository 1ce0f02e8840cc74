"""Malformed SQL and JSON, thousands of them: each gets a problem document, and nobody's data."""

import contextlib
import http.client
import json
import random
import string

import pytest
from gateway_sites import make_site, people

QUERY = "/v1/datasets/people/query"
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT region, AVG(income) AS pay FROM people WHERE age BETWEEN 20 AND 60 GROUP BY region",
    "SELECT MEDIAN(CLAMP(income, 0, 1e5)) FROM people WHERE region IN ('north', 'south')",
    "WITH a AS (SELECT region, COUNT(*) AS n FROM people GROUP BY 1) SELECT MAX(n) FROM a",
    "SELECT p.region, COUNT(*) FROM people p JOIN people q USING (person) GROUP BY 1",
    "SELECT CASE WHEN age > 40 THEN 'old' ELSE 'young' END AS k, SUM(income) FROM people GROUP BY k"
    " HAVING COUNT(*) > 3 ORDER BY 1 LIMIT 5",
]  # fmt: skip
PIECES = [
    "'", '"', ";", "--", "/*", "*/", "(", ")", ",", "*", "%", "$1", "?", ":x", "\\", "\x00",
    "\u202e", "NULL", "SELECT", "FROM", "UNION ALL", "WHERE 1=1", "DROP TABLE people",
    "read_csv('/etc/passwd')", "pg_sleep(9)", "1e999", "-0.0", "9" * 400, "\U0001f600", "x'ff'",
    "ARRAY[1]", "{'a': 1}", "::int", "OVER ()", "LATERAL", "PIVOT", "ATTACH 'x'",
    "COPY people TO 'x'", "PRAGMA version", "a.b.c.d", "(" * 60, "SELECT " * 30, "NOT " * 200,
    "\r\n\t", "é", "\uffff",
]  # fmt: skip


def malformed(dice):
    """Return a body and what it is called, made from a good one."""
    question = dice.choice(QUESTIONS)
    for _ in range(dice.randint(1, 4)):
        question = mutated(question, dice)
    body = {"question": question, "epsilon": 1e-4}
    kind = dice.random()
    if kind < 0.6:
        return json.dumps(body).encode()
    if kind < 0.75:
        body[
            dice.choice(["epsilon", "share", "within", "delta", "of", "size", "confidence", "x"])
        ] = dice.choice(
            [None, -1, 0, 1e400, 10**400, "", "5%", "1/0", [], {}, True, "a" * 999, 1e-320]
        )
        return json.dumps(body).encode()
    text = bytearray(json.dumps(body).encode())
    for _ in range(dice.randint(1, 6)):
        place = dice.randrange(len(text))
        change = dice.random()
        if change < 0.4:
            text[place] = dice.randrange(256)
        elif change < 0.7:
            del text[place : place + dice.randint(1, 9)]
        else:
            text[place:place] = dice.choice([b"[" * 99, b"{", b'"', b"\\u0000", b"NaN", b"\xff"])
        text = text or bytearray(b" ")
    return bytes(text)


def mutated(question, dice):
    place, change = dice.randrange(len(question) + 1), dice.random()
    if change < 0.35:
        return question[:place] + dice.choice(PIECES) + question[place:]
    if change < 0.6:
        return question[:place] + question[place + dice.randint(1, 12) :]
    if change < 0.8:
        words = question.split(" ")
        dice.shuffle(words)
        return " ".join(words)
    letter = dice.choice(string.printable)
    return question[:place] + letter + question[place + 1 :]


def numbers(text):
    return set("".join(c if c.isdigit() else " " for c in text).split())


def fuzzed(folder, number):
    """Send so many bodies; return how often each status came."""
    rows = people()
    site = make_site(folder, epsilon=10_000, data=rows)
    secrets = {str(one) for one in rows["income"].to_pylist() if one >= 10_000}
    dice, seen = random.Random(), {}
    header = {**site.header("ana"), "Content-Type": "application/json"}
    with site.running() as url, contextlib.ExitStack() as open_one:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        open_one.callback(connection.close)
        for _ in range(number):
            body = malformed(dice)
            connection.request("POST", QUERY, body, header)
            answer = connection.getresponse()
            text = answer.read().decode()
            seen[answer.status] = seen.get(answer.status, 0) + 1
            if answer.status == 200:
                continue  # good by accident
            document = json.loads(text)
            assert 400 <= answer.status < 500, (body, text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert document["status"] == answer.status
            assert "Traceback" not in text
            told = numbers(text)
            asked = set(
                "".join(c if c.isdigit() else " " for c in body.decode(errors="ignore")).split()
            )
            assert not (told - asked) & secrets, (body, text)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 200
    return seen


@pytest.mark.lengthy
def test_malformed_bodies_get_problems(tmp_path):
    seen = fuzzed(tmp_path, 800)
    assert seen[422] > 200
    assert seen[400] > 20


@pytest.mark.slow
def test_ten_thousand_malformed_bodies_get_problems(tmp_path):
    seen = fuzzed(tmp_path, 10_000)
    assert seen[422] > 3_000
