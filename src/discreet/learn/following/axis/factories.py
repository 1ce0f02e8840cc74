"""Rules of new tensors as long as the batch, of one number or of chance."""

from typing import Any

import torch

from discreet.learn.following.axis.labels import Axis, axis_of, times_units
from discreet.learn.following.axis.operation import Operation


def _made(op: Operation, sizes: Any, kind: Any) -> Axis:
    _require_secret(op)
    dims = [dim for dim, size in enumerate(sizes) if times_units(size) is not None]
    if len(dims) != 1:
        raise op.refused("makes a tensor with two axes as long as the batch")
    (dim,) = dims
    return Axis(dim, 1, times_units(sizes[dim]) or 1, kind)


def _require_secret(op: Operation) -> None:
    """Refuse draws whose seed may be known: they would be numbers of places in the batch."""
    if op["generator"] is not None:
        raise op.refused("draws for examples from a generator of its own; leave it out")


def constant(op: Operation) -> Axis:
    """Follow a tensor of one number everywhere."""
    return _made(op, op["size"], "same")


def chance(op: Operation) -> Axis:
    """Follow independent draws: a unit's places have draws of their own."""
    return _made(op, op["size"], "rows")


def constant_like(op: Operation) -> Axis | None:
    """Follow a tensor of one number in the shape of another, whose numbers it does not see."""
    axis = axis_of(op["self"])
    if axis is None:
        return None
    return Axis(axis.dim, axis.outer, axis.inner, "same" if axis.each > 1 else "rows")


def chance_like(op: Operation) -> Axis | None:
    """Follow independent draws in the shape of other tensors, by their numbers or not."""
    _require_secret(op)
    axis = op.aligned()
    return None if axis is None else Axis(axis.dim, axis.outer, axis.inner)


def chance_in_place(op: Operation) -> Axis | None:
    _require_secret(op)
    axis = axis_of(op["self"])
    if axis is None:
        return None
    return Axis(axis.dim, axis.outer, axis.inner)


def numbering(op: Operation) -> Axis:
    """Follow ``arange(units)``: the numbers of the units, for indexing by them alone."""
    start, step = op["start"], op["step"]
    if op["dtype"] not in (None, torch.int64) or float in (type(start), type(step)):
        raise op.refused("numbers examples in few bits; leave out dtype")
    if start not in (None, 0) or step not in (None, 1) or times_units(op["end"]) != 1:
        raise op.refused("uses the number of examples as a number")
    return Axis(0, kind="index")
