"""Try a model on made-up rows before training: is each unit's gradient that unit's alone?

The second line: that a model keeps units apart is decided from its operations, without any number
(``docs/proofs/unit_axis.md``). Here the loss is tried by itself (``apart_check``), and the engine
with its rules: each of three units must have the gradient that plain autograd finds for its losses.
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
from discreet.learn.following.batch_tree import made_up
from discreet.learn.following.calls.chance import kept, seed_all
from discreet.learn.following.contributions import joined
from discreet.learn.gradients.apart_check import UNITS, Own, check_apart, own_gradients
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.norms.dispatch import wide

if TYPE_CHECKING:
    from discreet.learn.following.recorder import Recorder
    from discreet.learn.gradients.engine import GradientEngine

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
    model, parameters = engine.model, engine.flat.parameters
    rows = made_up(batch, UNITS, units, seed=seed)
    with _shaken(engine, seed):
        grads, bits = _gradients(engine, loss_fn, rows, seed=seed)
        tolerance = _tolerance(engine, bits)
        state = _state(engine)
        check_apart(
            model,
            parameters,
            loss_fn,
            batch,
            units=units,
            seed=seed,
            rounding=_rounding(engine, bits),
            tolerance=tolerance,
        )
        _check_state(state, _state(engine))
        plain = _by_autograd(engine, loss_fn, rows, seed)
    return _check_exact(engine, grads, plain, tolerance)


def _check_exact(
    engine: "GradientEngine", grads: list[Tensor], plain: list[Own], tolerance: float
) -> bool:
    """Compare the engine's gradients with autograd's; return False if nothing can be compared."""
    sizes = [float(torch.stack([wide(g).norm() for g in own[1:]]).norm()) for own in plain]
    if not 0 < max(sizes) < math.inf:
        return False
    for index, name in enumerate(engine.flat.names):
        for unit, own in enumerate(plain):
            if _differ(grads[index][unit], own[1 + index], tolerance * max(sizes)):
                raise _refusal(
                    f"the gradient of {name} could not be followed. Activation checkpoints need "
                    "use_reentrant=False."
                )
    return True


def _gradients(
    engine: "GradientEngine",
    loss_fn: LossFunction,
    batch: Any,
    *,
    seed: int,
) -> tuple[list[Tensor], int]:
    """Return the gradients of the units, parameter by parameter; and the fewest bits used."""
    seed_all(engine.flat.buffer.device, seed)
    recorder, _ = engine.record(
        loss_fn,
        batch,
        units=UNITS,
        before_backward=functools.partial(_check_leaves, engine),
    )
    with torch.no_grad():
        found = [
            joined(parts).dense() if parts else parameter.new_zeros(UNITS, *parameter.shape)
            for parameter in engine.flat.parameters
            for parts in [recorder.contributions[id(parameter)]]
        ]
    bits = recorder.bits
    recorder.forget()
    return found, bits


def _by_autograd(
    engine: "GradientEngine", loss_fn: LossFunction, batch: Any, seed: int
) -> list[Own]:
    seed_all(engine.flat.buffer.device, seed)
    try:
        losses = loss_fn(engine.model, batch)
        return own_gradients(losses, engine.flat.parameters, UNITS, range(UNITS))
    except RuntimeError as error:
        if "checkpoint" not in str(error):
            raise
        raise _refusal("activation checkpoints need use_reentrant=False.") from error


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


def _rounding(engine: "GradientEngine", bits: int) -> float:
    """Return how far two runs may be apart that differ in other units' rows alone.

    On a CPU the numbers are the same. A GPU may add in another order each time, and a sum that is
    cut to few bits by autocast then moves by one of them.
    """
    buffer = engine.flat.buffer
    if bits < 32:
        return 2.0**-9
    return 1e-4 if buffer.is_cuda else 16 * torch.finfo(buffer.dtype).eps


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
