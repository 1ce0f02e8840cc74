"""Reports find home, and whatever else comes is counted, never raised."""

import random

import numpy as np
import pytest

from discreet import local
from discreet.errors import DataError
from discreet.local.frequencies.hashing import LocalHashing
from discreet.local.frequencies.projective import ProjectiveResponse
from discreet.local.frequencies.public_hashing import PublicHashing
from discreet.local.frequencies.subset import SubsetSelection
from discreet.local.frequencies.unary import OptimizedUnary, SymmetricUnary
from discreet.local.wire import encode, parameters_of, report_length, sort_out

HEADER = 33
RANDOMISERS = [
    local.DirectResponse(domain=3, epsilon=1),
    local.DirectResponse(domain=1000, epsilon=1),
    local.HadamardResponse(domain=1_000_000, epsilon=1),
    OptimizedUnary(domain=21, epsilon=1),
    SymmetricUnary(domain=16, epsilon=1),
    PublicHashing(domain=1000, epsilon=2),
    LocalHashing(domain=1000, epsilon=2),
    ProjectiveResponse(domain=1000, epsilon=2),
    SubsetSelection(domain=21, epsilon=1),
    local.RepeatedDirect(domain=3, epsilon=2, first=1),
    local.RepeatedUnary(domain=21, epsilon=2, first=1, optimized=True),
    local.BitFlip(domain=300, bits=3, epsilon=2, first=1),
]


def parameters(randomiser):
    return parameters_of(randomiser, name="x", a_day=2, lifetime=2)


@pytest.mark.parametrize("randomiser", RANDOMISERS, ids=repr)
def test_what_is_encoded_is_read(randomiser):
    ours = parameters(randomiser)
    reports = randomiser.release(np.arange(500) % randomiser.domain)
    found = sort_out(ours, encode(ours, reports))
    assert np.array_equal(found.reports, reports)
    assert (found.accepted, found.dropped) == (500, 0)


def test_a_million_values_take_three_bytes():
    assert report_length(parameters(RANDOMISERS[2])) == HEADER + 3


def test_each_that_must_not_count_is_counted_once():
    ours, foreign = parameters(RANDOMISERS[1]), parameters(RANDOMISERS[1])
    good = encode(ours, [1, 2, 999])
    strangers = [encode(foreign, [1])[0], bytes([1]) + bytes(32), bytes([1]) + bytes(99)]
    impossible = [good[0][:HEADER] + (1000).to_bytes(2, "little"), good[0][:HEADER] + b"\xff\xff"]
    broken = [b"", b"x", good[0][:-1], good[0] + b"\0", b"\2" + good[0][1:]]
    mixed = [*broken, good[0], *impossible, *strangers, good[1], good[0], good[2]]
    found = sort_out(ours, mixed, seen={good[1][17:HEADER]})
    assert found.reports.tolist() == [1, 999]
    assert found.tokens == [good[0][17:HEADER], good[2][17:HEADER]]
    assert [mixed[i] for i in found.positions] == [good[0], good[2]]
    assert (found.malformed, found.foreign, found.out_of_range, found.replayed) == (5, 3, 2, 2)


def test_nothing_may_come():
    found = sort_out(parameters(RANDOMISERS[0]), [])
    assert found.reports.size == found.dropped == 0


@pytest.mark.parametrize("randomiser", RANDOMISERS, ids=repr)
def test_whatever_comes_is_counted_exactly(randomiser):
    """A slow and plain reader says the same of reports that were damaged at random."""
    dice, ours = random.Random(1), parameters(randomiser)
    good = encode(ours, randomiser.release(np.zeros(2000, dtype=int)))
    raw = [damaged(dice.choice(good), dice) for _ in range(5000)]
    found = sort_out(ours, raw)
    counts = plain_count(ours, good[0][:17], raw)
    assert counts == {
        "accepted": found.accepted,
        "malformed": found.malformed,
        "foreign": found.foreign,
        "out_of_range": found.out_of_range,
        "replayed": found.replayed,
    }
    assert min(counts["accepted"], counts["malformed"], counts["foreign"], counts["replayed"]) > 0


def damaged(report: bytes, dice: random.Random) -> bytes:
    kind, where = dice.randrange(6), dice.randrange(len(report))
    changed = bytes([report[where] ^ dice.randrange(1, 256)])
    return [
        report,
        report[:where],
        report + dice.randbytes(where),
        report[:where] + changed + report[where + 1 :],
        dice.randbytes(dice.randrange(80)),
        report[:HEADER] + dice.randbytes(len(report) - HEADER),
    ][kind]


def plain_count(ours, home: bytes, raw: list[bytes]) -> dict[str, int]:
    counts = dict.fromkeys(["accepted", "malformed", "foreign", "out_of_range", "replayed"], 0)
    seen = set()
    for one in raw:
        if len(one) < HEADER or one[0] != 1:
            fate = "malformed"
        elif one[:17] != home:
            fate = "foreign"
        elif len(one) != report_length(ours):
            fate = "malformed"
        elif not is_possible(one[HEADER:], ours.randomiser):
            fate = "out_of_range"
        else:
            fate = "replayed" if one[17:HEADER] in seen else "accepted"
            seen.add(one[17:HEADER])
        counts[fate] += 1
    return counts


def is_possible(payload: bytes, randomiser) -> bool:
    number = int.from_bytes(payload, "little")
    if isinstance(randomiser, local.BitFlip):
        numbers = [int.from_bytes(payload[i : i + 2], "little") for i in range(0, 6, 2)]
        places = [one // 2 for one in numbers]
        return sorted(set(places)) == places and max(numbers) < 600
    if isinstance(randomiser, SubsetSelection) and number.bit_count() != randomiser.size:
        return False
    if hasattr(randomiser, "outputs"):
        return number < randomiser.outputs
    return number.bit_length() <= randomiser.domain


def test_only_what_the_randomiser_can_give_is_encoded():
    with pytest.raises(DataError):
        encode(parameters(RANDOMISERS[0]), [3])
