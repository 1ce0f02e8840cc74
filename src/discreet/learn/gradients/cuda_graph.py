"""The clipped sum of a micro-batch as one CUDA graph: for models with more launches than work.

A small model's kernels are shorter than the time it takes to start them. Recorded once and
replayed, they start together. A graph has fixed shapes, so a micro-batch is filled up with rows
whose loss counts nothing.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from discreet.learn.following.batch_tree import leaves, of_units, with_leaves
from discreet.learn.following.function_identity import identity_of
from discreet.learn.gradients.engine import Clipped, GradientEngine
from discreet.learn.gradients.loss_function import LossFunction

_SEEN_BEFORE = 2  # micro-batches that are computed as usual, to warm up, before one is recorded


@final
@dataclass(frozen=True, slots=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    batch: Any
    weights: Tensor
    clipped: Clipped


@final
class Replaying:
    """Add clipped gradients as :class:`GradientEngine` does, by replaying a graph of it.

    ``capacity`` is the number of units that every micro-batch is filled up to.
    """

    def __init__(self, engine: GradientEngine, *, capacity: int) -> None:
        self._engine = engine
        self._capacity = capacity
        self._graphs: dict[Any, _Graph] = {}
        self._seen: dict[Any, int] = {}

    def accumulate(
        self, loss_fn: LossFunction, batch: Any, *, units: int, is_careful: bool = True
    ) -> Clipped:
        """Add the clipped gradients of a micro-batch to the buffer; see :class:`GradientEngine`."""
        each = next(leaves(batch)).shape[0] // units
        key = self._key(loss_fn, batch, each)
        seen = self._seen.get(key, 0)
        if is_careful or units > self._capacity or seen < _SEEN_BEFORE:
            self._seen[key] = seen + 1
            return self._engine.accumulate(loss_fn, batch, units=units, is_careful=is_careful)
        if key not in self._graphs:
            self._graphs[key] = self._recorded(loss_fn, batch, units, each)
        found = self._graphs[key]
        _fill(found, batch, units * each)
        found.graph.replay()
        clipped = found.clipped
        return Clipped(
            norms=clipped.norms[:units],
            factors=clipped.factors[:units],
            losses=clipped.losses[: units * each],
        )

    def _key(self, loss_fn: LossFunction, batch: Any, each: int) -> Any:
        model = self._engine.model
        return (
            identity_of(loss_fn),
            self._engine.clipping,
            model.training,
            each,
            tuple((t.shape[1:], t.dtype) for t in leaves(batch)),
            tuple(p.data_ptr() for p in self._engine.flat.parameters),
        )

    def _recorded(self, loss_fn: LossFunction, batch: Any, units: int, each: int) -> _Graph:
        engine, buffer = self._engine, self._engine.flat.buffer
        static = of_units(batch, self._capacity, units)
        static = with_leaves(static, iter([t.clone() for t in leaves(static)]))
        weights = buffer.new_ones(self._capacity * each)

        def weighted(model: nn.Module, rows: Any) -> Tensor:
            losses = loss_fn(model, rows[0])
            return torch.mul(losses, rows[1])

        saved = buffer.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                engine.accumulate(weighted, (static, weights), units=self._capacity)
        torch.cuda.current_stream().wait_stream(stream)
        buffer.copy_(saved)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            clipped = engine.accumulate(
                weighted, (static, weights), units=self._capacity, is_careful=False
            )
        return _Graph(graph, static, weights, clipped)


def _fill(graph: _Graph, batch: Any, rows: int) -> None:
    """Copy a micro-batch to where the graph reads it."""
    for there, here in zip(leaves(graph.batch), leaves(batch), strict=True):
        there[:rows].copy_(here)
    graph.weights[:rows] = 1
    graph.weights[rows:] = 0
