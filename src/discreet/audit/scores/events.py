"""One event: some of the bins of one feature."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.outputs import ReadOutputs
from discreet.audit.scores.bins import Binning
from discreet.audit.scores.features import Feature

__all__ = ["Event"]

_SHOWN = 5


@final
@dataclass(frozen=True, slots=True)
class Event:
    """A set of outputs: those whose feature falls into the chosen bins."""

    feature: Feature
    binning: Binning
    chosen: NDArray[np.bool_]

    def count(self, reading: ReadOutputs) -> int:
        """Return how many outputs are in the event."""
        return int(np.count_nonzero(self.chosen[self.binning.index(self.feature.values(reading))]))

    def describe(self) -> str:
        """Say in words which outputs are in the event."""
        name, edges, chosen = self.feature.name, self.binning.edges, self.chosen
        if chosen.all():
            return "any output"
        if not self.binning.is_ordered and self.feature.label is None:
            return f"{name} among {int(chosen.sum())} of {len(chosen)}"
        if not self.binning.is_ordered:
            return _outcomes(name, edges[chosen[:-1]].tolist(), self.feature.label, chosen[-1])
        known = chosen[:-1]  # the last bin is for what is missing
        missing = f" or {name} missing" if chosen[-1] else ""
        cuts = np.flatnonzero(np.diff(known.astype(np.int8)))
        if not known.any():
            return f"{name} is missing"
        if known.all():
            return f"{name} is there"
        if len(cuts) == 1 and known[0]:
            return f"{name} <= {edges[cuts[0]]:.10g}{missing}"
        if len(cuts) == 1:
            at = cuts[0]
            if self.binning.is_exact and at + 1 < len(edges):
                return f"{name} >= {edges[at + 1]:.10g}{missing}"
            return f"{name} > {edges[at]:.10g}{missing}"
        if self.binning.is_exact:
            return _outcomes(name, edges[known[:-1]].tolist(), None, False) + missing
        return f"{name} in {_intervals(edges, known)}{missing}"


def _outcomes(
    name: str, values: list[int], label: Callable[[int], object] | None, new: bool
) -> str:
    shown = ", ".join(_short(label(v) if label else v) for v in values[:_SHOWN])
    if new:
        among = f", or among {len(values)} outcomes such as {shown}" if values else ""
        return f"{name} not seen in training{among}"
    if len(values) > _SHOWN:
        return f"{name} among {len(values)} outcomes such as {shown}"
    return f"{name} = {shown}" if len(values) == 1 else f"{name} among {shown}"


def _intervals(edges: NDArray[np.float64], known: NDArray[np.bool_]) -> str:
    steps = np.diff(np.concatenate([[0], known.astype(np.int8), [0]]))
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    pieces = [
        f"({bounds[start]:.5g}, {bounds[stop]:.5g}]"
        for start, stop in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True)
    ]
    more = f" and {len(pieces) - _SHOWN} more intervals" if len(pieces) > _SHOWN else ""
    return ", ".join(pieces[:_SHOWN]) + more


def _short(name: object) -> str:
    text = f"{name:.10g}" if isinstance(name, float) else repr(name)
    return text if len(text) <= 40 else text[:37] + "..."
