"""Strings become the same bytes everywhere."""

import numpy as np

from discreet.local.strings.prefixes import Prefixes
from discreet.local.strings.text import as_bytes, as_padded


def test_surrogates_become_what_browsers_make_of_them():
    pair = chr(0xD83D) + chr(0xDE00)  # two halves that belong together
    assert as_bytes([pair, chr(0xD83D) + "x"]) == ["😀".encode(), b"\xef\xbf\xbdx"]


def test_padding_cuts_and_fills_by_bytes():
    rows = as_padded(["", "aé", b"abcdef"], length=2)
    assert rows.tolist() == [[0, 0], [97, 0xC3], [97, 98]]
    assert as_padded([], length=2).shape == (0, 2)


def test_every_string_is_reached_through_its_prefixes():
    rng = np.random.default_rng()
    for length, steps in [(1, 1), (2, 3), (5, 4), (3, 24)]:
        prefixes = Prefixes(length=length, steps=steps)
        strings = rng.integers(0, 256, (20, length), dtype=np.uint8)
        kept = np.zeros((1, length), dtype=np.uint8)
        for step in range(steps):
            wanted = np.unique(prefixes.cut(strings, np.full(20, step)), axis=0)
            extended = prefixes.extend(kept, step)
            assert len(np.unique(extended, axis=0)) == len(extended)
            assert {bytes(row) for row in wanted} <= {bytes(row) for row in extended}
            kept = wanted
        assert {bytes(row) for row in kept} == {bytes(row) for row in strings}


def test_equal_bytes_at_different_steps_are_different_prefixes():
    prefixes = Prefixes(length=2, steps=16)
    rows = np.zeros((16, 2), dtype=np.uint8)
    assert len(np.unique(prefixes.digests(rows, np.arange(16)), axis=0)) == 16
