"""Turns go round: nobody waits for all that another login has in the queue."""

import asyncio
import random

import pytest

from discreet.errors import TryLater
from discreet.service.desk.queue import FairQueue


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def test_turns_go_round_among_those_who_wait():
    async def main():
        queue, order = FairQueue(slots=1, waiting=10), []

        async def visit(who):
            async with queue.turn(who):
                order.append(who)
                await asyncio.sleep(0)

        async with queue.turn("first"):
            visits = [asyncio.create_task(visit(who)) for who in "aaaaabbc"]
            await asyncio.sleep(0)
            assert queue.length == 8
        await asyncio.gather(*visits)
        assert order == list("abcabaaa")
        assert (queue.busy, queue.length) == (0, 0)

    run(main())


def test_too_many_waiting_are_sent_away_and_others_are_not():
    async def main():
        queue = FairQueue(slots=1, waiting=2)
        async with queue.turn("ana"):
            waiting = [asyncio.create_task(_hold(queue, "ana")) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(TryLater, match="waiting already"):
                await _hold(queue, "ana")
            waiting.append(asyncio.create_task(_hold(queue, "ben")))
        await asyncio.gather(*waiting)

    run(main())


async def _hold(queue, who, seconds=0.0):
    async with queue.turn(who):
        await asyncio.sleep(seconds)


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(20))
def test_whoever_stops_waiting_takes_no_slot_along(seed):
    async def main():
        dice = random.Random(seed)
        queue = FairQueue(slots=3, waiting=1000)
        visits = [
            asyncio.create_task(_hold(queue, dice.choice("abcd"), dice.random() / 500))
            for _ in range(200)
        ]
        for visit in dice.sample(visits, 100):
            await asyncio.sleep(dice.random() / 1000)
            assert queue.busy <= 3
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)
        assert (queue.busy, queue.length) == (0, 0)
        async with queue.turn("a"), queue.turn("a"), queue.turn("a"):
            assert queue.busy == 3

    run(main())
