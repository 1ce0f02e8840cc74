"""The clipped sum of a micro-batch as one CUDA graph: for models with more launches than work.

A small model's kernels are shorter than the time it takes to start them. Recorded once and
replayed, they start together. A graph has fixed shapes, so a micro-batch is filled up with rows
whose loss counts nothing. What is recorded is a pass whose operations were approved, and nothing
else is ever replayed (``docs/proofs/unit_axis.md``).
"""

import logging
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn.following.batch_tree import leaves, of_units, with_leaves
from discreet.learn.following.calls.chance import chance_of_host
from discreet.learn.following.function_identity import identity_of
from discreet.learn.gradients.engine import Clipped, GradientEngine
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.gradients.python_state import PythonState

_log = logging.getLogger("discreet.learn")

_SEEN_BEFORE = 2  # micro-batches that are computed as usual before one is recorded
_CHANGES = 3  # of what Python holds, after which nothing is recorded any more
_LEFT_FREE = 0.25  # of a device's memory, for whatever else is done there


@final
@dataclass(frozen=True, slots=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    batch: Any
    weights: Tensor
    clipped: Clipped
    state: PythonState  # what was held when it was recorded


class _NotRecorded(Exception):
    """A step that a graph can not stand for."""


@final
class Replaying:
    """Add clipped gradients as :class:`GradientEngine` does, by replaying a graph of it.

    ``capacity`` is the number of units that every micro-batch is filled up to. Steps are computed
    as usual where a graph can not stand for them: if the model or the loss draws chance on the
    host, reads a value back, or changes what it holds in Python. If a graph ``is_asked`` for, that
    is an error; but what changes is recorded anew.
    """

    def __init__(self, engine: GradientEngine, *, capacity: int, is_asked: bool) -> None:
        self._engine = engine
        self._capacity = capacity
        self._is_asked = is_asked
        self._is_off = False
        self._clipping = engine.clipping
        self._changes = 0
        self._graphs: dict[Any, _Graph] = {}
        self._seen: dict[Any, int] = {}

    def accumulate(
        self, loss_fn: LossFunction, batch: Any, *, units: int, is_careful: bool = True
    ) -> Clipped:
        """Add the clipped gradients of a micro-batch to the buffer; see :class:`GradientEngine`."""
        each = next(leaves(batch)).shape[0] // units
        found = None
        if not (is_careful or units > self._capacity or self._is_off):
            found = self._graph(loss_fn, batch, units, each)
        if found is None:
            return self._engine.accumulate(loss_fn, batch, units=units, is_careful=is_careful)
        _fill(found, batch, units * each)
        found.graph.replay()
        # Compared while the device is at work: if it has changed, the sum is thrown away.
        if not found.state.is_still(loss_fn, self._engine.model):
            self._changes += 1
            self._graphs.clear()
            self._engine.is_spoilt.fill_(value=True)
        return found.clipped.first(units, units * each)

    def _graph(self, loss_fn: LossFunction, batch: Any, units: int, each: int) -> _Graph | None:
        """Return the graph of such micro-batches; None for the first few, or if there is none."""
        if self._engine.clipping is not self._clipping:  # graphs of an earlier stage are of no use
            self._clipping = self._engine.clipping
            self._graphs.clear()
        key = self._key(loss_fn, batch, each)
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        if seen > _SEEN_BEFORE and key not in self._graphs:
            try:
                if self._changes > _CHANGES and not self._is_asked:
                    raise _NotRecorded("it holds numbers that change from step to step")
                self._graphs[key] = self._recorded(loss_fn, batch, units, each)
            except (_NotRecorded, RuntimeError) as error:
                self._give_up(error)
        return self._graphs.get(key)

    def _give_up(self, error: Exception) -> None:
        self._is_off = True
        self._graphs.clear()
        reason = str(error) if isinstance(error, _NotRecorded) else "an operation waits for the GPU"
        if self._is_asked:
            raise ParameterError(
                f"the work on a batch can not be recorded as a CUDA graph: {reason}. Leave out "
                "graphs=True.",
                parameter="graphs",
            ) from error
        _log.info("steps are computed without CUDA graphs: %s", reason)

    def _key(self, loss_fn: LossFunction, batch: Any, each: int) -> Any:
        model = self._engine.model
        return (
            identity_of(loss_fn),
            model.training,
            each,
            tuple((t.shape[1:], t.dtype) for t in leaves(batch)),
            tuple(p.data_ptr() for p in self._engine.flat.parameters),
        )

    def _recorded(self, loss_fn: LossFunction, batch: Any, units: int, each: int) -> _Graph:
        engine, buffer = self._engine, self._engine.flat.buffer
        state = PythonState(loss_fn, engine.model)
        static = of_units(batch, self._capacity, units)
        static = with_leaves(static, iter([t.clone() for t in leaves(static)]))
        weights = buffer.new_ones(self._capacity * each)

        def weighted(model: nn.Module, rows: Any) -> Tensor:
            losses = loss_fn(model, rows[0])
            return torch.mul(losses, rows[1])

        saved = buffer.clone()
        engine.try_out(weighted, (static, weights), units=self._capacity)
        before = chance_of_host()
        engine.accumulate(weighted, (static, weights), units=self._capacity)
        buffer.copy_(saved)
        if chance_of_host() != before:
            raise _NotRecorded("it draws chance on the host")
        if not state.is_still(loss_fn, engine.model):
            raise _NotRecorded("it changes what it holds, such as a counter")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            clipped = engine.accumulate(
                weighted, (static, weights), units=self._capacity, is_careful=False
            )
        free, whole = torch.cuda.mem_get_info(buffer.device)
        if free < _LEFT_FREE * whole and not self._is_asked:
            raise _NotRecorded("it would keep most of the memory")
        return _Graph(graph, static, weights, clipped, state)


def _fill(graph: _Graph, batch: Any, rows: int) -> None:
    """Copy a micro-batch to where the graph reads it."""
    for there, here in zip(leaves(graph.batch), leaves(batch), strict=True):
        there[:rows].copy_(here)
    graph.weights[:rows] = 1
    graph.weights[rows:] = 0
