"""Try a model on made-up rows before training: is each unit's gradient that unit's alone?

The second line: that a model keeps units apart is decided from its operations, without any number
(``docs/proofs/unit_axis.md``). Here the rules that form gradients are tried as well. The engine is
run on three units several times, with the same chance: one of them keeps its rows, and its
gradient must not change when the others get new ones, nor (without dropout) when it is elsewhere in
a smaller batch. Together they must have the gradient that plain autograd finds.
"""

import functools
import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn.following.batch_tree import leaves, made_up, with_leaves
from discreet.learn.following.calls.chance import kept, seed_all
from discreet.learn.following.contributions import joined
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.norms.dispatch import wide

if TYPE_CHECKING:
    from discreet.learn.following.recorder import Recorder
    from discreet.learn.gradients.engine import GradientEngine

_UNITS = 3
_KEPT = (0, 1)  # the units that keep their rows in turn: what comes later, and what came before
_JITTER = 0.1  # added to the weights, so that none is zero and hides what lies behind it


def check_gradients(
    engine: "GradientEngine", loss_fn: LossFunction, batch: Any, *, units: int
) -> bool:
    """Raise :class:`ParameterError` unless each unit's gradient is that unit's alone.

    The rows are made up of numbers of ``batch``: whether training goes on must not depend on
    anybody's data. Weights, buffers and random generators are as before afterwards. Returns False
    if nothing could be compared, because every gradient was zero or none was finite.
    """
    seed = secrets.randbelow(2**31)
    first = made_up(batch, _UNITS, units, seed=seed)
    others = made_up(batch, _UNITS, units, seed=seed + 1)
    with _shaken(engine, seed):
        before, _ = _gradients(engine, loss_fn, first, seed=seed)
        state = _state(engine)
        after = []
        for unit in _KEPT:
            rows = _with_unit_of(unit, first, others)
            grads, bits = _gradients(engine, loss_fn, rows, seed=seed)
            after.append(grads)
        _check_state(state, _state(engine))
        total = _by_autograd(engine, loss_fn, rows, seed)
        calm, moved = _without_chance(engine, loss_fn, first, seed)
    size = float(torch.stack([wide(grad).norm() for grad in total]).norm())
    if not 0 < size < math.inf:
        return False
    tolerance = _tolerance(engine, bits)
    for index, (name, whole) in enumerate(zip(engine.flat.names, total, strict=True)):
        for unit, grads in zip(_KEPT, after, strict=True):
            if _differ(before[index][unit], grads[index][unit], 1e-3 * size):
                raise _refusal(
                    f"the gradient of {name} for one example changes with the other examples of "
                    "the batch. Look for layers that mix examples (statistics or sums over the "
                    "batch)."
                )
        if moved and any(
            _differ(calm[index][unit], moved[index][place], tolerance * _size(calm, unit))
            for place, unit in enumerate(reversed(_KEPT))
        ):
            raise _refusal(
                f"the gradient of {name} for one example changes with its place in the batch, or "
                "with the size of the batch. Do not divide by that: the noisy sum is divided by "
                "the expected size."
            )
        if _differ(after[-1][index].sum(0), whole, tolerance * size):
            raise _refusal(
                f"the gradient of {name} could not be followed. Activation checkpoints need "
                "use_reentrant=False."
            )
    return True


