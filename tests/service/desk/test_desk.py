"""Keys, threads, datasets and outages at the desk."""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gateway_sites import people

from discreet.errors import LedgerUnavailable, Missed, TryLater
from discreet.service import Gateway, Role
from discreet.service.desk import jobs, shelf
from discreet.service.desk.desk import _named
from discreet.service.identity.login import Login
from discreet.service.records import JobState
from discreet.service.web.problems import problem_of
from discreet.service.wire.protocol.failures import failure_of
from discreet.tables import Offer

COUNT = "SELECT COUNT(*) AS n FROM people"


def login(who):
    return Login(who=who, roles=frozenset({Role.ANALYST}))


def test_no_two_logins_have_a_request_in_common():
    offers = [
        _named(Offer(epsilon=1, key=key), login(who)).key
        for who, key in [("ana", "b/c"), ("ana/b", "c"), ("release", "2"), ("a", "na/b/c")]
    ]
    assert len(set(offers)) == len(offers)


def test_the_longest_name_may_use_the_longest_key(site):
    gateway = Gateway.open(site.settings)
    who, offer = f"{60 * 'c'}:{128 * 'é'}", Offer(epsilon=0.1, key=100 * "k")
    try:
        assert len(asyncio.run(gateway.desk.answer(login(who), "people", COUNT, offer))) == 1
    finally:
        gateway.close()


def test_a_login_cannot_take_the_keys_of_the_ledger(site):
    """The entry that puts the answer of charge 3 on record has the key release/3."""
    gateway = Gateway.open(site.settings)

    async def both():
        first = await gateway.desk.answer(
            login("release"), "people", COUNT, Offer(epsilon=0.1, key="4")
        )
        second = await gateway.desk.answer(login("ben"), "people", COUNT, Offer(epsilon=0.2))
        return first, second

    try:
        answers = asyncio.run(both())
    finally:
        gateway.close()
    assert [len(one.receipt.entries) for one in answers] == [2, 2]


def test_what_is_free_takes_no_thread_from_what_is_paid_for(site):
    gateway = Gateway.open(site.settings)
    go_on = threading.Event()

    async def asked():
        loop = asyncio.get_running_loop()
        for _ in range(200):
            loop.run_in_executor(gateway._pool, go_on.wait)
        try:
            async with asyncio.timeout(20):
                return await gateway.desk.answer(login("ana"), "people", COUNT, Offer(epsilon=0.1))
        finally:
            go_on.set()

    try:
        assert len(asyncio.run(asked())) == 1
    finally:
        gateway.close()


@pytest.mark.parametrize("may_be_recorded", [False, True])
def test_an_outage_tells_no_place_but_to_the_log(caplog, may_be_recorded):
    error = LedgerUnavailable("/srv/secret.db is full", may_be_recorded=may_be_recorded)
    told = problem_of(error).body.decode() + str(failure_of(error).fields())
    assert "secret.db" not in told
    assert ("Nothing was spent" not in told) == may_be_recorded
    assert "secret.db" in caplog.text


def declared(site, name, *, first):
    """Declare other people, with numbers of their own."""
    table = people(seed=first)
    numbers = pa.array(np.arange(first, first + len(table)))
    pq.write_table(table.set_column(0, "person", numbers), site.folder / "data" / f"{name}.parquet")
    text = (site.folder / "others.toml").read_text()
    return text.replace("data/others.parquet", "others.parquet").replace("others", name)


def test_what_is_not_kept_is_not_served(site, monkeypatch):
    def fails(*args, **more):
        raise LedgerUnavailable("no room")

    gateway = Gateway.open(site.settings)
    try:
        more = declared(site, "more", first=1000)
        with monkeypatch.context() as broken:
            broken.setattr(shelf, "add_declaration", fails)
            with pytest.raises(LedgerUnavailable):
                gateway.shelf.register(more, who="chris")
        assert gateway.shelf.names == ["others", "people"]
        gateway.shelf.register(more, who="chris")
        assert gateway.shelf.names == ["more", "others", "people"]
    finally:
        gateway.close()


def test_one_dataset_that_is_broken_keeps_no_other_from_being_served(site):
    first, second = Gateway.open(site.settings), Gateway.open(site.settings)
    try:
        first.shelf.register(declared(site, "broken", first=1000), who="chris")
        first.shelf.register(declared(site, "later", first=2000), who="chris")
        (site.folder / "data" / "broken.parquet").unlink()
        noted = []
        second.shelf.catch_up(on_error=noted.append)
        assert second.shelf.names == ["later", "others", "people"]
        assert len(noted) == 1
    finally:
        first.close()
        second.close()


