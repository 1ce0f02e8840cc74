"""Try with plain autograd whether a unit's loss or gradient changes with the other units.

Nothing of how units are followed takes part, so that an error there would have to coincide with
one that shows in no number. The same chance is drawn each time.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from discreet.errors import ParameterError
from discreet.learn.following.batch_tree import contrasting, leaves, made_up, with_leaves
from discreet.learn.following.calls.chance import chance_of, seed_all
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.norms.dispatch import without_tf32

UNITS: Final = 3
KEPT: Final = (0, 1)  # who keep their rows in turn: others come later, or before as well
_REPEATS: Final = 8  # times as much as from one run to the next may be due to the device

_CHECKED: Final = ("_parameters", "_buffers", "_modules")  # by themselves

Own = list[Tensor]
"""What is one unit's: its losses, and the gradient of each parameter."""


@without_tf32()  # which makes an error of 1e-7 one of 1e-3, wherever it passes a border
def check_apart(
    model: nn.Module,
    parameters: tuple[Tensor, ...],
    loss_fn: LossFunction,
    batch: Any,
    *,
    units: int,
    seed: int,
    rounding: float,
    tolerance: float,
) -> None:
    """Raise :class:`ParameterError` if a unit's loss or gradient changes with the others.

    One unit keeps its rows and its place while the others get new ones: then its numbers are the
    same up to ``rounding`` times their size. Then (without dropout) it is elsewhere in a
    smaller or a larger batch: then they are as near as ``tolerance`` times their size.
    """
    for number, make in enumerate((made_up, contrasting)):
        chance = seed + 2 * number
        own = functools.partial(_own, model, parameters, loss_fn, seed=chance)
        first, others = (make(batch, UNITS, units, seed=chance + k) for k in (0, 1))
        try:
            _check_others(own, first, others, rounding)
            if make is made_up:
                _check_sizes(own, first, others, tolerance)
        except ParameterError:
            raise
        except Exception:
            # A model need not take rows that have never been.
            if make is made_up:
                raise


def _check_others(own: Callable[..., list[Own]], first: Any, others: Any, rounding: float) -> None:
    seen: list[Any] = []
    before = own(first, KEPT, seen=seen)
    for unit, mine in zip(KEPT, before, strict=True):
        seen_after: list[Any] = []
        (after,) = own(with_unit_of(unit, first, others), (unit,), seen=seen_after)
        _check_seen(own, first, seen, seen_after)
        if not _is_near(mine, after, rounding):
            (again,) = own(first, (unit,))  # not every device computes the same each time
            most = [_REPEATS * float((a - b).norm()) for a, b in zip(mine, again, strict=True)]
            if not _is_near(mine, after, rounding, most):
                raise _refusal(
                    "the loss of one example, or its gradient, changes with the other examples of "
                    "the batch. Look for layers that mix examples (statistics or sums over the "
                    "batch)."
                )


def _check_seen(
    own: Callable[..., list[Own]], first: Any, seen: list[Any], seen_after: list[Any]
) -> None:
    """Compare the model's attributes after two passes that began alike, but for the rows."""
    if _is_alike(seen, seen_after):
        return
    again: list[Any] = []
    own(first, (), seen=again)  # an attribute may hold the time
    if _is_alike(seen, again):
        raise _refusal(
            "the forward pass keeps something of the rows in an attribute of the model. Keep "
            "nothing of them."
        )


