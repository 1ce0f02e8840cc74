"""When something is told follows from when it began and what was paid for, nothing else."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.errors import BudgetExceeded, DataError, Missed, Refused
from discreet.service.desk.public_time import MISSED, STEP, PublicTime
from discreet.service.desk.queue import FairQueue

SECONDS = 0.4


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as made:
        yield made


def told(pool, work, *, seconds=SECONDS, slots=1):
    """Return what came out, how long it took, and how often a miss was noted."""

    async def main():
        public = PublicTime(FairQueue(slots=slots, waiting=9), pool)
        misses = []
        began = time.monotonic()
        try:
            found = await public.run(
                work, who="ana", seconds=seconds, on_miss=lambda: misses.append(1)
            )
        except Exception as error:
            found = error
        return found, time.monotonic() - began, len(misses)

    return asyncio.run(main())


def works(seconds=0.0, *, releases=1, error=None):
    def work(on_paid, on_ready):
        on_paid(releases)
        time.sleep(seconds)
        if error is not None:
            raise error
        on_ready()
        return 42

    return work


@pytest.mark.lengthy
@pytest.mark.parametrize("took", [0.0, 0.1, 0.3])
def test_an_answer_is_told_when_it_is_due_however_early_it_was_ready(pool, took):
    found, seconds, misses = told(pool, works(took))
    assert (found, misses) == (42, 0)
    assert seconds >= SECONDS


@pytest.mark.lengthy
@pytest.mark.parametrize("recording", [0.0, 0.03, 0.07])
def test_how_long_the_record_takes_is_not_told_either(pool, recording):
    """Answers are told at steps of a clock that began when they were due."""

    def work(on_paid, on_ready):
        on_paid(1)
        on_ready()
        time.sleep(recording)
        return 42

    steps = 2 if recording > STEP else 1
    found, seconds, misses = told(pool, work)
    assert (found, misses) == (42, 0)
    assert seconds >= SECONDS + steps * STEP


@pytest.mark.lengthy
def test_every_release_adds_its_time(pool):
    found, seconds, _ = told(pool, works(releases=3), seconds=0.2)
    assert found == 42
    assert seconds >= 0.6


@pytest.mark.lengthy
def test_what_is_late_is_not_told(pool):
    found, seconds, misses = told(pool, works(2 * SECONDS))
    assert isinstance(found, Missed)
    assert misses == 1
    assert SECONDS <= seconds < 2 * SECONDS


@pytest.mark.lengthy
@pytest.mark.parametrize("error", [ValueError("4711"), DataError("4711"), MemoryError("4711")])
@pytest.mark.parametrize("took", [0.0, 0.2])
def test_whatever_fails_after_payment_looks_like_what_is_late(pool, error, took):
    found, seconds, misses = told(pool, works(took, error=error))
    assert type(found) is Missed
    assert str(found) == MISSED
    assert found.__context__ is None
    assert found.__cause__ is None
    assert misses == 1
    assert seconds >= SECONDS


def test_what_was_decided_without_data_is_told_as_it_is_and_at_once(pool):
    refusal = Refused(code="star", line=1, column=1, reason="No.", remedy="")

    def work(on_paid, on_ready):
        raise refusal

    found, _, misses = told(pool, work, seconds=3600)
    assert found is refusal
    assert misses == 0


@pytest.mark.lengthy
def test_a_budget_that_runs_out_between_two_releases_is_told_when_due(pool):
    refusal = BudgetExceeded(used=0.9, would_be=1.1)
    found, seconds, misses = told(pool, works(error=refusal))
    assert found is refusal
    assert misses == 0
    assert seconds >= SECONDS


def test_what_was_answered_before_is_told_at_once(pool):
    found, _, _ = told(pool, lambda on_paid, on_ready: "kept", seconds=3600)
    assert found == "kept"


def test_without_a_public_time_answers_come_when_they_are_ready(pool):
    found, _, misses = told(pool, works(), seconds=0)
    assert (found, misses) == (42, 0)


@pytest.mark.lengthy
def test_the_place_in_the_queue_is_held_until_the_answer_is_due(pool):
    """Or whoever waits would learn how long the one before really took."""

    async def main():
        public = PublicTime(FairQueue(slots=1, waiting=9), pool)
        began = time.monotonic()
        await asyncio.gather(
            *(
                public.run(works(took), who="ana", seconds=0.2, on_miss=list)
                for took in (0.0, 0.1, 0.0)
            )
        )
        return time.monotonic() - began

    assert asyncio.run(main()) >= 0.6


@pytest.mark.lengthy
def test_whoever_hangs_up_frees_nothing_early(pool):
    async def main():
        public = PublicTime(FairQueue(slots=1, waiting=9), pool)
        ready = threading.Event()

        def work(on_paid, on_ready):
            on_paid(1)
            ready.set()

        gone = asyncio.create_task(public.run(work, who="ana", seconds=0.3, on_miss=list))
        began = time.monotonic()
        while not ready.is_set():
            await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0)
        assert public.queue.busy == 1
        await public.drained()
        assert time.monotonic() - began >= 0.25
        assert public.queue.busy == 0

    asyncio.run(main())


@pytest.mark.lengthy
@pytest.mark.parametrize("took", [0.0, 0.2])
def test_nothing_goes_on_record_before_it_is_due(pool, took):
    recorded = []
    began = time.monotonic()

    def work(on_paid, on_ready):
        for _ in range(2):
            on_paid(1)
            time.sleep(took)
            on_ready()
            recorded.append(time.monotonic() - began)

    _, seconds, misses = told(pool, work)
    assert misses == 0
    assert SECONDS <= recorded[0] < SECONDS + 0.15
    assert 2 * SECONDS <= recorded[1] <= seconds < 2 * SECONDS + 0.15


@pytest.mark.lengthy
def test_what_is_late_never_goes_on_record_and_pays_for_nothing_more(pool):
    recorded = []

    def work(on_paid, on_ready):
        for number in range(3):
            on_paid(1)
            time.sleep(2 * SECONDS)
            on_ready()
            recorded.append(number)

    found, _, misses = told(pool, work)
    pool.shutdown(wait=True)
    assert isinstance(found, Missed)
    assert (recorded, misses) == ([], 1)


@pytest.mark.lengthy
def test_a_charge_that_a_slow_ledger_delayed_is_not_wasted(pool):
    def work(on_paid, on_ready):
        time.sleep(1.8 * SECONDS)
        assert on_paid(1) >= SECONDS / 2
        on_ready()
        return 42

    found, seconds, misses = told(pool, work)
    assert (found, misses) == (42, 0)
    assert 3 * SECONDS <= seconds < 3 * SECONDS + 0.15


def test_the_work_is_told_how_long_it_may_take(pool):
    given = []

    def work(on_paid, on_ready):
        given.append(on_paid(2))
        return 0

    told(pool, work, seconds=0.1)
    told(pool, work, seconds=0)
    assert 0.1 < given[0] <= 0.2
    assert given[1] is None
