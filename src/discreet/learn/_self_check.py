"""Compare the gradients of a few units with plain autograd, one unit at a time, before training.

What a model does is not known in advance, and a wrong gradient of one unit would void every
claim. So each loss function is first tried on three units with made-up rows.
"""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn._layouts import PROBES
from discreet.learn._trees import one_unit
from discreet.learn._uses import joined, wide

if TYPE_CHECKING:
    from discreet.learn._engine import Engine, LossFunction
    from discreet.learn._recording import Recorder

_UNITS = PROBES[1]


def check_gradients(engine: "Engine", loss_fn: "LossFunction", batch: Any) -> bool:
    """Raise :class:`ParameterError` unless each unit's gradient is that unit's alone.

    ``batch`` is a made-up one of three units: whether training goes on must not depend on anybody's
    data. Dropout is switched off for the comparison. Returns False if nothing could be compared,
    because no gradient was finite.
    """
    is_compared = False
    model = engine.model
    training = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with (
            torch.random.fork_rng([]),
            torch.backends.cudnn.flags(
                enabled=False  # its recurrent networks have no backward pass outside training
            ),
        ):
            recorder, _ = engine.record(loss_fn, batch, units=_UNITS)
            tolerance = _tolerance(engine, recorder)
            for unit in range(_UNITS):
                expected = _alone(engine, loss_fn, one_unit(batch, unit, _UNITS))
                with torch.no_grad():
                    is_compared |= _compare(engine, recorder.uses, unit, expected, tolerance)
            recorder.forget()
    finally:
        for module, was in training:
            module.training = was
    return is_compared


def _alone(engine: "Engine", loss_fn: "LossFunction", batch: Any) -> list[Tensor]:
    grads = torch.autograd.grad(
        loss_fn(engine.model, batch).sum(), engine.flat.parameters, allow_unused=True
    )
    found: list[Tensor | None] = list(grads)
    return [
        torch.zeros_like(p) if grad is None else grad
        for p, grad in zip(engine.flat.parameters, found, strict=True)
    ]


def _compare(
    engine: "Engine", uses: dict[int, Any], unit: int, expected: list[Tensor], tolerance: float
) -> bool:
    size = max(float(torch.stack([wide(grad).norm() for grad in expected]).norm()), 1e-30)
    if not math.isfinite(size):
        return False
    for name, parameter, grad in zip(
        engine.flat.names, engine.flat.parameters, expected, strict=True
    ):
        found = uses[id(parameter)]
        ours = joined(found).dense()[unit] if found else torch.zeros_like(grad)
        if not float((ours - grad).norm()) <= tolerance * size:
            raise ParameterError(
                f"the gradient of {name} for one example differs when other examples are in the "
                "batch, or could not be followed. Look for layers that mix examples (statistics "
                "or sums over the batch), for chance other than dropout, and for activation "
                "checkpoints, which need use_reentrant=False. Nothing was released.",
                parameter="model",
            )
    return True


def _tolerance(engine: "Engine", recorder: "Recorder") -> float:
    buffer = engine.flat.buffer
    if recorder.is_narrow:
        return 0.05
    if buffer.dtype == torch.float64:
        return 1e-9
    return 1e-2 if buffer.is_cuda else 1e-3  # a GPU may cut products to ten bits
