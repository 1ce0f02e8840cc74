"""Rules of products: matrices, convolutions, batched linear algebra."""

from torch import Tensor

from discreet.learn.following.axis.labels import Axis
from discreet.learn.following.axis.operation import Operation


def _product(op: Operation, left: Tensor, right: Tensor, batch: int) -> Axis | None:
    """Return the axis of ``left @ right`` with so many leading dimensions in common."""
    one, other = op.axis_of(left), op.axis_of(right)
    rows, inner = batch, batch + 1
    if one is not None and one.dim == inner:
        raise op.mixing("sums over")
    if other is not None and other.dim == batch and right.dim() > batch:
        raise op.mixing("sums over")
    if one is not None and other is not None:
        if one.dim < batch and other.dim < batch:
            return op.met(one, other)
        raise op.refused("brings different examples of the batch together")
    if one is not None:
        if one.dim < batch:
            raise op.refused("meets each example with a number of its own place in the batch")
        return Axis(rows, one.outer, one.inner, one.kind)
    if other is None:
        return None
    if other.dim < batch:
        raise op.refused("meets each example with a number of its own place in the batch")
    last = batch + (left.dim() - batch - 1)
    return Axis(last, other.outer, other.inner, other.kind)


def matrix_product(op: Operation) -> Axis | None:
    """Follow mm, mv and dot."""
    other = next(op[n] for n in ("mat2", "vec", "tensor", "other") if op[n] is not None)
    left, right = op["self"], other
    if left.dim() == 1:  # a dot product
        if any(op.axis_of(t) is not None for t in (left, right)):
            raise op.mixing("sums over")
        return None
    return _product(op, left, right, 0)


def batched_product(op: Operation) -> Axis | None:
    """Follow bmm."""
    return _product(op, op["self"], op["mat2"], 1)


def _added(op: Operation, axis: Axis | None, ndim: int) -> Axis | None:
    """Return the axis of a product to which ``self`` is added."""
    added: Tensor = op["self"]
    own = op.axis_of(added)
    if own is None:
        if axis is not None:
            dim = axis.dim - (ndim - added.dim())
            if dim >= 0 and added.shape[dim] != 1:
                raise op.refused("meets each example with a number of its own place in the batch")
        return axis
    shifted = Axis(own.dim + ndim - added.dim(), own.outer, own.inner, own.kind)
    return shifted if axis is None else op.met(axis, shifted)


def added_product(op: Operation) -> Axis | None:
    """Follow addmm and addmv."""
    left, right = (op["mat1"], op["mat2"]) if op["mat1"] is not None else (op["mat"], op["vec"])
    return _added(op, _product(op, left, right, 0), right.dim())


def added_batched_product(op: Operation) -> Axis | None:
    """Follow baddbmm."""
    return _added(op, _product(op, op["batch1"], op["batch2"], 1), 3)


def convolution(op: Operation) -> Axis:
    axis = op.axis("input")
    if axis is None or axis.dim != 0 or op.axis("weight") or op.axis("bias"):
        raise op.refused("wants examples along the first axis of its input, and nowhere else")
    return axis


def matrices(op: Operation) -> Axis:
    """Follow linear algebra on matrices: leading dimensions count them."""
    axis = op.aligned()
    first = next(t for t in op.tensors if op.axis_of(t) is not None)
    assert axis is not None
    if axis.dim >= first.dim() - 2:
        raise op.mixing("sums over")
    return axis


def distances(op: Operation) -> Axis:
    """Follow the distances of all rows of one matrix to those of another."""
    one, other = op.axis("x1"), op.axis("x2")  # of both, rows are the last dimension but one
    if one is not None and other is not None:
        axis = op.met(one, other)
        if axis.dim >= op["x1"].dim() - 2:
            raise op.refused("brings different examples of the batch together")
        return axis
    name = "x1" if one is not None else "x2"
    axis = op.axis(name) or Axis(0)
    count, own = max(op["x1"].dim(), op["x2"].dim()), op[name].dim()
    if axis.dim == own - 1:
        raise op.mixing("sums over")
    if axis.dim == own - 2:
        return Axis(count - (2 if name == "x1" else 1), axis.outer, axis.inner, axis.kind)
    return op.aligned() or axis
