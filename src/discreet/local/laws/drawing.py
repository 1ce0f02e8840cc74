"""Draw from a law of preference for many devices at once."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.local.laws.preference import Preference
from discreet.noise import Source, bernoulli, uniform_integers

__all__ = ["CHUNK", "draw", "keep_or_change"]

CHUNK: Final = 1 << 15  # devices; keeps coins, values and outputs in the processor's cache

Codes = npt.NDArray[Any]
Draw = Callable[[Codes, Source], Codes]


def draw(
    law: Preference, values: Codes, *, own: Draw, other: Draw, dtype: Any, source: Source
) -> Codes:
    """Return one output a value: drawn by ``own`` with the law's chance, otherwise by ``other``.

    Both are drawn for every value, so that the randomness read does not tell which was taken.
    """
    outputs = np.empty(values.size, dtype=dtype)
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        keeps = bernoulli(law.keep_chance, part.size, source=source)
        outputs[start : start + CHUNK] = np.where(keeps, own(part, source), other(part, source))
    return outputs


def keep_or_change(law: Preference, codes: Codes, *, below: int, source: Source) -> Codes:
    """Return each code with the law's chance, otherwise any other one below ``below``."""

    def other(part: Codes, source: Source) -> Codes:
        ahead = uniform_integers(below - 1, part.size, source=source)
        # The others, numbered without the code itself.
        return np.asarray(ahead + (ahead >= part))

    return draw(law, codes, own=_itself, other=other, dtype=np.int64, source=source)


def _itself(codes: Codes, source: Source) -> Codes:
    return codes
