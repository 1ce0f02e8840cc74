"""Forty mechanisms that break their claim are flagged; their twins, that keep it, are not."""

import pytest
from broken_mechanisms import SUSPECTS

from discreet import audit

FALSE_ALARM = 1e-6  # chance that any twin fails: all of them together
CONFIDENCE = 1 - FALSE_ALARM / len(SUSPECTS)


def run(fn, suspect):
    look = audit.low_bits if suspect.low_bits else audit.mechanism
    return look(
        fn,
        pair=suspect.pair,
        epsilon=suspect.epsilon,
        delta=suspect.delta,
        samples=suspect.samples,
        confidence=CONFIDENCE,
        batch=suspect.batch,
    )


@pytest.mark.lengthy
@pytest.mark.parametrize("suspect", SUSPECTS, ids=lambda suspect: suspect.name)
def test_the_broken_one_is_flagged_and_its_twin_is_not(suspect):
    found = run(suspect.broken, suspect)
    assert not found.passed, found
    twin = run(suspect.twin, suspect)
    assert twin.passed, twin


def test_they_are_many_and_have_names_of_their_own():
    assert len({suspect.name for suspect in SUSPECTS}) == len(SUSPECTS) >= 25
