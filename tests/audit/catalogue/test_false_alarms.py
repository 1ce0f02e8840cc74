"""How often correct mechanisms are flagged, counted."""

import pytest

from discreet import audit

RUNS, MOST = 200, 21
SAMPLES = 200  # few: the certificate is exact at every size, and small counts are its worst case

# At 95% confidence each of 200 runs flags a correct mechanism with probability 0.05 at most, so
# more than 21 flags have probability 4.8e-4 at most for one whose audit errs exactly as often as it
# may. Audits are not that close: a test of whole counts rejects less often, and the event is seldom
# the best. One that flags every fifth run fails here with probability 0.9998.

FIRSTS = {type(entry.mechanism): entry for entry in reversed(audit.CATALOGUE)}


@pytest.mark.slow
def test_correct_mechanisms_are_flagged_no_more_often_than_stated(capsys):
    table, loud = [], []
    for entry in reversed(FIRSTS.values()):
        count = flagged(entry)
        table.append(f"{entry.name:<30}{count:>4} of {RUNS}")
        loud += [entry.name] if count > MOST else []
    with capsys.disabled():
        print("\nflags of correct mechanisms at 95% confidence", *table, sep="\n  ")  # noqa: T201
    assert loud == []


def flagged(entry):
    audits = (entry.audit(samples=SAMPLES, confidence=0.95) for _ in range(RUNS))
    return sum(not found.passed for found in audits)
