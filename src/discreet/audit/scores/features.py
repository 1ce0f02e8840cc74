"""Features: numbers and words computed from an output, each under a name that people understand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.outputs import Reader, ReadOutputs

__all__ = ["Feature", "Values", "plain_features", "spread_features"]

Values: TypeAlias = NDArray[Any]

_COORDINATES = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something to be computed from every output."""

    name: str
    values: Callable[[ReadOutputs], Values]
    is_ordered: bool = True
    is_part: bool = False  # of the output itself, rather than of something computed from it
    label: Callable[[int], object] | None = None  # what a code stands for


def plain_features(reader: Reader) -> list[Feature]:
    """Return the whole output, and every number and word in it."""
    found = [
        Feature(
            name="output",
            values=lambda reading: reading.wholes,
            is_ordered=False,
            label=reader.whole,
        )
    ]
    found += [_word(column, name, reader) for column, name in enumerate(reader.word_names)]
    found += [_number(column, name) for column, name in enumerate(reader.number_names)]
    return found


def spread_features(reader: Reader, known: tuple[ReadOutputs, ReadOutputs]) -> list[Feature]:
    """Return how far numbers lie from their middle: noise of two widths differs on both sides."""
    found = []
    for column in reader.items[:_COORDINATES].tolist():
        values = np.concatenate([side.numbers[:, column] for side in known])
        values = values[np.isfinite(values)]
        if len(values):
            found.append(_distance(column, reader.number_names[column], float(np.median(values))))
    return found


def _distance(column: int, name: str, middle: float) -> Feature:
    def values(reading: ReadOutputs) -> Values:
        return np.abs(reading.numbers[:, column] - middle)

    return Feature(name=f"how far {name} lies from {middle:.6g}", values=values)


def _number(column: int, name: str) -> Feature:
    return Feature(name=name, values=lambda reading: reading.numbers[:, column], is_part=True)


def _word(column: int, name: str, reader: Reader) -> Feature:
    return Feature(
        name=name,
        values=lambda reading: reading.words[:, column],
        is_ordered=False,
        is_part=True,
        label=lambda code: reader.word(column, code),
    )
