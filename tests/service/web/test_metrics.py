"""Prometheus is told at which times answers came that are due, and none that follows from data."""

import re

import pytest
from gateway_sites import COUNT, QUERY, make_site

PUBLIC = 0.3


def told(client, site):
    page = client.get("/metrics", headers=site.header("audrey")).text
    found = re.findall(
        r'discreet_answer_seconds_(\w+){dataset="people"(?:,le="([^"]+)")?} (\S+)', page
    )
    return {name + bound: float(value) for name, bound, value in found}


@pytest.mark.lengthy
def test_answers_are_timed_from_their_public_time_on(tmp_path):
    site = make_site(tmp_path, answer_after=PUBLIC)
    with site.served() as client:
        for _ in range(3):  # of which two are recalled, at once
            client.post(QUERY, json=COUNT, headers=site.header("ana"))
        client.post(QUERY, json={**COUNT, "epsilon": 999}, headers=site.header("ana"))
        seen = told(client, site)
    assert seen["count"] == 1
    assert seen["sum"] >= PUBLIC
    assert seen["bucket0.25"] == 0
    assert seen["bucket+Inf"] == 1


def test_answers_without_a_public_time_are_not_timed(client, site):
    client.post(QUERY, json=COUNT, headers=site.header("ana"))
    assert told(client, site) == {}
