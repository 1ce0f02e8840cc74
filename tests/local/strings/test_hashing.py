"""The public hash functions: what another language computes, and how independent they are."""

import hashlib
import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.local.strings.hashing import StringHashes, digests

FALSE_ALARM = 1e-9  # chance that truly random coefficients fail the test


def by_hand(key, function, width, string):
    """Follow the description with plain integers, as another language would."""
    words = hashlib.sha256(key + function.to_bytes(4, "big")).digest()
    a = [int.from_bytes(words[8 * i : 8 * i + 8], "big") for i in range(4)]
    digest = hashlib.sha256(string).digest()
    x = [int.from_bytes(digest[4 * i : 4 * i + 4], "big") for i in range(3)]
    total = (a[0] + a[1] * x[0] + a[2] * x[1] + a[3] * x[2]) % 2**64
    return total * width >> 64


@pytest.mark.parametrize("width", [2, 64, 65536])
def test_hashes_are_as_described(width):
    family = StringHashes(functions=5, width=width, key=b"a key")
    strings = [b"", b"one", "zwölf".encode(), bytes(100)]
    table = family.table(digests(strings))
    expected = [[by_hand(b"a key", j, width, string) for string in strings] for j in range(5)]
    assert table.tolist() == expected
    assert family.hashes(digests(strings), np.array([4, 3, 2, 1])).tolist() == [
        expected[j][i] for i, j in enumerate([4, 3, 2, 1])
    ]


def test_two_strings_have_independent_hashes_for_small_words():
    """The proof's statement in full for words of 6 bits and letters of 3: the top 4 bits."""
    for x, y in itertools.combinations(range(8), 2):
        joint = Counter(
            ((a + b * x) % 64 >> 2, (a + b * y) % 64 >> 2) for a in range(64) for b in range(64)
        )
        assert len(joint) == 256
        assert set(joint.values()) == {16}


def test_three_strings_have_independent_hashes_over_keys():
    hashed = digests([b"one", b"two", b"three"])
    family = StringHashes(functions=1 << 16, width=4, key=b"many functions")
    codes = np.array([16, 4, 1]) @ family.table(hashed).T
    seen = np.bincount(codes, minlength=64)
    mean = (1 << 16) / 64
    assert ((seen - mean) ** 2 / mean).sum() <= chi2.isf(FALSE_ALARM, 63)
