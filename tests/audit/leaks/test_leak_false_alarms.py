"""Scans of outputs that know nothing of the canaries alarm as rarely as they say."""

import os
import secrets

import pytest

from discreet import audit
from discreet.audit.leaks.searching import Search

SCANS, ALARM = 150, 0.05
# Binomial(150, 0.05) is 28 or more with a probability below 1e-7.
MOST = 27


def chatter():
    """Numbers of four to six digits, dates, raw bytes: what is met by accident now and then."""
    numbers = " ".join(str(secrets.randbelow(10**6)) for _ in range(400))
    days = " ".join(
        f"{1930 + secrets.randbelow(70)}-05-{1 + secrets.randbelow(28):02d}" for _ in range(99)
    )
    return f"{numbers} {days}".encode() + os.urandom(2000)  # fmt: skip


def alarms(output):
    count = 0
    for _ in range(SCANS):
        planted = audit.plant(rows=20)
        search = Search(planted.canaries(), epsilon=0, false_alarm=ALARM)
        search.feed("output", output(planted))
        count += bool(search.leaks())
    return count


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated_and_true_ones_are_not():
    assert alarms(lambda planted: chatter()) <= MOST
    # Two numbers of the planted ones among the same chatter, and it is another matter.
    assert (
        alarms(lambda p: chatter() + "".join(f" {x:.4f}" for x in p.table["salary"][:2]).encode())
        > MOST
    )
