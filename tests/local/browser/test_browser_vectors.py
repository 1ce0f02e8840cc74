"""A browser makes the bytes of the vectors from their random words."""

import json

import pytest
from wire_vectors import MAKE, VECTORS

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.lengthy]


def test_a_browser_makes_the_bytes_of_the_vectors(device, module):
    page = device(module)
    for vector in json.loads(VECTORS.read_text())["reports"]:
        assert page.evaluate(MAKE, vector | {"module": module}) == vector["bytes"]


def test_coins_fall_at_the_very_border_of_their_chance(device, module):
    """64 bits just below ``keep`` show heads, and ``keep`` itself shows tails."""
    page = device(module)
    vector = json.loads(VECTORS.read_text())["reports"][0]
    keep = int(vector["parameters"]["randomiser"]["keep"])
    for drawn, is_kept in [(keep - 1, True), (keep, False), (keep + 2**32, False), (0, True)]:
        # The other value's word comes first, then the coin's two.
        words = [0, drawn >> 32, drawn & 0xFFFFFFFF]
        sent = page.evaluate(MAKE, vector | {"module": module, "words": words})
        assert (int(sent[-2:], 16) == vector["value"]) is is_kept
