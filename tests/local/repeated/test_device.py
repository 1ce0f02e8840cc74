"""A device keeps its answers and budgets whatever happens to it."""

import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction

import pytest

from discreet import local
from discreet.errors import DataError, ParameterError
from discreet.testing import SeededSource

DAY = 86_400
PLAIN = local.RepeatedDirect(domain=1 << 30, epsilon=1, first=1)  # reports are the kept responses
KEEPING = local.RepeatedDirect(domain=5, epsilon=2, first=1)
FRESH = local.DirectResponse(domain=5, epsilon=Fraction(1, 3))


class Clock:
    def __init__(self, day):
        self.day = day

    def __call__(self):
        return self.day * DAY + 7.5


def device(folder, randomiser=KEEPING, **changed):
    given = {"daily": 1, "lifetime": 4, "rotation": 7, "clock": Clock(20_000)} | changed
    return local.Device(randomiser, state=folder / "state", **given)


def collected(one, days, value=0, times=1):
    """Ask on each of these days so often, and return the answers."""
    answers = []
    for day in days:
        one.clock.day = day
        answers += [one.collect(value) for _ in range(times)]
    return answers


def test_a_fresh_randomiser_answers_until_the_day_and_the_life_are_spent(tmp_path):
    one = device(tmp_path, FRESH, daily=Fraction(2, 3), lifetime=Fraction(5, 3))
    answers = collected(one, [1, 2, 3, 4], times=4)
    assert [answer is not None for answer in answers] == [
        *[True, True, False, False],  # exactly two thirds of epsilon a day
        *[True, True, False, False],
        *[True, False, False, False],  # exactly five thirds in all
        *[False] * 4,
    ]
    assert one.spent == Fraction(5, 3) * Fraction(FRESH.loss.epsilon) / Fraction(1, 3)


def test_a_kept_response_is_drawn_once_and_costs_once(tmp_path):
    one = device(tmp_path, PLAIN, lifetime=2)
    first = {answer.report for answer in collected(one, range(20), value=3)}
    assert len(first) == 1
    assert one.spent == PLAIN.loss.epsilon_pure
    again = device(tmp_path, PLAIN, lifetime=2)  # as after a restart
    assert {answer.report for answer in collected(again, range(21, 25), value=3)} == first


def test_values_beyond_the_lifetime_share_one_response_that_tells_nothing_of_them(tmp_path):
    one = device(tmp_path, PLAIN, lifetime=3)
    reports = {}
    for day, value in enumerate([1, 2, None, 3, 4, 5, 1, 2, None, 3, 900]):
        [answer] = collected(one, [day], value=value)
        assert answer is not None  # whether it answers may not depend on values
        reports.setdefault(value, set()).add(answer.report)
    assert all(len(seen) == 1 for seen in reports.values())
    assert reports[3] == reports[4] == reports[5] == reports[900]
    assert len({min(reports[value]) for value in (1, 2, None, 3)}) == 4  # they are long
    assert one.spent == 3 * PLAIN.loss.epsilon_pure


def test_the_response_beyond_the_lifetime_is_that_of_a_random_value(tmp_path):
    sure = local.RepeatedDirect(domain=2, epsilon=30, first=30)
    seen = []
    for run in range(60):
        (tmp_path / str(run)).mkdir()
        one = device(tmp_path / str(run), sure, daily=30, lifetime=30)
        assert collected(one, [1], value=0)[0].report == 0
        seen.append(collected(one, [2], value=1)[0].report)
    # A fair coin shows one of its sides fewer than 8 times of 60 with a chance below 1e-9.
    assert 8 <= sum(seen) <= 52


