"""Bring whatever a mechanism returns into arrays that can be counted.

Every step here is post-processing, which privacy survives, so a bound proved for the arrays holds
for the mechanism.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit._progress import progress
from discreet.errors import DataError

__all__ = ["Outputs", "collect", "encode"]

Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of both inputs: numbers, or codes of ``labels`` when they have no order."""

    first: Values
    second: Values
    labels: Sequence[object] | None

    @property
    def is_ordered(self) -> bool:
        return self.labels is None


def collect(fn: Callable[..., object], value: object, samples: int, *, batch: bool) -> Any:
    """Return ``samples`` outputs of ``fn`` on ``value``: one batch, or a list of single calls."""
    if not batch:
        return [fn(value) for _ in progress(samples)]
    outputs: Any = fn(value, samples)
    if not hasattr(outputs, "__len__") or len(outputs) != samples:
        raise DataError(
            f"with batch=True, fn(value, n) must return n outputs; for n={samples} it did not. "
            "Use batch=False if fn takes the value alone."
        )
    return outputs


def encode(first: Any, second: Any) -> Outputs:
    """Turn two collections of outputs into numbers where possible, otherwise into codes."""
    one, two = _numbers(first), _numbers(second)
    if one is not None and two is not None:
        kind = np.result_type(one, two)
        return Outputs(first=one.astype(kind), second=two.astype(kind), labels=None)
    keys: dict[Hashable, int] = {}
    codes = [
        np.fromiter((keys.setdefault(_key(o), len(keys)) for o in outputs), np.int64, len(outputs))
        for outputs in (first, second)
    ]
    return Outputs(first=codes[0], second=codes[1], labels=list(keys))


def _numbers(outputs: Any) -> Values | None:
    """Return scalar numbers as int64 or float64, anything else as None."""
    if isinstance(outputs, np.ndarray):
        array = outputs if outputs.ndim == 1 else None
    elif all(isinstance(o, int | float | np.number) and not isinstance(o, bool) for o in outputs):
        array = np.asarray(outputs)
    else:
        array = None
    if array is None or array.dtype.kind not in "iufO":
        return None
    if array.dtype.kind == "i":
        return array.astype(np.int64)
    try:
        # Integers beyond 64 bits lose their low bits here, and NaN, which has no place on the
        # line, counts as infinity: post-processing like any other.
        floats = array.astype(np.float64)
        return np.where(np.isnan(floats), np.inf, floats)
    except (TypeError, ValueError, OverflowError):
        return None


def _key(output: object) -> Hashable:
    """Return something hashable that stands for one output."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return tuple(_key(entry) for entry in output)
    if isinstance(output, float) and math.isnan(output):
        return "nan"  # NaN differs from itself and would look like ever new outcomes
    if isinstance(output, Hashable):
        return output
    raise DataError(
        f"an audit cannot tell outputs of type {type(output).__name__} apart. Return a number, a "
        "string, a tuple or an array, or wrap fn so that it returns the part that matters."
    )