def _check_sizes(own: Callable[..., list[Own]], first: Any, others: Any, tolerance: float) -> None:
    calmly_own = functools.partial(own, is_calm=True)
    drawn: list[bool] = []
    calm = calmly_own(first, KEPT, drawn=drawn)
    if any(drawn):
        return  # other places have other chance
    for skipped in (0, UNITS):
        rows = [
            torch.cat(
                [new[: skipped * (t.shape[0] // UNITS)], *(rows_of(k, t) for k in KEPT[::-1])]
            )
            for t, new in zip(leaves(first), leaves(others), strict=True)
        ]
        count = skipped + len(KEPT)
        places = range(count - 1, skipped - 1, -1)
        moved = calmly_own(with_leaves(first, iter(rows)), places, count=count)
        if not all(_is_near(*pair, tolerance) for pair in zip(calm, moved, strict=True)):
            raise _refusal(
                "the loss of one example, or its gradient, changes with its place in the batch, or "
                "with the size of the batch. Do not divide by that: the noisy sum is divided by "
                "the expected size."
            )


class _Calm(TorchFunctionMode):
    """Run without dropout."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _calmly(func, args, kwargs or {})


def _calmly(func: Any, args: Any, kwargs: Any) -> Any:
    """Call a torch function without dropout: the same rows then give the same numbers."""
    if "dropout" in func.__name__:
        kept = args[0] if args else kwargs["input"]
        return kept.view_as(kept)
    if kwargs.get("dropout_p"):
        kwargs = {**kwargs, "dropout_p": 0.0}
    if func is torch.nn.functional.scaled_dot_product_attention and len(args) > 4:
        args = (*args[:4], 0.0, *args[5:])
    return func(*args, **kwargs)


def _own(
    model: nn.Module,
    parameters: tuple[Tensor, ...],
    loss_fn: LossFunction,
    batch: Any,
    wanted: Iterable[int],
    *,
    seed: int,
    count: int = UNITS,
    is_calm: bool = False,
    seen: list[Any] | None = None,
    drawn: list[bool] | None = None,
) -> list[Own]:
    """Return what is some units'; ``seen`` gets attributes, ``drawn`` whether chance was drawn."""
    device = parameters[0].device
    seed_all(device, seed)
    before = chance_of(device)
    attributes = [(module, dict(module.__dict__)) for module in model.modules()]
    try:
        with _Calm() if is_calm else nullcontext():
            losses = loss_fn(model, batch)
        if drawn is not None:
            drawn.append(chance_of(device) != before)
        if seen is not None:
            for module in model.modules():
                own = {k: v for k, v in module.__dict__.items() if k not in _CHECKED}
                _gather(own, seen)
        return own_gradients(losses, parameters, count, wanted)
    finally:
        for module, held in attributes:
            module.__dict__.clear()
            module.__dict__.update(held)


def _gather(value: Any, found: list[Any]) -> None:
    """Put the tensors and numbers within a value into a list."""
    if isinstance(value, Tensor):
        found.append(value.detach().clone())
    elif isinstance(value, (int, float)):
        found.append(value)
    elif isinstance(value, dict):
        _gather(list(value.values()), found)
    elif isinstance(value, (list, tuple, deque, set)):
        for one in value:
            _gather(one, found)


def _is_alike(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else a is b or a == b
        for a, b in zip(one, other, strict=True)
    )


def own_gradients(
    losses: Tensor, parameters: tuple[Tensor, ...], count: int, wanted: Iterable[int]
) -> list[Own]:
    """Return some units' losses and the gradients of their sums, by plain autograd."""
    found = []
    for unit in wanted:
        own = losses.reshape(count, -1)[unit]
        grads: tuple[Tensor | None, ...] = torch.autograd.grad(
            own.sum(), parameters, allow_unused=True, retain_graph=True
        )
        pairs = zip(parameters, grads, strict=True)
        found.append([own.detach(), *(torch.zeros_like(p) if g is None else g for p, g in pairs)])
    return found


def _is_near(one: Own, other: Own, tolerance: float, most: list[float] | None = None) -> bool:
    """Say whether losses are near each other for their size, and gradients for theirs."""
    size = float(torch.stack([grad.norm() for grad in one[1:]]).norm())
    for place, (mine, new) in enumerate(zip(one, other, strict=True)):
        if not (bool(mine.isfinite().all()) and bool(new.isfinite().all())):
            continue  # such a gradient is left out of the sum
        scale = size if place else float(mine.norm())
        allowed = tolerance * scale + (most[place] if most else 0.0)
        if not float((mine - new).norm()) <= allowed:
            return False
    return True


def _refusal(message: str) -> ParameterError:
    return ParameterError(f"{message} Nothing was released.", parameter="model")


def rows_of(unit: int, tensor: Tensor) -> Tensor:
    """Return the rows of one of a few units."""
    each = tensor.shape[0] // UNITS
    return tensor[unit * each : (unit + 1) * each]


def with_unit_of(unit: int, batch: Any, others: Any) -> Any:
    """Return other rows, with the rows of one unit as they were."""
    rows = []
    for mine, new in zip(leaves(batch), leaves(others), strict=True):
        parts = [rows_of(one, mine if one == unit else new) for one in range(UNITS)]
        rows.append(torch.cat(parts))
    return with_leaves(batch, iter(rows))
