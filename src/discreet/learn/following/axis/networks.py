"""Rules of layers and losses that torch computes in one piece."""

from collections.abc import Callable
from typing import Any

from discreet.learn.following.axis.labels import Axis
from discreet.learn.following.axis.operation import Operation


def _input(op: Operation) -> Axis:
    axis = op.axis("input") if op["input"] is not None else op.axis("self")
    if axis is None:
        raise op.refused("has weights that are computed from examples")
    return axis


def _plain(op: Operation, *names: str) -> None:
    if any(op.axis(name) is not None for name in names):
        raise op.refused("has weights that are computed from examples")


def layer_norm(op: Operation) -> list[Axis]:
    axis = _input(op)
    _plain(op, "weight", "bias")
    if axis.dim >= op["input"].dim() - len(op["normalized_shape"]):
        raise op.mixing("normalises over")
    return [axis] * len(op.func._schema.returns)


def group_norm(op: Operation) -> list[Axis]:
    axis = _input(op)
    _plain(op, "weight", "bias")
    if axis.dim != 0:
        raise op.mixing("normalises over")
    return [axis] * 3


def batch_norm(op: Operation) -> list[Axis | None]:
    """Follow fixed statistics; or statistics of channels that are units', as instance norm has."""
    axis = _input(op)
    is_training = "no_training" not in op.name and bool(op["training"])
    count = len(op.func._schema.returns)
    if not is_training:
        if axis.dim == 1 or any(op.axis(n) for n in ("weight", "running_mean", "running_var")):
            raise op.mixing("normalises over")
        return [axis, *[None] * (count - 1)]
    if axis.dim != 1:
        raise op.refused(
            "computes statistics over the batch, so that no example has a gradient of its own; "
            "replace batch norm: model = discreet.learn.fix(model)"
        )
    if op["running_mean"] is not None or op["running_var"] is not None:
        raise op.mixing("keeps statistics of")
    own = Axis(0, axis.outer, axis.inner)
    for name in ("weight", "bias"):
        if op[name] is not None and op.axis(name) is not None:
            op.met(own, op.axis(name) or own)
    return [axis, own, own, *[None] * (count - 3)][:count]


def spatial(dims: int) -> Callable[[Operation], Axis]:
    """Return the rule of what works along the last dimensions: pooling, padding, resizing."""

    def rule(op: Operation) -> Axis:
        axis = _input(op)
        first = op["input"] if op["input"] is not None else op["self"]
        if axis.dim >= first.dim() - dims:
            raise op.mixing("works along")
        found = [t for t in op.tensors if op.axis_of(t) is not None and t.dim() > dims]
        return op.aligned(found) or axis

    return rule


def first_dim(op: Operation) -> Axis:
    """Follow what takes examples along the first dimension of each tensor that has any."""
    axes = [op.axis_of(tensor) for tensor in op.tensors]
    found = [axis for axis in axes if axis is not None]
    axis = found[0]
    for other in found[1:]:
        axis = op.met(axis, other)
    if axis.dim != 0:
        raise op.mixing("works along")
    return axis


def loss(op: Operation) -> Axis:
    """Follow a loss number by number, without a mean or sum over all of them."""
    _unreduced(op)
    axis = op.aligned()
    assert axis is not None
    return axis


def loss_of_rows(op: Operation) -> Any:
    """Follow a loss of rows of scores: one number for each."""
    _unreduced(op)
    axis, target = op.axis("self"), op.axis("target")
    _plain(op, "weight")
    if axis is None or axis.dim != 0 or op["self"].dim() < 2:
        raise op.mixing("works along")
    if target is not None:
        op.met(axis, target)
    elif op["target"].dim():
        raise op.refused("meets each example with a number of its own place in the batch")
    if op.name in ("nll_loss_forward", "nll_loss2d_forward"):
        return [axis, None]
    return [axis] * len(op.func._schema.returns)


def _unreduced(op: Operation) -> None:
    if op["reduction"]:
        raise op.refused(
            "adds up or averages over the examples of a batch; use reduction='none', and average "
            "over what belongs to one row"
        )


def glu(op: Operation) -> Axis:
    axis = op.axis("self")
    assert axis is not None
    if op.dim() == axis.dim:
        raise op.mixing("pairs")
    return axis


def multinomial(op: Operation) -> Axis:
    axis = op.axis("self")
    assert axis is not None
    if op["self"].dim() != 2 or axis.dim != 0:
        raise op.mixing("draws among")
    return Axis(0, axis.outer, axis.inner)


def fourier(op: Operation) -> Axis:
    axis = op.axis("self")
    assert axis is not None
    if axis.dim in [dim % op["self"].dim() for dim in op["dim"]]:
        raise op.mixing("works along")
    return axis


def parametric_relu(op: Operation) -> Axis:
    axis = op.aligned()
    assert axis is not None
    return axis


def affine_grid(op: Operation) -> Axis:
    axis = op.axis("theta")
    if axis is None or axis.dim != 0:
        raise op.mixing("works along")
    return axis


def folded(op: Operation) -> Axis:
    """Follow sliding windows of images, taken apart or put together."""
    axis, tensor = op.axis("self"), op["self"]
    if axis is None or axis.dim != 0 or tensor.dim() < 3:
        raise op.mixing("slides over")
    return axis


def nothing_read(op: Operation) -> Axis:
    """Refuse what hands a value to Python."""
    raise op.refused(
        "reads a value of the examples into Python, which may then decide what is computed",
    )


def data_shaped(op: Operation) -> Axis:
    """Refuse shapes that depend on data."""
    raise op.refused("makes shapes that depend on the examples' data; use torch.where and masks")
