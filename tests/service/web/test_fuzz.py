"""Malformed SQL and JSON, thousands of them: each gets a problem document, and nobody's data."""

import contextlib
import http.client
import json
import random

import pytest
from gateway_sites import QUERY, make_site, people
from malformed import QUESTIONS, mutated, numbers

PEOPLE = "/v1/datasets/people"
DECLARATION = """
name = "more"
unit = "person"
rows = 1
guarantee = { epsilon = 1, delta = 1e-6 }
[tables.more]
source = "people.parquet"
[tables.more.columns.income]
bounds = [0, 100000]
"""
OTHERS = [
    ("POST", f"{PEOPLE}/quote", "ana", {"question": QUESTIONS[0], "epsilon": 1e-4}),
    ("POST", f"{PEOPLE}/jobs", "ana", {"question": QUESTIONS[1], "share": "0.1%"}),
    ("POST", f"{PEOPLE}/plan", "ana",
     {"questions": QUESTIONS[:3], "epsilon": 1e-4, "weights": [1, 2, 3], "release": True}),
    ("POST", "/v1/datasets", "chris", {"declaration": DECLARATION}),
    ("POST", f"{PEOPLE}/grants", "chris", {"epsilon": 10**6, "delta": 1e-6, "reason": "board"}),
    ("POST", f"{PEOPLE}/limits", "chris", {"epsilon": 1, "analyst": "zoe", "every": "day"}),
    ("PUT", f"{PEOPLE}/policy", "chris", {"policy": "degrade", "reason": "board"}),
    ("POST", f"{PEOPLE}/reopen", "chris", {"reason": "looked"}),
    ("POST", "/v1/keys", "chris", {"who": "dora", "roles": ["analyst"], "days": 3}),
]  # fmt: skip
VALUES = [None, -1, 0, 1e400, 10**400, "", "5%", "1/0", [], {}, True, "a" * 999, 1e-320, "\x00"]
MEMBERS = ["epsilon", "share", "within", "delta", "of", "size", "confidence", "x"]


def malformed(dice):
    """Return a request with something wrong about its body: who sends what, and where."""
    if dice.random() < 0.7:
        good = {"question": dice.choice(QUESTIONS), "epsilon": 1e-4}
        method, path, who = "POST", QUERY, "ana"
    else:
        method, path, who, good = dice.choice(OTHERS)
    return method, path, who, spoilt(good, dice)


def spoilt(good, dice):
    """Return a body with a text that is mutated, a wrong member, or wrong bytes."""
    body, kind = dict(good), dice.random()
    if kind < 0.6:
        texts = [name for name, one in body.items() if isinstance(one, str | list)]
        name = dice.choice(texts)
        many = body[name] if isinstance(body[name], list) else [body[name]]
        for _ in range(dice.randint(1, 4)):
            many = [mutated(str(one), dice) for one in many]
        body[name] = many if isinstance(body[name], list) else many[0]
        return json.dumps(body).encode()
    if kind < 0.75:
        body[dice.choice([*MEMBERS, *body])] = dice.choice(VALUES)
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


def fuzzed(folder, number):
    """Send so many requests; return how often each status came."""
    rows = people()
    site = make_site(folder, epsilon=10_000, data=rows)
    secrets = {str(one) for one in rows["income"].to_pylist() if one >= 10_000}
    dice, seen = random.Random(), {}
    with site.running() as url, contextlib.ExitStack() as open_one:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        open_one.callback(connection.close)
        for _ in range(number):
            method, path, who, body = malformed(dice)
            header = {**site.header(who), "Content-Type": "application/json"}
            connection.request(method, path, body, header)
            answer = connection.getresponse()
            text = answer.read().decode()
            seen[answer.status] = seen.get(answer.status, 0) + 1
            if answer.status in (200, 201, 202):
                continue  # good by accident
            document = json.loads(text)
            assert 400 <= answer.status < 500, (path, body, text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert document["status"] == answer.status
            assert "Traceback" not in text
            told = numbers(text) - numbers(body.decode(errors="ignore"))
            assert not told & secrets, (path, body, text)
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