def _without_chance(
    engine: "GradientEngine", loss_fn: LossFunction, batch: Any, seed: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradients among three units, and of two of these in the other order.

    The second is empty if chance is left in the model, so that they can not be compared.
    """
    calm, again = (
        _gradients(engine, loss_fn, batch, seed=one, is_calm=True)[0] for one in (seed, seed + 1)
    )
    if not all(torch.equal(*pair) for pair in zip(calm, again, strict=True)):
        return calm, []
    two = [
        torch.cat([_rows_of(unit, tensor) for unit in reversed(_KEPT)]) for tensor in leaves(batch)
    ]
    few = with_leaves(batch, iter(two))
    return calm, _gradients(engine, loss_fn, few, units=len(_KEPT), seed=seed, is_calm=True)[0]


def _gradients(
    engine: "GradientEngine",
    loss_fn: LossFunction,
    batch: Any,
    *,
    seed: int,
    units: int = _UNITS,
    is_calm: bool = False,
) -> tuple[list[Tensor], int]:
    """Return the gradients of the units, parameter by parameter; and the fewest bits used."""
    seed_all(engine.flat.buffer.device, seed)
    recorder, _ = engine.record(
        loss_fn,
        batch,
        units=units,
        before_backward=functools.partial(_check_leaves, engine),
        is_calm=is_calm,
    )
    with torch.no_grad():
        found = [
            joined(parts).dense() if parts else parameter.new_zeros(units, *parameter.shape)
            for parameter in engine.flat.parameters
            for parts in [recorder.contributions[id(parameter)]]
        ]
    bits = recorder.bits
    recorder.forget()
    return found, bits


def _by_autograd(
    engine: "GradientEngine", loss_fn: LossFunction, batch: Any, seed: int
) -> list[Tensor]:
    seed_all(engine.flat.buffer.device, seed)
    try:
        grads: list[Tensor | None] = list(
            torch.autograd.grad(
                loss_fn(engine.model, batch).sum(), engine.flat.parameters, allow_unused=True
            )
        )
    except RuntimeError as error:
        if "checkpoint" not in str(error):
            raise
        raise _refusal("activation checkpoints need use_reentrant=False.") from error
    return [
        torch.zeros_like(p) if grad is None else grad
        for p, grad in zip(engine.flat.parameters, grads, strict=True)
    ]


def _size(grads: list[Tensor], unit: int) -> float:
    return float(torch.stack([grad[unit].norm() for grad in grads]).norm())


def _differ(one: Tensor, other: Tensor, most: float) -> bool:
    return not float((one - other).norm()) <= most


def _tolerance(engine: "GradientEngine", bits: int) -> float:
    """Return how far two ways of computing a gradient may be apart."""
    buffer = engine.flat.buffer
    if bits < 32:
        return 0.2
    if bits == 64 and buffer.dtype == torch.float64:
        return 1e-9  # not where a layer of a double model computes in single precision
    return 1e-2 if buffer.is_cuda else 1e-3  # a GPU may cut products to ten bits


def _check_leaves(engine: "GradientEngine", recorder: "Recorder", losses: Tensor) -> None:
    """Refuse whatever else would get a gradient, a raw one."""
    seen, todo = set(), [losses.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and not recorder.is_own(leaf):
            names = [name for name, p in engine.model.named_parameters() if p is leaf]
            what = names[0] if names else f"a tensor of shape {tuple(leaf.shape)}"
            raise _refusal(
                f"{what} would get a gradient that is not private: a weight of the loss function, "
                "or an operation that can not be followed (a custom autograd.Function, say). Let "
                "the model hold it and use it with torch functions, or freeze it."
            )
        todo += [parent for parent, _ in node.next_functions]


def _state(engine: "GradientEngine") -> dict[str, Tensor]:
    model = engine.model
    return {
        name: tensor.detach().clone()
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
    }


def _check_state(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    changed = [
        name for name, buffer in one.items() if not torch.equal(buffer, other.get(name, buffer))
    ]
    if changed:
        raise _refusal(
            f"the forward pass writes raw data into {', '.join(changed)}, which is saved with the "
            "model. Keep no statistics of the rows."
        )


def _refusal(message: str) -> ParameterError:
    return ParameterError(f"{message} Nothing was released.", parameter="model")


def _rows_of(unit: int, tensor: Tensor) -> Tensor:
    each = tensor.shape[0] // _UNITS
    return tensor[unit * each : (unit + 1) * each]


def _with_unit_of(unit: int, batch: Any, others: Any) -> Any:
    """Return other rows, with the rows of one unit as they were."""
    rows = []
    for mine, new in zip(leaves(batch), leaves(others), strict=True):
        parts = [_rows_of(one, mine if one == unit else new) for one in range(_UNITS)]
        rows.append(torch.cat(parts))
    return with_leaves(batch, iter(rows))


@contextmanager
def _shaken(engine: "GradientEngine", seed: int) -> Iterator[None]:
    """Move all weights a bit, and put everything back in the end."""
    parameters, model = engine.flat.parameters, engine.model
    state = _state(engine)
    # Recurrent networks of cuDNN have no backward pass outside training.
    is_still = any(isinstance(m, nn.RNNBase) and not m.training for m in model.modules())
    plainly = torch.backends.cudnn.flags(enabled=False) if is_still else nullcontext()
    with kept(engine.flat.buffer.device), plainly:
        seed_all(engine.flat.buffer.device, seed)
        try:
            with torch.no_grad():
                for parameter in parameters:
                    parameter.add_(torch.randn_like(parameter), alpha=_JITTER)
            yield
        finally:
            with torch.no_grad():
                for name, own in (*model.named_parameters(), *model.named_buffers()):
                    if name in state and own.shape == state[name].shape:
                        own.copy_(state[name])
