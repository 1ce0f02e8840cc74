# ruff: noqa: A002 - arguments have the names that torch gave them
"""What each operation on a parameter leaves behind for the gradients of the units.

A rule computes the operation with the parameter as a constant, and watches the result: its
gradient, together with the input, gives the gradient of each unit. Operations without a rule of
their own go to the fallback, which differentiates that one operation unit by unit.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import Dense, Outer, wide
from discreet.learn.following.recorder import Kept, Recorder
from discreet.learn.following.unit_axes import Axis, tensors
from discreet.learn.rules.layers import (
    convolution,
    embedding,
    embedding_bag,
    group_norm,
    instance_norm,
    layer_norm,
    refuse_batch_norm,
)
from discreet.learn.rules.shared import (
    as_autocast,
    constant,
    mixing,
    per_unit_sum,
    positions,
    summed,
    wanted,
)


def linear(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Follow ``x @ weight.T + bias``."""
    x, axis = as_autocast(input), rec.axis(input)
    if axis is not None and axis.dim == input.dim() - 1:
        raise mixing("linear")
    out = func(x, constant(rec, weight), constant(rec, bias))
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grads = positions(rec, grad, axis)
        if rec.is_followed(weight):
            rec.put(weight, Outer(grads, positions(rec, kept.get(), axis)))
        if bias is not None and rec.is_followed(bias):
            rec.put(bias, Dense(summed(grads)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then)


def matmul(rec: Recorder, func: Any, input: Tensor, other: Tensor) -> Tensor:
    """Follow ``x @ weight``; anything else goes to the fallback."""
    axis = rec.axis(input)
    if rec.is_followed(input) or other.dim() != 2 or input.dim() < 2:
        return cast("Tensor", fallback(rec, func, input, other))
    if axis is not None and axis.dim == input.dim() - 1:
        raise mixing("matmul")
    x = as_autocast(input)
    out = func(x, rec.plain(other))
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(other, Outer(positions(rec, kept.get(), axis), positions(rec, grad, axis)))

    return rec.watch(out, other, then=then)


def addmm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    **scales: Any,
) -> Tensor:
    """Follow ``bias + x @ weight``."""
    axis = rec.axis(mat1)
    if scales or rec.is_followed(mat1) or input.dim() != 1 or (axis is not None and axis.dim):
        return cast("Tensor", fallback(rec, func, input, mat1, mat2, **scales))
    x = as_autocast(mat1)
    out = func(constant(rec, input), x, constant(rec, mat2))
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grads = positions(rec, grad, axis)
        if rec.is_followed(mat2):
            rec.put(mat2, Outer(positions(rec, kept.get(), axis), grads))
        if rec.is_followed(input):
            rec.put(input, Dense(summed(grads)))

    return rec.watch(out, *wanted(rec, input, mat2), then=then)


def add(rec: Recorder, func: Any, input: Any, other: Any, **options: Any) -> Tensor:
    """Follow a parameter that is added to a batch."""
    if options or not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other, **options))
    owner = input if rec.is_followed(input) else other
    out = func(constant(rec, input), constant(rec, other))
    (axis,) = rec.results or (None,)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(per_unit_sum(rec, grad, axis, owner.shape)))

    return rec.watch(out, owner, then=then)


