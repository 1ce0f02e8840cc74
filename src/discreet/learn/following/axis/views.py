"""Rules of views, copies and joins: the same numbers at other places."""

import sys
from typing import Any

import torch
from torch import Tensor

from discreet.learn.following.axis.labels import Axis, axis_of, put_axis, regrouped, times_units
from discreet.learn.following.axis.operation import Operation


def _moved(axis: Axis, dim: int) -> Axis:
    return Axis(dim, axis.outer, axis.inner, axis.kind)


def _own(op: Operation) -> Axis:
    """Return the axis of a tensor that has one."""
    axis = op.axis("self")
    assert axis is not None
    return axis


def _viewed(op: Operation) -> Axis:
    """Return the axis of a tensor that may hold the units' numbers: a view leaves these as is."""
    axis = axis_of(op["self"])
    assert axis is not None
    return axis


def same(op: Operation) -> Axis:
    """Follow a copy or an alias."""
    return _viewed(op)


def copied(op: Operation) -> Axis:
    """Follow a copy of another kind of number; few bits do not hold the units' numbers."""
    axis = _viewed(op)
    return axis if op["dtype"] in (None, torch.int64) else _own(op)


def read_as(op: Operation) -> Axis:
    """Follow the same bits, read in another way."""
    return _own(op)


