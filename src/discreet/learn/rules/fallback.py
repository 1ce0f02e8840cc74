"""The rule of all operations that have none of their own."""

from typing import Any

import torch
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.axis.labels import Axis
from discreet.learn.following.batch_tree import tensors
from discreet.learn.following.contributions import Dense
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.norms.dispatch import wide
from discreet.learn.rules.shared import mixing


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
    saved = [SavedInput(t) for t in batched]
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

        inputs = [
            rec.by_unit(x.get(), a) for x, a in zip(saved, axes, strict=True) if a is not None
        ]
        with as_before:
            try:
                each = torch.func.vmap(one)(rec.by_unit(grad, axis), *inputs)
            except RuntimeError as error:
                raise _unlike(func.__name__, error) from error
        for owner, grads in zip(owners, each, strict=True):
            rec.put(owner, Dense(wide(grads)))

    return rec.watch(out, *owners, then=then)


def _unlike(name: str, error: RuntimeError) -> Exception:
    """Return what to say of an operation that cannot be computed unit by unit."""
    if "vmap" not in str(error):
        return error
    chance = ", because it draws at random" if "random" in str(error) else ""
    return ParameterError(
        f"{name} on a trainable parameter cannot be differentiated example by example{chance}. "
        "Write it with simpler torch functions, or freeze the parameter.",
        parameter="model",
    )


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
