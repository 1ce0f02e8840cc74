"""Run a mechanism many times on each of two inputs."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit._progress import progress
from discreet.errors import DataError

__all__ = ["Raised", "collect"]


@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a call that failed: the kind of failure, never its text."""

    kind: str

    def __repr__(self) -> str:
        return f"raised {self.kind}"


def collect(
    fn: Callable[..., object], pair: tuple[object, object], samples: int, *, batch: bool
) -> tuple[Any, Any]:
    """Return ``samples`` outputs of ``fn`` on each input: a batch, or a list of single calls.

    A single call that raises has an output too. A batch that raises is no sample of anything, so
    its error is the caller's.
    """
    if batch:
        return _batch(fn, pair[0], samples), _batch(fn, pair[1], samples)
    outputs: tuple[list[object], list[object]] = ([], [])
    # In mixed order: what changes with time, such as a budget that runs out, is in neither alone.
    order = np.random.default_rng(1).permutation(2 * samples) % 2
    for at in progress(2 * samples):
        outputs[order[at]].append(_attempt(fn, pair[order[at]]))
    return outputs


def _batch(fn: Callable[..., object], value: object, samples: int) -> Any:
    outputs: Any = fn(value, samples)
    if hasattr(outputs, "to_numpy"):  # a table or column, whose rows are the outputs
        outputs = outputs.to_numpy()
    is_row = hasattr(outputs, "__len__") and not isinstance(outputs, Mapping | Set)
    if not is_row or len(outputs) != samples:
        raise DataError(
            f"fn(value, n) must return n outputs in a batch, and for n={samples} it did not. "
            "A function that takes the value alone is audited without batch."
        )
    return outputs


def _attempt(fn: Callable[..., object], value: object) -> object:
    try:
        return fn(value)
    except Exception as failure:
        return Raised(type(failure).__name__)