def reshape(op: Operation) -> Axis:
    """Follow a new shape for the same numbers in the same order."""
    tensor, axis = op["self"], _viewed(op)
    sizes = list(op["size"] if op["size"] is not None else op["shape"])
    if -1 in [size for size in sizes if isinstance(size, int)]:
        place = sizes.index(-1)
        total: Any = 1
        for size in tensor.shape:
            total = total * size
        rest: Any = 1
        for size in sizes[:place] + sizes[place + 1 :]:
            rest = rest * size
        sizes[place] = total // rest
    if sum(times_units(size) is not None for size in sizes) != 1:
        raise op.mixing("runs together")
    new = regrouped(axis, tensor.shape, sizes)
    if new is None or (axis.kind == "index" and new.kind != "index"):
        raise op.mixing("tears apart or runs together")
    if axis.kind == "same" and axis.each > 1:
        # A view of it may be written to: from now on its places have an order.
        (inner,) = {
            i
            for i in range(1, axis.each + 1)
            if axis.each % i == 0
            and regrouped(Axis(axis.dim, axis.each // i, i), tensor.shape, sizes)
            == Axis(new.dim, new.outer, new.inner)
        } or {axis.inner}
        put_axis(tensor, Axis(axis.dim, axis.each // inner, inner))
        new = Axis(new.dim, new.outer, new.inner)
    return new


def permute(op: Operation) -> Axis:
    axis, count = _viewed(op), op["self"].dim()
    return _moved(axis, [dim % count for dim in op["dims"]].index(axis.dim))


def transpose(op: Operation) -> Axis:
    axis = _viewed(op)
    pair = (op.dim("dim0"), op.dim("dim1")) if "dim0" in op.values else (0, op["self"].dim() - 1)
    other = {pair[0]: pair[1], pair[1]: pair[0]}
    return _moved(axis, other.get(axis.dim, axis.dim))


def unsqueeze(op: Operation) -> Axis:
    axis, dim = _viewed(op), op.dim(extra=1)
    return _moved(axis, axis.dim + (dim <= axis.dim))


def squeeze(op: Operation) -> Axis:
    tensor, axis = op["self"], _viewed(op)
    asked = op["dim"]
    dims = range(tensor.dim()) if asked is None else [asked] if isinstance(asked, int) else asked
    gone = [d % tensor.dim() for d in dims]
    gone = [d for d in gone if d != axis.dim and tensor.shape[d] == 1]
    return _moved(axis, axis.dim - sum(d < axis.dim for d in gone))


def expand(op: Operation) -> Axis:
    tensor, sizes = op["self"], op["size"]
    axis, extra = axis_of(tensor), len(sizes) - op["self"].dim()
    if axis is not None:
        return _moved(axis, axis.dim + extra)
    dims = [dim for dim, size in enumerate(sizes) if times_units(size) is not None]
    if len(dims) != 1:
        raise op.mixing("multiplies")
    (dim,) = dims
    if dim >= extra and tensor.shape[dim - extra] != 1:
        raise op.mixing("multiplies")
    return Axis(dim, 1, times_units(sizes[dim]) or 1, "same")


def repeat(op: Operation) -> Axis:
    tensor, times = op["self"], op["repeats"]
    axis, extra = op.axis("self"), len(times) - op["self"].dim()
    if axis is not None:
        dim = axis.dim + extra
        if times_units(times[dim]) is not None:
            raise op.mixing("multiplies")
        return Axis(dim, axis.outer * int(times[dim]), axis.inner)
    (dim,) = [d for d, count in enumerate(times) if times_units(count) is not None][:1]
    own = int(tensor.shape[dim - extra]) if dim >= extra else 1
    # All copies are alike, so it does not matter which of them are whose.
    return Axis(dim, 1, (times_units(times[dim]) or 1) * own, "same" if own == 1 else "rows")


def select(op: Operation) -> Axis:
    axis, dim = _viewed(op), op.dim()
    if dim == axis.dim:
        raise op.mixing("picks one of")
    return _moved(axis, axis.dim - (dim < axis.dim))


def slice_(op: Operation) -> Axis:
    tensor, dim = op["self"], op.dim()
    axis = axis_of(tensor)
    if axis is None or axis.dim != dim:
        if any(times_units(op[name]) is not None for name in ("start", "end", "step")):
            raise op.refused("uses the number of examples as a number")
        assert axis is not None
        return axis
    start = 0 if op["start"] is None else op["start"]
    end = op["end"]
    size = tensor.shape[dim]
    is_open = end is None or (isinstance(end, int) and end == sys.maxsize)
    first = 0 if isinstance(start, int) and start == 0 else times_units(start)
    last = axis.each if is_open else times_units(end)
    if op["step"] != 1 or first is None or last is None or times_units(size) is None:
        raise op.mixing("picks some of")
    last = min(last, axis.each)
    if first < 0 or first % axis.inner or last % axis.inner or last <= first:
        raise op.mixing("picks some of")
    if (first, last) == (0, axis.each):
        return axis
    if axis.kind == "same":
        raise op.mixing("picks some of")
    return Axis(dim, (last - first) // axis.inner, axis.inner)


def split(op: Operation) -> Axis | list[Axis]:
    """Follow a split into parts: of another dimension, or of whole blocks of units."""
    axis, dim = _own(op), op.dim()
    sizes = op["split_sizes"] if op["split_sizes"] is not None else op["split_size"]
    if dim != axis.dim:
        return axis
    parts = sizes if isinstance(sizes, (list, tuple)) else [sizes]
    found = [times_units(size) for size in parts]
    if any(size is None or size % axis.inner for size in found) or axis.kind != "rows":
        raise op.mixing("splits")
    if isinstance(sizes, (list, tuple)):
        return [Axis(dim, (size or 0) // axis.inner, axis.inner) for size in found]
    outer = (found[0] or 0) // axis.inner
    if not outer or axis.outer % outer:
        raise op.mixing("splits")
    return Axis(dim, outer, axis.inner)


def unbind(op: Operation) -> Axis:
    axis, dim = _viewed(op), op.dim()
    if dim == axis.dim:
        raise op.mixing("takes apart")
    return _moved(axis, axis.dim - (dim < axis.dim))


def concatenate(op: Operation) -> Axis:
    """Follow tensors put side by side; along the unit axis, one whole batch behind the other."""
    tensors: list[Tensor] = [t for t in op["tensors"] if t.dim() != 1 or t.shape[0] != 0]
    dim = int(op["dim"]) % tensors[0].dim()
    axes = [op.axis_of(tensor) for tensor in tensors]
    found = [axis for axis in axes if axis is not None]
    if len(found) != len(tensors):
        raise op.refused("puts what is no example's among examples")
    if dim != found[0].dim:
        return _met(op, found)
    inner = next((axis.inner for axis in found if axis.kind == "rows"), found[0].inner)
    if any(a.dim != dim or (a.inner != inner and a.kind == "rows") for a in found):
        raise op.mixing("puts side by side")
    if any(axis.each % inner for axis in found):
        raise op.mixing("puts side by side")
    return Axis(dim, sum(axis.each // inner for axis in found), inner)


def stack(op: Operation) -> Axis:
    axes = [op.axis_of(tensor) for tensor in op["tensors"]]
    found = [axis for axis in axes if axis is not None]
    if len(found) != len(axes):
        raise op.refused("puts what is no example's among examples")
    axis = _met(op, found)
    dim = int(op["dim"]) % (op["tensors"][0].dim() + 1)
    return _moved(axis, axis.dim + (dim <= axis.dim))


def _met(op: Operation, axes: list[Axis]) -> Axis:
    axis = axes[0]
    for other in axes[1:]:
        axis = op.met(axis, other)
    # Side by side, what is alike along the axis stays so only if all of it is.
    return axis


def flip(op: Operation) -> Axis:
    axis = _own(op)
    dims = [dim % op["self"].dim() for dim in op["dims"]]
    if not dims or axis.dim in dims:
        raise op.mixing("moves")
    return axis


def pad(op: Operation) -> Axis:
    axis, pads = _own(op), op["pad"] if op["pad"] is not None else op["padding"]
    last = op["self"].dim() - len(pads) // 2
    if axis.dim >= last:
        place = 2 * (op["self"].dim() - 1 - axis.dim)
        if any(pads[place : place + 2]):
            raise op.mixing("pads")
    return axis


def diagonal(op: Operation) -> Axis:
    axis = _own(op)
    pair = (op.dim("dim1"), op.dim("dim2"))
    if axis.dim in pair:
        raise op.mixing("takes the diagonal of")
    return _moved(axis, axis.dim - sum(d < axis.dim for d in pair))


def diag_embed(op: Operation) -> Axis:
    axis, count = _own(op), op["self"].dim() + 1
    pair = sorted(int(op[name]) % count for name in ("dim1", "dim2"))
    if axis.dim == op["self"].dim() - 1:
        raise op.mixing("makes a matrix of")
    places = [d for d in range(count) if d not in pair]
    return _moved(axis, places[axis.dim])


def unfold(op: Operation) -> Axis:
    axis = _own(op)
    if op.dim("dimension") == axis.dim:
        raise op.mixing("slides over")
    return axis


def as_complex(op: Operation) -> Axis:
    axis = _own(op)
    if op.name == "view_as_complex" and axis.dim == op["self"].dim() - 1:
        raise op.mixing("pairs")
    return axis


def restrided(op: Operation) -> Axis:
    """Follow strides that are written anew and mean the same, as pooling does to its results."""
    tensor, axis = op["self"], _own(op)
    is_same = len(op["size"]) == tensor.dim() and not op["storage_offset"]
    for old, new, stride, asked in zip(
        tensor.shape, op["size"], tensor.stride(), op["stride"], strict=False
    ):
        is_one = isinstance(old, int) and old == 1
        is_same = is_same and bool(old == new) and (is_one or bool(stride == asked))
    if not is_same:
        raise op.mixing("tears apart or runs together")
    return axis
