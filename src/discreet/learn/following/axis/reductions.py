"""Rules of what works along dimensions: sums, softmax, sorting, running sums."""

from discreet.learn.following.axis.labels import Axis
from discreet.learn.following.axis.operation import Operation


def _dims(op: Operation, *names: str) -> list[int]:
    """Return the dimensions that are worked along; all of them where none is named."""
    tensor = op.tensors[0]
    asked = next((op[name] for name in names if op[name] is not None), None)
    if asked is None or (isinstance(asked, (list, tuple)) and not asked):
        return list(range(tensor.dim()))
    found = [asked] if isinstance(asked, int) else list(asked)
    return [int(dim) % max(1, tensor.dim()) for dim in found]


def reduce(op: Operation) -> Axis:
    """Follow a reduction of other dimensions than the units'."""
    axis = op.axis_of(op.tensors[0])
    assert axis is not None
    dims = _dims(op, "dim")
    if axis.dim in dims:
        raise op.mixing("reduces over")
    gone = 0 if op["keepdim"] else sum(dim < axis.dim for dim in set(dims))
    return Axis(axis.dim - gone, axis.outer, axis.inner, axis.kind)


def reduce_all(op: Operation) -> Axis:
    """Refuse a reduction of a whole tensor that counts units."""
    raise op.mixing("reduces over")


def along(op: Operation) -> Axis:
    """Follow what works along one dimension and keeps the others."""
    axis = op.aligned()
    assert axis is not None
    if axis.dim in _dims(op, "dim", "dims"):
        raise op.mixing("works along")
    return axis


def roll(op: Operation) -> Axis:
    axis = op.axis("self")
    assert axis is not None
    if axis.dim in _dims(op, "dims"):
        raise op.mixing("moves")
    return axis
