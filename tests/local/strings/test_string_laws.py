"""The exact law of every report of a string, from the whole numbers that its coins use."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import local
from discreet._rounding import exp_upper
from discreet.local.strings.hashing import digests
from discreet.testing import SeededSource

FALSE_ALARM = 1e-9  # chance that a correct sampler fails a test of its law

STRINGS = [b"", b"a", b"b", b"\xff\xff"]

RANDOMISERS = [
    local.Rappor(bits=4, hashes=1, cohorts=2, epsilon=1, key=b"k"),
    local.Rappor(bits=4, hashes=2, cohorts=3, epsilon=3, key=b"k"),
    local.Rappor(bits=2, hashes=2, cohorts=1, epsilon=1, key=b"k"),
    local.CountMeanSketch(functions=3, width=4, epsilon=2, key=b"k"),
    local.HadamardSketch(functions=3, width=4, epsilon=1, key=b"k"),
    local.HeavyHitters(length=1, steps=3, epsilon=1, key=b"k", functions=3),
    local.PrefixTree(length=1, levels=2, epsilon=2, key=b"k", functions=3, width=2),
]


def preference(law, owned):
    """Return the law of one report that prefers these outputs."""
    own = Fraction(law.keep_chance) / law.preferred
    other = (1 - law.keep_chance) / (law.outputs - law.preferred)
    return {code: own if code in owned else other for code in range(law.outputs)}


def bit_law(randomiser, groups, bits, owned):
    keep = randomiser._reports.law if isinstance(randomiser, local.Rappor) else randomiser._bits.law
    table = {}
    for group in range(groups):
        for row in itertools.product((0, 1), repeat=bits):
            agreeing = sum(bit == (place in owned(group)) for place, bit in enumerate(row))
            chance = keep.keep_chance**agreeing * (1 - keep.keep_chance) ** (bits - agreeing)
            head = [group] if groups > 1 else []
            packed = sum(bit << place for place, bit in enumerate(row))
            table[(*head, packed)] = chance / groups
    return table


def hashed_law(hashed, digest):
    table = {}
    for function in range(hashed.family.functions):
        code = int(hashed.family.hashes(digest, np.array([function]))[0])
        if isinstance(hashed.randomiser, local.DirectResponse):
            owned = {code}
        else:
            owned = {2 * i + ((i & code).bit_count() & 1) for i in range(hashed.family.width)}
        for report, chance in preference(hashed.randomiser.law, owned).items():
            report += function * hashed.randomiser.outputs
            table[(report,)] = chance / hashed.family.functions
    return table


def law(randomiser, string):
    """Return the probability of each report."""
    if isinstance(randomiser, local.Rappor):
        filters = randomiser._filters(digests([string]))[:, :, 0]
        owned = [set(np.flatnonzero(row)) for row in filters]
        return bit_law(randomiser, randomiser.cohorts, randomiser.bits, owned.__getitem__)
    if isinstance(randomiser, local.CountMeanSketch):
        table = randomiser._family.table(digests([string]))
        return bit_law(randomiser, 3, 4, lambda function: {int(table[function, 0])})
    if isinstance(randomiser, local.HadamardSketch):
        return hashed_law(randomiser._hashed, digests([string]))
    reports, out = randomiser._reports, {}
    prefixes = reports.prefixes
    padded = local.strings.text.as_padded([string], length=prefixes.length)
    for step in range(prefixes.steps):
        here = np.array([step])
        digest = prefixes.digests(prefixes.cut(padded, here), here)
        for (code,), chance in hashed_law(reports.hashed, digest).items():
            out[(code + step * reports.hashed.outputs,)] = chance / prefixes.steps
    return out


def name(randomiser):
    return type(randomiser).__name__


@pytest.mark.parametrize("randomiser", RANDOMISERS, ids=name)
def test_no_report_is_likelier_than_the_loss_allows(randomiser):
    laws = [law(randomiser, string) for string in STRINGS]
    assert all(sum(table.values()) == 1 for table in laws)
    worst = max(
        one[report] / other[report]
        for one, other in itertools.permutations(laws, 2)
        for report in one
    )
    loss = randomiser.loss.epsilon
    assert worst <= exp_upper(Fraction(loss))
    assert loss <= randomiser.epsilon
    # Some pair of strings uses it all, but for what whole numbers round.
    assert worst > exp_upper(Fraction(loss) * (1 - Fraction(1, 10**9)))


@pytest.mark.parametrize("randomiser", RANDOMISERS, ids=name)
def test_reports_follow_their_law_and_another_law_would_show(randomiser):
    n = 30_000
    drawn = randomiser.release([b"a"] * n)
    counts = Counter(map(tuple, drawn.reshape(n, -1).tolist()))
    table = law(randomiser, b"a")
    assert statistic(counts, table, n) <= chi2.isf(FALSE_ALARM, len(table) - 1)
    assert set(counts) <= set(table)
    other = type(randomiser)(**settings(randomiser) | {"epsilon": 2 * randomiser.epsilon})
    if len(law(other, b"a")) == len(table):
        assert statistic(counts, law(other, b"a"), n) > chi2.isf(FALSE_ALARM, len(table) - 1)
    assert statistic(counts, law(randomiser, b"\xff\xff"), n) > chi2.isf(FALSE_ALARM, len(table))


def statistic(counts, table, n):
    return sum((counts[report] - n * float(p)) ** 2 / (n * float(p)) for report, p in table.items())


def settings(randomiser):
    return {field: getattr(randomiser, field) for field in randomiser.__dataclass_fields__}


@pytest.mark.parametrize("randomiser", RANDOMISERS, ids=name)
def test_the_randomness_read_does_not_depend_on_the_strings(randomiser):
    one, other = SeededSource(1), SeededSource(1)
    randomiser.release([b"a"] * 500, source=one)
    randomiser.release([b"zz", b"long" * 90] * 250, source=other)
    assert one.read(8) == other.read(8)


@pytest.mark.parametrize("randomiser", RANDOMISERS, ids=name)
def test_no_string_makes_a_device_fail(randomiser):
    strings = ["", "\0", "a\0b", chr(0xD800), "😀" * 1000, b"\xff\xfe", b"\0" * 999]
    assert len(randomiser.release(strings)) == len(strings)
    assert len(randomiser.release(np.array(["a", "b"]))) == 2
    assert len(randomiser.release([])) == 0
