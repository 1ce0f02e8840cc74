"""Features of numbers on a grid: parity, residues, and fractions of the unit."""

import numpy as np

from discreet.audit.outputs import Reader, ReadOutputs
from discreet.audit.scores.features import Feature, Values

__all__ = ["residue_features"]

_COORDINATES = 8
_MODULI = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 32, 60, 100)
_DECIMALS = 3


def residue_features(reader: Reader, known: ReadOutputs) -> list[Feature]:
    """Return what a grid can hide: residues of integers, and fractions of other numbers."""
    found: list[Feature] = []
    for column in reader.items[:_COORDINATES].tolist():
        values = known.numbers[:, column]
        values = values[np.isfinite(values)]
        if len(values) == 0:
            continue
        name = reader.number_names[column]
        if _is_whole(values):
            span = float(np.ptp(values))
            found += [_residue(column, name, modulus) for modulus in _MODULI if modulus <= span]
        else:
            found.append(_fraction(column, name))
    return found


def _is_whole(values: Values) -> bool:
    return bool((values == np.rint(values)).all())


def _residue(column: int, name: str, modulus: int) -> Feature:
    def values(reading: ReadOutputs) -> Values:
        with np.errstate(invalid="ignore"):
            return np.mod(reading.numbers[:, column], modulus)

    return Feature(name=f"{name} modulo {modulus}", values=values)


def _fraction(column: int, name: str) -> Feature:
    def values(reading: ReadOutputs) -> Values:
        with np.errstate(invalid="ignore"):
            return np.round(np.mod(reading.numbers[:, column], 1.0), _DECIMALS) % 1.0

    return Feature(name=f"the fractional part of {name}, to three places", values=values)