class Slow:
    """Tables whose answers are never ready in time."""

    def __init__(self, tables):
        self._tables, self.charges = tables, 0

    def __getattr__(self, name):
        return getattr(self._tables, name)

    def sql(self, question, offer, *, on_paid, on_ready):
        self.charges += 1
        on_paid(1)
        time.sleep(0.4)
        on_ready()


@contextlib.contextmanager
def slow_gateway(site, **more):
    settings = replace(site.settings, answer_after=0.2, slots=2, waiting=32, **more)
    gateway = Gateway.open(settings)
    slow = Slow(gateway.shelf["people"].tables)
    gateway.shelf._served["people"] = replace(gateway.shelf["people"], tables=slow)
    try:
        yield gateway, slow
    finally:
        gateway.close()


async def each(gateway, times):
    return await asyncio.gather(
        *[gateway.desk.answer(login("ana"), "people", COUNT, Offer(epsilon=0.1))
          for _ in range(times)],
        return_exceptions=True,
    )  # fmt: skip


@pytest.mark.lengthy
def test_whoever_waits_behind_the_last_miss_is_refused_for_free(site):
    with slow_gateway(site, most_misses=3) as (gateway, slow):
        found = Counter(type(one).__name__ for one in asyncio.run(each(gateway, 12)))
        gateway.desk._rest.write("people")
        assert gateway.misses.count("people") == slow.charges == found["Missed"]
    assert found["Missed"] <= 3 + 1  # what is under way in the other slot
    assert found["TryLater"] == 12 - found["Missed"]


@pytest.mark.lengthy
def test_a_miss_is_counted_though_the_records_were_away(site, monkeypatch):
    with slow_gateway(site, most_misses=1) as (gateway, slow):
        with monkeypatch.context() as broken:
            broken.setattr(gateway.misses, "add", lambda dataset: 1 / 0)
            assert isinstance(asyncio.run(each(gateway, 1))[0], Missed)
            gateway._pool.submit(int).result()
        assert isinstance(asyncio.run(each(gateway, 1))[0], TryLater)
        assert gateway.misses.count("people") == slow.charges == 1


@pytest.mark.lengthy
def test_a_job_outlasts_an_outage_of_the_records(site, monkeypatch):
    """It must not seem lost afterwards, nor lose what it has charged for."""
    is_away, real = threading.Event(), jobs.update_job

    def update(*args):
        if is_away.is_set():
            raise LedgerUnavailable("the records are away")
        return real(*args)

    async def asked(gateway):
        async def work():
            is_away.set()
            await asyncio.sleep(0.3)
            asyncio.get_running_loop().call_later(0.3, is_away.clear)
            return b"{}"

        begun = await gateway.jobs.begin(login("ana"), "people", work)
        while (found := await gateway.jobs.find(login("ana"), begun.id)).outcome is None:
            await asyncio.sleep(0.02)
        return found

    monkeypatch.setattr(jobs, "update_job", update)
    monkeypatch.setattr(jobs, "_ALIVE_EVERY", 0.1)
    gateway = Gateway.open(site.settings)
    try:
        found = asyncio.run(asyncio.wait_for(asked(gateway), 20))
    finally:
        gateway.close()
    assert (found.state, found.outcome) == (JobState.DONE, b"{}")


@pytest.mark.lengthy
def test_a_job_is_not_lost_while_it_goes_on_after_an_outage(site, monkeypatch):
    times, real = [], jobs.update_job

    def update(*args):
        times.append(args[2])
        if len(times) == 1:
            raise LedgerUnavailable("the records are away")
        return real(*args)

    async def asked(gateway):
        async def work():
            await asyncio.sleep(0.5)
            return b"{}"

        await gateway.jobs.begin(login("ana"), "people", work)
        await gateway.jobs.drained()

    monkeypatch.setattr(jobs, "update_job", update)
    monkeypatch.setattr(jobs, "_ALIVE_EVERY", 0.1)
    gateway = Gateway.open(site.settings)
    try:
        asyncio.run(asked(gateway))
    finally:
        gateway.close()
    assert times.count(JobState.RUNNING) > 2
