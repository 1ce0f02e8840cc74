"""Rules of reading and writing by index: each unit at places that its own rows name."""

from typing import Any

import torch
from torch import Tensor

from discreet.learn.following.axis.labels import Axis, axis_of
from discreet.learn.following.axis.operation import Operation


def gather(op: Operation) -> Axis:
    """Follow reading or writing along another dimension than the units', place by place."""
    tensors = [op[name] for name in ("self", "index", "src") if isinstance(op[name], Tensor)]
    axes = [op.axis_of(tensor) for tensor in tensors]
    if any(axis is None for axis in axes):
        raise op.refused("meets each example with a number of its own place in the batch")
    axis = axes[0]
    for other in axes[1:]:
        assert axis is not None
        assert other is not None
        axis = op.met(axis, other)
    assert axis is not None
    if op.dim() == axis.dim:
        raise op.mixing("picks among")
    return axis


def index_select(op: Operation) -> Axis:
    axis, picked, dim = op.axis("self"), op.axis("index"), op.dim()
    if axis is not None and (dim == axis.dim or picked is not None):
        raise op.mixing("picks among")
    if axis is not None:
        return axis
    assert picked is not None
    return Axis(dim, picked.outer, picked.inner, picked.kind)


def index_write(op: Operation) -> Axis:
    """Follow index_add, index_copy and index_fill: the same places for every unit."""
    axis, source = op.axis("self"), op.axis("source")
    if axis is None or op.axis("index") is not None or op.dim() == axis.dim:
        raise op.mixing("writes among")
    if isinstance(op["source"], Tensor) and op["source"].dim() == op["self"].dim():
        if source is None:
            raise op.refused("meets each example with a number of its own place in the batch")
        return op.met(axis, source)
    if source is not None:
        raise op.mixing("writes among")
    return axis


def embedding(op: Operation) -> Axis:
    axis = op.axis("indices")
    if axis is None or op.axis("weight") is not None:
        raise op.refused("reads rows of a table that is computed from examples")
    if op["scale_grad_by_freq"]:
        raise op.refused("with scale_grad_by_freq counts how often a batch has a token")
    return axis


def renorm(op: Operation) -> Axis:
    """Refuse an embedding that changes its table by what it reads."""
    raise op.refused("with max_norm changes a table by what is read of it")


def index(op: Operation) -> Axis:
    """Follow ``x[i, j, ...]`` with tensors as indices."""
    return _indexed(op)


def _indexed(op: Operation) -> Axis:
    indices = _spread(op, op["indices"])
    axis = op.axis("self")
    used = [place for place, one in enumerate(indices) if one is not None]
    given = [one for one in indices if one is not None]
    most = max(one.dim() for one in given)
    is_together = used[-1] - used[0] + 1 == len(used)
    front = used[0] if is_together else 0
    found = _broadcast(op, given, most)
    for place, one in enumerate(indices):
        own = None if one is None else axis_of(one)
        if own is not None and own.kind == "index" and (axis is None or place != axis.dim):
            raise op.refused("uses the places of examples in the batch as numbers")
    if axis is None:
        assert found is not None
        return Axis(front + found.dim, found.outer, found.inner)
    if axis.dim in used:
        picked = indices[axis.dim]
        own = None if picked is None else axis_of(picked)
        if own is None or own.kind != "index" or axis.each != 1 or found is None:
            raise op.mixing("picks among")
        return Axis(front + found.dim, found.outer, found.inner)
    if found is not None:
        raise op.mixing("picks among")
    before = sum(place < axis.dim for place in used)
    if is_together:
        dim = axis.dim if axis.dim < used[0] else axis.dim - before + most
    else:
        dim = most + axis.dim - before
    return Axis(dim, axis.outer, axis.inner, axis.kind)


def _spread(op: Operation, indices: Any) -> list[Tensor | None]:
    """Return indices as numbers, one for each dimension: a mask stands for several."""
    found: list[Tensor | None] = []
    for one in indices:
        if one is None or one.dtype not in (torch.bool, torch.uint8):
            found.append(one)
        elif axis_of(one) is not None:
            raise op.refused(
                "picks by a mask, so that shapes depend on the examples' data; use torch.where or "
                "a product with the mask"
            )
        else:
            found.extend(one.nonzero(as_tuple=True))
    return found


def _broadcast(op: Operation, given: list[Tensor], most: int) -> Axis | None:
    """Return the axis of index tensors broadcast together; the units' numbers are welcome."""
    axis: Axis | None = None
    for one in given:
        own = axis_of(one)
        if own is None:
            continue
        shifted = Axis(own.dim + most - one.dim(), own.outer, own.inner)
        axis = shifted if axis is None else op.met(axis, shifted)
    if axis is not None:
        for one in given:
            dim = axis.dim - (most - one.dim())
            if axis_of(one) is None and dim >= 0 and one.shape[dim] != 1:
                raise op.refused("meets each example with a number of its own place in the batch")
    return axis


def index_put(op: Operation) -> Axis:
    """Follow ``x[i, j, ...] = values``: a mask of the units' own, or places as for reading."""
    tensor, values = op["self"], op["values"]
    axis, own = op.axis("self"), op.axis("values")
    if axis is None:
        raise op.mixing("writes into what is shared by")
    masks = [one for one in op["indices"] if one is not None and axis_of(one) is not None]
    if len(op["indices"]) == 1 and masks and masks[0].dtype == torch.bool:
        mask = op.axis_of(masks[0])
        assert mask is not None
        free = tensor.dim() - masks[0].dim()
        if (
            own is not None
            or values.dim() > free + 1
            or (values.dim() == free + 1 and values.shape[0] != 1)
        ):
            raise op.refused("writes by a mask, one value after the other; use torch.where")
        return op.met(axis, mask)
    read = _indexed(op)
    if own is not None:
        ndim = _read_dims(op)
        met = op.met(read, Axis(own.dim + ndim - values.dim(), own.outer, own.inner, own.kind))
        return Axis(axis.dim, met.outer, met.inner) if axis.kind == "same" else axis
    if values.dim() >= _read_dims(op) - read.dim and values.shape[read.dim - _read_dims(op)] != 1:
        raise op.refused("meets each example with a number of its own place in the batch")
    return axis


def _read_dims(op: Operation) -> int:
    indices = _spread(op, op["indices"])
    given = [one for one in indices if one is not None]
    return int(op["self"].dim()) - len(given) + max(one.dim() for one in given)


def search(op: Operation) -> Axis:
    """Follow bucketize and searchsorted in boundaries that are everybody's."""
    values = op["self"] if isinstance(op["self"], Tensor) else None
    bounds = next(op[n] for n in ("boundaries", "sorted_sequence") if op[n] is not None)
    if values is None or op.axis_of(bounds) is not None or bounds.dim() != 1:
        raise op.mixing("searches among")
    axis = op.axis("self")
    assert axis is not None
    return axis
