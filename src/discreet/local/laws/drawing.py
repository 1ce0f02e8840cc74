"""Draw from a law of preference for many devices at once."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.local.laws.preference import Preference
from discreet.noise import Source, bernoulli

__all__ = ["CHUNK", "draw"]

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
