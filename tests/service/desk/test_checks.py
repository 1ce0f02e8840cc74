"""A ledger is verified beside everything else, once at a time, and tampering is told."""

import asyncio
import sqlite3
import time

import pytest

from discreet.errors import NotAllowed
from discreet.service import Gateway, Role
from discreet.service.desk.checks import LedgerChecks
from discreet.service.identity.login import Login
from discreet.service.records import JobState

CHRIS = Login(who="chris", roles=frozenset({Role.CUSTODIAN}))


async def checked(gateway):
    """Begin a check, and wait for its outcome."""
    await gateway.checks.begin(CHRIS)
    for _ in range(600):
        found = await gateway.checks.latest()
        if found.state.is_over:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("the check does not end")


@pytest.fixture
def gateway(site):
    opened = Gateway.open(site.settings)
    yield opened
    opened.close()


def test_every_entry_is_looked_at(gateway):
    found = asyncio.run(checked(gateway))
    assert found.state is JobState.DONE
    assert f'"entries": {gateway.shelf.ledger.size}'.encode() in found.outcome


def test_an_altered_entry_is_told(site, gateway):
    with sqlite3.connect(site.settings.ledger) as connection:
        changed = connection.execute(
            "UPDATE entries SET body = replace(body, 'add_remove', 'zero_out')"
            " WHERE body LIKE '%add_remove%'"
        )
        assert changed.rowcount
    found = asyncio.run(checked(gateway))
    assert found.state is JobState.FAILED
    assert b'"is_tampered": true' in found.outcome


def test_one_check_runs_at_a_time_for_all_workers(site, gateway):
    other = LedgerChecks(gateway.shelf.ledger, gateway.records)
    begun = []
    other._run = lambda job: begun.append(job)  # a worker that takes its time

    async def both():
        await other.begin(CHRIS)
        await gateway.checks.begin(CHRIS)
        return await gateway.checks.latest()

    found = asyncio.run(both())
    other.close()
    assert [found.id] == begun


def test_a_gateway_that_ends_does_not_wait_for_a_check(gateway):
    begun = time.monotonic()
    asyncio.run(gateway.checks.begin(CHRIS))
    gateway.checks.close()
    assert time.monotonic() - begun < 10
    assert asyncio.run(gateway.checks.latest()).state.is_over


def test_analysts_begin_none(gateway):
    ana = Login(who="ana", roles=frozenset({Role.ANALYST}))
    with pytest.raises(NotAllowed):
        asyncio.run(gateway.checks.begin(ana))
    assert asyncio.run(gateway.checks.latest()) is None


def test_nobody_finds_a_check_among_the_jobs(gateway):
    found = asyncio.run(checked(gateway))
    everything = Login(who="chris", roles=frozenset(Role))
    with pytest.raises(LookupError):
        asyncio.run(gateway.jobs.find(everything, found.id))
