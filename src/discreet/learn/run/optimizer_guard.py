"""Weights that only private steps may change, for as long as a run has them."""

import copy
from typing import Any, final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer, SparseAdam
from torch.optim.optimizer import register_optimizer_step_pre_hook

from discreet.errors import ParameterError

__all__ = ["Guard", "check_optimizer"]

_held: "WeakKeyDictionary[Optimizer, Guard]" = WeakKeyDictionary()


@final
class Guard:
    """Refuse steps on a run's weights that do not come from the run, by whichever optimiser.

    An update from gradients of one's own would not be in the account, and the epsilon of the run
    would be printed for a model that it does not describe.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        previous = _held.get(optimizer)
        if previous is not None:  # a notebook cell that was run again, say
            previous.release()
        self.is_held = True
        self.is_private = False  # whether its own step is under way
        self._weights = {id(p) for p in _weights(optimizer)}
        _held[optimizer] = self
        _watch()

    def step(self, optimizer: Optimizer) -> None:
        """Make one step, which is private."""
        self.is_private = True
        try:
            optimizer.step()
        finally:
            self.is_private = False

    def release(self) -> None:
        """Let go of the optimiser and the weights."""
        self.is_held = False

    def holds(self, weights: list[Tensor]) -> bool:
        """Say whether one of these weights is the run's."""
        return self.is_held and any(id(weight) in self._weights for weight in weights)


def _weights(optimizer: Optimizer) -> list[Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


_watching: list[Any] = []  # the hook of all optimisers, once there is something to guard


def _watch() -> None:
    if not _watching:
        _watching.append(register_optimizer_step_pre_hook(_check_step))


def _check_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Refuse a step of any optimiser that changes the weights of a run past it."""
    if not any(guard.is_held for guard in _held.values()):
        return
    weights = _weights(optimizer)
    guards = [guard for guard in list(_held.values()) if guard.holds(weights)]
    # A step inside of a private one is by a wrapper of its optimiser, or by another run that has
    # the same model and pays for itself.
    if guards and not any(guard.is_private for guard in guards):
        raise ParameterError(
            "these weights belong to a private run, and a step made outside of "
            "private.step(batch, loss_fn), by this optimiser or another one, is not in its "
            "account. Nothing was changed. End the run with private.close() to train on without "
            "privacy.",
            parameter="optimizer",
        )


def check_optimizer(optimizer: object, model: nn.Module) -> None:
    """Refuse an optimiser that does not train all of the model and nothing else."""
    if not isinstance(optimizer, Optimizer):
        raise ParameterError(
            "optimizer must be a torch optimizer, such as torch.optim.SGD(model.parameters(), "
            f"lr=0.1), got an object of type {type(optimizer).__name__}.",
            parameter="optimizer",
        )
    if isinstance(optimizer, LBFGS):
        raise ParameterError(
            "LBFGS evaluates the loss several times in a step, and only one of them is paid for. "
            "Use an optimiser that takes one gradient, such as SGD or Adam.",
            parameter="optimizer",
        )
    if isinstance(optimizer, SparseAdam):
        raise ParameterError(
            "SparseAdam wants gradients with most entries left out, and private ones have noise in "
            "all of them: which are left out would tell what was looked up. Use Adam.",
            parameter="optimizer",
        )
    own = {id(parameter) for parameter in model.parameters()}
    theirs = _weights(optimizer)
    if any(id(parameter) not in own for parameter in theirs):
        raise ParameterError(
            "the optimiser has parameters that are not the model's, so it would train something "
            "else. Build it from model.parameters(), after discreet.learn.fix(model) if that was "
            "used.",
            parameter="optimizer",
        )
    held = {id(parameter) for parameter in theirs}
    left_out = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if left_out:
        raise ParameterError(
            f"the optimiser does not train {', '.join(left_out[:5])}, whose gradients would be "
            "clipped and noised for nothing. Freeze them with requires_grad_(False), or hand them "
            "to the optimiser.",
            parameter="optimizer",
        )
    _try_out(optimizer)


def _try_out(optimizer: Optimizer) -> None:
    """Refuse an optimiser that cannot step, before a step of the run is paid for.

    It is a copy that steps, on one number for each weight, with gradients of zero.
    """
    if optimizer.state:  # it has stepped before
        return
    small = {
        id(p): nn.Parameter(torch.zeros_like(p[(slice(0, 1),) * p.dim()]))
        for p in _weights(optimizer)
    }
    try:
        twin = copy.deepcopy(optimizer, dict(small))
        twin._optimizer_step_pre_hooks.clear()
        twin._optimizer_step_post_hooks.clear()
    except Exception:  # it cannot be copied, so it cannot be tried
        return
    for weight in small.values():
        weight.grad = torch.zeros_like(weight)
    try:
        with torch.random.fork_rng(
            sorted({p.device.index or 0 for p in small.values() if p.is_cuda})
        ):
            type(optimizer).step(twin)
    except Exception as error:
        raise ParameterError(
            f"{type(optimizer).__name__} cannot make a step with gradients that are all there: "
            f"{error} Nothing was spent.",
            parameter="optimizer",
        ) from error