def multiply(rec: Recorder, func: Any, input: Any, other: Any) -> Tensor:
    """Follow a parameter that a batch is multiplied with."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other))
    owner, x = (input, other) if rec.is_followed(input) else (other, input)
    out = func(constant(rec, input), constant(rec, other))
    (axis,) = rec.results or (None,)
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(per_unit_sum(rec, wide(grad) * kept.get(), axis, owner.shape)))

    return rec.watch(out, owner, then=then)


def expand(rec: Recorder, func: Any, input: Tensor, *sizes: Any, **named: Any) -> Tensor:
    """Follow a parameter that is repeated for every unit."""
    out = func(rec.plain(input), *sizes, **named).clone()
    (axis,) = rec.results or (None,)
    if axis is not None:
        own = axis.dim - (out.dim() - input.dim())
        grown = [
            d
            for d in range(input.dim())
            if out.shape[out.dim() - input.dim() + d] != input.shape[d]
        ]
        if (own >= 0 and input.shape[own] != 1) or any(input.shape[d] != 1 for d in grown):
            raise ParameterError(
                f"{func.__name__} of a parameter along an axis that is longer than 1 is not "
                "handled. Use expand on an axis of length 1.",
                parameter="model",
            )

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(input, Dense(per_unit_sum(rec, grad, axis, input.shape)))

    return rec.watch(out, input, then=then)


def fallback(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Differentiate one operation unit by unit (vmap of its vector-Jacobian product)."""
    owners = [t for t in tensors(args, kwargs) if rec.is_followed(t)]
    owners = list({id(t): t for t in owners}.values())
    batched = [t for t in tensors(args, kwargs) if rec.axis(t) is not None]
    axes = [rec.axis(t) for t in batched]

    def call(found: dict[int, Tensor]) -> Any:
        return func(*_swapped(args, found), **{k: _swapped(v, found) for k, v in kwargs.items()})

    out = call({id(t): rec.plain(t) for t in owners})
    results = rec.results
    if not isinstance(out, Tensor) or not (batched or rec.is_again):
        raise ParameterError(
            f"{func.__name__} on a trainable parameter is not handled. Write it with operations "
            "that take the batch and the parameter and return one tensor.",
            parameter="model",
        )
    kept = [Kept(t) for t in batched]
    device = out.device.type
    as_before = torch.autocast(
        device,
        dtype=torch.get_autocast_dtype(device),
        enabled=torch.is_autocast_enabled(device),
    )
    plain = [rec.plain(t) for t in owners]

    def then(grad: Tensor) -> None:
        (axis,) = results
        if axis is None or any(one is None for one in axes):
            raise mixing(func.__name__)

        def one(grad: Tensor, *inputs: Tensor) -> Any:
            found = {
                id(t): _one_unit(x, a)
                for t, x, a in zip(batched, inputs, axes, strict=True)
                if a is not None
            }

            def again(*parameters: Tensor) -> Any:
                return call(
                    {**found, **{id(t): p for t, p in zip(owners, parameters, strict=True)}}
                )

            pull = torch.func.vjp(again, *plain)[1]
            return pull(_one_unit(grad, axis))

        inputs = [rec.by_unit(x.get(), a) for x, a in zip(kept, axes, strict=True) if a is not None]
        with as_before:
            each = torch.func.vmap(one)(rec.by_unit(grad, axis), *inputs)
        for owner, grads in zip(owners, each, strict=True):
            rec.put(owner, Dense(wide(grads)))

    return rec.watch(out, *owners, then=then)


def _swapped(tree: Any, found: dict[int, Tensor]) -> Any:
    if isinstance(tree, Tensor):
        return found.get(id(tree), tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(_swapped(one, found) for one in tree)
    return tree


def _one_unit(tensor: Tensor, axis: Axis) -> Tensor:
    """Put one unit's rows back where the operation expects them."""
    if axis.each == 1:
        tensor = tensor.unsqueeze(0)
    return tensor.movedim(0, axis.dim)


def rms_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Follow the scale of a root-mean-square norm."""
    assert weight is not None
    hat = func(input, normalized_shape, None, eps)
    rec._axes[id(hat)] = rec.axis(input)
    return multiply(rec, torch.mul, hat, weight)


T = torch.Tensor
RULES: dict[Any, Any] = {
    F.linear: linear,
    torch.matmul: matmul,
    T.matmul: matmul,
    T.__matmul__: matmul,
    T.mm: matmul,
    torch.mm: matmul,
    torch.addmm: addmm,
    F.embedding: embedding,
    F.embedding_bag: embedding_bag,
    **dict.fromkeys((torch.conv1d, torch.conv2d, torch.conv3d), convolution),
    **dict.fromkeys(
        (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d), convolution
    ),
    F.layer_norm: layer_norm,
    F.group_norm: group_norm,
    F.rms_norm: rms_norm,
    F.instance_norm: instance_norm,
    F.batch_norm: refuse_batch_norm,
    **dict.fromkeys((torch.add, T.add, T.__add__, T.__radd__, T.add_, T.__iadd__), add),
    **dict.fromkeys((torch.mul, T.mul, T.__mul__, T.__rmul__, T.mul_, T.__imul__), multiply),
    **dict.fromkeys((T.expand, T.expand_as, T.repeat, torch.broadcast_to, T.broadcast_to), expand),
}