@pytest.mark.parametrize("value", [0, 3, None])
@pytest.mark.parametrize(
    "randomiser", [KEEPING, FRESH, local.BitFlip(domain=5, bits=2, epsilon=2, first=1)]
)
def test_whether_it_answers_and_what_it_reads_do_not_depend_on_values(tmp_path, randomiser, value):
    def pattern(folder, values):
        folder.mkdir()
        reads = []

        class Counting:
            is_secure = True

            def read(self, n, /):
                reads.append(n)
                return os.urandom(n)

        one = device(folder, randomiser, daily=5, source=Counting())
        answers = [collected(one, [day // 3], value=v)[0] for day, v in enumerate(values)]
        return [answer is not None for answer in answers], len(reads)

    changing = [0, 1, 2, 3, 4, None] * 3
    answered, reads = pattern(tmp_path / "a", [value] * 18)
    others, more = pattern(tmp_path / "b", changing)
    assert answered == others
    # Uniform numbers below 3 or 5 are drawn again now and then, whatever the values are: some 5
    # times more or less often in 18 reports, and 35 times with a chance below 1e-9.
    assert abs(reads - more) <= 35


def test_a_second_report_of_the_day_has_its_own_price(tmp_path):
    further = KEEPING.further_loss.epsilon
    assert further > 1
    short = device(tmp_path, daily=math.nextafter(1 + further, 0))
    assert [one is not None for one in collected(short, [1], times=3)] == [True, False, False]
    (tmp_path / "more").mkdir()
    enough = device(tmp_path / "more", daily=Fraction(1) + Fraction(further))
    assert [one is not None for one in collected(enough, [1], times=3)] == [True, True, False]
    (tmp_path / "plain").mkdir()
    plain = device(tmp_path / "plain", PLAIN, daily=99, lifetime=99)  # nothing bounds a change
    assert [one is not None for one in collected(plain, [1], times=3)] == [True, False, False]


def test_a_spent_device_can_report_random_values_instead(tmp_path):
    sure = local.DirectResponse(domain=4, epsilon=20)
    one = device(tmp_path, sure, daily=20, lifetime=20, when_spent="uniform")
    answers = collected(one, [1], value=2, times=61)
    assert answers[0].report == 2
    seen = Counter(answer.report for answer in answers[1:])
    assert len(seen) == 4  # one is missed with a chance of 4 (3/4)**60, 1e-7
    assert one.spent == Fraction(sure.loss.epsilon)


def test_a_clock_that_goes_backwards_gains_nothing(tmp_path):
    one = device(tmp_path, FRESH, daily=Fraction(1, 3), lifetime=30)
    assert collected(one, [100])[0] is not None
    assert collected(one, [99, 50, 0, -7, 100]) == [None] * 5
    assert collected(one, [101])[0] is not None
    name = one.pending()[0].pseudonym
    assert collected(one, [5_000])[0].pseudonym != name  # a jump ahead gives that one day only
    assert collected(one, [102, 103, 4_999, 5_000]) == [None] * 4
    assert collected(one, [5_001])[0] is not None


def test_pseudonyms_rotate_and_are_drawn_independently(tmp_path):
    one = device(tmp_path, lifetime=2, rotation=7)
    answers = collected(one, range(70, 98))
    names = [answer.pseudonym for answer in answers]
    assert [len(set(names[start : start + 7])) for start in (0, 7, 14, 21)] == [1] * 4
    assert len(set(names)) == 4
    assert all(len(bytes.fromhex(name)) == 16 for name in names)
    assert len({answer.token for answer in answers}) == 28
    # A device with another history, value and life has the same names if its source is the same:
    # they depend on fresh randomness alone.
    source = SeededSource(1)
    assert device(tmp_path, lifetime=2, source=source)._name() == SeededSource(1).read(16).hex()


def test_what_was_paid_for_can_be_sent_again_until_it_is_known_to_be_sent(tmp_path):
    one = device(tmp_path, FRESH, daily=2, lifetime=9)
    answers = collected(one, [14], times=3)
    assert device(tmp_path, FRESH, daily=2, lifetime=9).pending() == answers
    one.sent(answers[1])
    assert one.pending() == [answers[0], answers[2]]
    collected(one, [21])  # a new pseudonym: the old reports are of no use any more
    assert len(one.pending()) == 1


def test_estimates_from_devices_are_those_of_the_randomiser(tmp_path):
    reports = []
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        flip = local.BitFlip(domain=6, bits=3, epsilon=8, first=8)
        reports.append(device(folder, flip, daily=8, lifetime=8).collect(4).report)
    estimate = flip.estimate(reports)
    # A lie has a chance of 0.018, so 6 of these some 30 reports lie with a chance below 1e-5.
    assert abs(estimate.counts[4] - 60) < 15


def test_another_question_and_larger_budgets_are_refused(tmp_path):
    one = device(tmp_path)
    one.collect(1)
    same = local.RepeatedDirect(domain=5, epsilon=2.0, first=Fraction(1))
    assert device(tmp_path, same, lifetime=2).spent == 2
    other = local.RepeatedDirect(domain=5, epsilon=2, first=0.5)
    with pytest.raises(ParameterError, match="state began with"):
        device(tmp_path, other)
    with pytest.raises(ParameterError, match="lifetime must be at most 4"):
        device(tmp_path, lifetime=5)
    with pytest.raises(ParameterError, match="daily must be at most 1"):
        device(tmp_path, daily=2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"daily": 0.99},
        {"lifetime": 1.99},
        {"daily": math.nan},
        {"rotation": 0},
        {"when_spent": "random"},
    ],
)
def test_parameters_that_cannot_be_are_refused(tmp_path, wrong):
    with pytest.raises(ParameterError):
        device(tmp_path, **wrong)


@pytest.mark.parametrize("value", [5, -1, 0.5, "a"])
def test_a_wrong_value_is_refused_and_costs_nothing(tmp_path, value):
    one = device(tmp_path)
    with pytest.raises(DataError, match="values must be"):
        one.collect(value)
    assert one.spent == 0
    assert one.pending() == []


def test_a_damaged_state_is_no_new_device(tmp_path):
    one = device(tmp_path)
    one.collect(1)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    whole = (tmp_path / "state").read_bytes()
    (tmp_path / "state").write_bytes(b"x" * len(whole))
    with pytest.raises(DataError, match="Nothing was reported"):
        one.collect(1)
    (tmp_path / "state").write_bytes(whole)
    with sqlite3.connect(tmp_path / "state") as connection:
        connection.execute("UPDATE device SET document = '[1'")
    connection.close()
    with pytest.raises(DataError, match="damaged"):
        one.collect(1)
    with pytest.raises(DataError, match="cannot be used"):
        device(tmp_path / "nowhere")


# Reports for ever and says what it was given; every call is on another day if days pass.
WORKER = """
import os, sys, json, itertools
from discreet import local
randomiser, budgets = eval(sys.argv[2], vars(local)), json.loads(sys.argv[3])
days = itertools.count(step=int(sys.argv[4]))
device = local.Device(randomiser, state=sys.argv[1], clock=lambda: 86_400 * next(days), **budgets)
os.write(1, b"ready\\n")
for value in itertools.cycle(range(6)):
    made = device.collect(value)
    if made is not None:
        os.write(1, (json.dumps([value, made.report, made.token]) + "\\n").encode())
"""

KILLED = {
    "keeping": (PLAIN, {"daily": 1, "lifetime": 4, "rotation": 10_000}, 1),
    "spending": (
        local.DirectResponse(domain=6, epsilon=1),
        {"daily": 60, "lifetime": 60, "rotation": 1},
        0,
    ),
}


def killed(folder, name, *, rounds):
    """Run two workers on one state and kill them, again and again; return what they said."""
    said = []
    randomiser, budgets, step = KILLED[name]
    what = [str(folder / "state"), repr(randomiser), json.dumps(budgets), str(step)]
    for _ in range(rounds):
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, *what],
                stdout=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            for _ in range(2)
        ]
        for worker in workers:
            assert worker.stdout.readline() == b"ready\n"
        time.sleep(random.random() * 0.2)
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
        for worker in workers:
            said += [json.loads(line) for line in worker.stdout.read().splitlines()]
            worker.stdout.close()
            worker.wait()
    return said


@pytest.mark.lengthy
def test_killed_at_any_moment_it_spends_nothing_twice_and_loses_nothing(tmp_path):
    said = killed(tmp_path, "spending", rounds=3)
    randomiser, budgets, _ = KILLED["spending"]
    one = local.Device(randomiser, state=tmp_path / "state", clock=lambda: 0.0, **budgets)
    while one.collect(0) is not None:
        pass
    given = [token for _, _, token in said]
    everything = {report.token for report in one.pending()}
    assert len(given) == len(set(given)) > 0
    assert set(given) <= everything
    assert len(everything) == 60


@pytest.mark.lengthy
def test_killed_at_any_moment_it_never_draws_a_kept_response_again(tmp_path):
    said = killed(tmp_path, "keeping", rounds=3)
    by_value = {}
    for value, report, _ in said:
        by_value.setdefault(value, set()).add(report)
    assert len(said) > 6
    assert all(len(seen) == 1 for seen in by_value.values())
    assert by_value[4] == by_value[5]  # beyond the lifetime
